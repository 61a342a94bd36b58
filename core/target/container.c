// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/container.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "core/base/util.h"

#define ID_DIGITS 64 /* digits of an id of a container engine: a SHA-256, in hexadecimal */

/* Names of the cgroups of containers: `prefix` NAME `suffix`. */
static const struct form {
	const char *prefix, *suffix;
	const char *parent; /* required name of the parent cgroup; NULL: any */
} forms[] = {
	/* moby: daemon/oci_linux.go, withCgroups(): the unit is docker-ID.scope with systemd */
	{ "docker-", ".scope", NULL },
	/* podman: libpod/util_linux.go, createUnitName("libpod", ID); libpod-ID with cgroupfs */
	{ "libpod-", ".scope", NULL },
	{ "libpod-", "", NULL },
	/* cri-o: internal/config/cgmgr, "crio-" + ID */
	{ "crio-", ".scope", NULL },
	{ "crio-", "", NULL },
	/* containerd: internal/cri/server/helpers.go, getCgroupsPath(): slice:cri-containerd:ID */
	{ "cri-containerd-", ".scope", NULL },
	/* nerdctl: pkg/cmd/container/run_cgroup_linux.go: slice:nerdctl:ID */
	{ "nerdctl-", ".scope", NULL },
	/* runc: libcontainer/specconv/spec_linux.go, ScopePrefix */
	{ "runc-", ".scope", NULL },
	/* crun: src/libcrun/cgroup-systemd.c, get_systemd_scope_and_slice() */
	{ "crun-", ".scope", NULL },
	/* systemd: src/machine/machine-dbus.c; units/systemd-nspawn@.service.in */
	{ "machine-", ".scope", NULL },
	{ "systemd-nspawn@", ".service", NULL },
	/* lxc: src/lxc/cgroups/cgfsng.c, CGROUP_CREATE_RETRY: lxc.payload.NAME; before 4.0 lxc/NAME
	 */
	{ "lxc.payload.", "", NULL },
	{ "", "", "lxc" },
	{ "", "", "lxc.payload" },
};

/* Names that match a rule but are not containers: monitors of containers, and virtual machines
 * (libvirt: src/util/virsystemd.c, machine-qemu-N-NAME.scope). */
static const char *const others[] = { "libpod-conmon-", "crio-conmon-", "machine-qemu" };

static bool is_id(const char *text, size_t len)
{
	if (len != ID_DIGITS)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)text[i]) || isupper((unsigned char)text[i]))
			return false;
	return true;
}

static int digit(char c)
{
	return !isxdigit((unsigned char)c) ? -1
	       : isdigit((unsigned char)c) ? c - '0'
					   : tolower((unsigned char)c) - 'a' + 10;
}

/* Replaces escapes: unit names have "\x2d" for "-" (systemd.unit(5)). */
static void unescape(const char *from, size_t len, char ret[CONTAINER_BYTES])
{
	size_t i = 0, n = 0;

	while (i < len && n < CONTAINER_BYTES - 1) {
		int hi = len - i >= 4 && from[i] == '\\' && from[i + 1] == 'x' ? digit(from[i + 2])
									       : -1;
		int lo = hi < 0 ? -1 : digit(from[i + 3]);

		if (lo >= 0 && hi * 16 + lo) {
			ret[n++] = (char)(hi * 16 + lo);
			i += 4;
		} else {
			ret[n++] = from[i++];
		}
	}
	ret[n] = '\0';
	for (i = 0; i < n; i++)
		if (iscntrl((unsigned char)ret[i]))
			ret[i] = '?';
}

static bool is_called(const char *text, size_t len, const char *name)
{
	return len == strlen(name) && !memcmp(text, name, len);
}

static bool begins_with(const char *text, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && !memcmp(text, prefix, strlen(prefix));
}

static bool has_form(const struct form *form, const char *name, size_t len, size_t *ret_at,
		     size_t *ret_len)
{
	size_t prefix = strlen(form->prefix), suffix = strlen(form->suffix);

	if (len <= prefix + suffix || !begins_with(name, len, form->prefix) ||
	    memcmp(name + len - suffix, form->suffix, suffix) != 0)
		return false;
	*ret_at = prefix;
	*ret_len = len - prefix - suffix;
	return true;
}

static bool is_container(const char *parent, size_t parent_len, const char *name, size_t len,
			 char ret[CONTAINER_BYTES])
{
	size_t i, at, part;

	for (i = 0; i < ARRAY_SIZE(others); i++)
		if (begins_with(name, len, others[i]))
			return false;
	if (is_id(name, len)) { /* docker/ID, podUID/ID: with cgroupfs */
		unescape(name, len, ret);
		return true;
	}
	for (i = 0; i < ARRAY_SIZE(forms); i++) {
		if (forms[i].parent && !is_called(parent, parent_len, forms[i].parent))
			continue;
		if (!has_form(&forms[i], name, len, &at, &part))
			continue;
		unescape(name + at, part, ret);
		return true;
	}
	return false;
}

/* The unit types that have cgroups (systemd.unit(5)). */
static const char *const units[] = { ".slice", ".scope", ".service", ".socket", ".mount", ".swap" };

bool container__may_be_called(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		if (begins_with(name, len, others[i]))
			return false;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (len >= strlen(units[i]) && !strcmp(name + len - strlen(units[i]), units[i]))
			return false;
	return true;
}

bool container__is_cgroup(const char *parent, const char *name, char ret[CONTAINER_BYTES])
{
	return is_container(parent, strlen(parent), name, strlen(name), ret);
}

bool container__of_cgroup(const char *path, char ret[CONTAINER_BYTES])
{
	const char *end = path + strlen(path);

	while (end > path) {
		const char *name = end, *parent;

		while (name > path && name[-1] != '/')
			name--;
		parent = name > path ? name - 1 : path;
		while (parent > path && parent[-1] != '/')
			parent--;
		if (is_container(parent, name > path ? (size_t)(name - 1 - parent) : 0, name,
				 end - name, ret))
			return true;
		end = name > path ? name - 1 : path;
	}
	return false;
}
