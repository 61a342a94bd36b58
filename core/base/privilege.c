// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/privilege.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/util.h"

#define USER_NS_INIT_INO 0xEFFFFFFDU /* PROC_USER_INIT_INO, include/linux/proc_ns.h */

static const struct privilege_need needs[PRIVILEGES_N] = {
	[PRIVILEGE_LOAD] = { CAP_BPF, true, "BPF programs", "nothing can be recorded" },
	[PRIVILEGE_EVENTS] = { CAP_PERFMON, true, "samples of all processes",
			       "nothing can be recorded" },
	[PRIVILEGE_PROBES] = { CAP_SYS_ADMIN, true, "probes in programs",
			       "`calls`, `probes -p`, `bench`, `record --source probes` and, "
			       "before "
			       "Linux 6.10, events of probes (docs/reference/privileges.md) do not "
			       "work" },
	[PRIVILEGE_STATISTICS] = { CAP_SYS_ADMIN, true, "the cost of probes",
				   "--max-overhead limits no probes" },
	[PRIVILEGE_PROCESSES] = { CAP_SYS_PTRACE, false,
				  "memory and files of other users' processes",
				  "code that only processes of other users can see (in containers) "
				  "has no names, and stacks end there" },
	[PRIVILEGE_FILES] = { CAP_CHECKPOINT_RESTORE, true, "deleted and replaced files",
			      "only exported functions of deleted or replaced files have names" },
	[PRIVILEGE_READ] = { CAP_DAC_READ_SEARCH, false, "programs that this user may not read",
			     "only exported functions of files that this user may not read have "
			     "names" },
	[PRIVILEGE_SYMBOLS] = { CAP_SYSLOG, false, "names of kernel functions",
				"kernel frames are addresses" },
};

static const struct {
	uint32_t bit;
	const char *name;
} capabilities[] = { { CAP_BPF, "CAP_BPF" },
		     { CAP_PERFMON, "CAP_PERFMON" },
		     { CAP_SYS_ADMIN, "CAP_SYS_ADMIN" },
		     { CAP_SYS_PTRACE, "CAP_SYS_PTRACE" },
		     { CAP_DAC_READ_SEARCH, "CAP_DAC_READ_SEARCH" },
		     { CAP_CHECKPOINT_RESTORE, "CAP_CHECKPOINT_RESTORE" },
		     { CAP_SYSLOG, "CAP_SYSLOG" } };

const struct privilege_need *privilege__need(enum privilege privilege)
{
	return &needs[privilege];
}

/* Capabilities in another user namespace hold for its own resources only, and BPF is not among
 * them. */
static bool in_user_namespace(void)
{
	struct stat st;

	return !stat("/proc/self/ns/user", &st) && st.st_ino != USER_NS_INIT_INO;
}

/* Returns the effective capabilities in the initial user namespace. */
static uint64_t effective(void)
{
	unsigned long long bits = 0;
	FILE *status = fopen("/proc/self/status", "re");
	char line[128];

	while (status && !in_user_namespace() && fgets(line, sizeof(line), status))
		sscanf(line, "CapEff: %llx", &bits);
	if (status)
		fclose(status);
	return bits;
}

uint32_t privilege__missing(uint32_t required)
{
	uint64_t has = effective();
	uint32_t missing = 0;

	for (int i = 0; i < PRIVILEGES_N; i++)
		if (required & 1U << i && !(has >> needs[i].capability & 1) &&
		    !(needs[i].by_admin && has >> CAP_SYS_ADMIN & 1))
			missing |= 1U << i;
	return missing;
}

static uint64_t capabilities_of(uint32_t privileges)
{
	uint64_t bits = 0;

	for (int i = 0; i < PRIVILEGES_N; i++)
		if (privileges & 1U << i)
			bits |= 1ULL << needs[i].capability;
	return bits;
}

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t size, const char *fmt,
							 ...)
{
	size_t len = strlen(text);
	va_list args;

	va_start(args, fmt);
	vsnprintf(text + len, size - len, fmt, args);
	va_end(args);
}

/* "A", "A and B", "A, B and C" */
static void list(uint64_t bits, char *ret, size_t size)
{
	int n = __builtin_popcountll(bits), done = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(capabilities); i++) {
		if (!(bits >> capabilities[i].bit & 1))
			continue;
		append(ret, size, "%s%s",
		       !done	       ? ""
		       : done + 1 == n ? " and "
				       : ", ",
		       capabilities[i].name);
		done++;
	}
}

void privilege__names(uint32_t privileges, char *ret, size_t size)
{
	list(capabilities_of(privileges), ret, size);
}

void privilege__lacks(uint32_t privileges, char *ret, size_t size)
{
	char names[100];

	privilege__names(privileges, names, sizeof(names));
	snprintf(ret, size, "user %u lacks %s", geteuid(), names);
}

/* Returns the number in a file of /proc/sys; -1: the file does not exist. */
static int setting(const char *path)
{
	FILE *file = fopen(path, "re");
	int value = -1;

	if (file && fscanf(file, "%d", &value) != 1)
		value = -1;
	if (file)
		fclose(file);
	return value;
}

/* Returns kernel.perf_event_paranoid if this setting forbids the events that are @required; 0: the
 * events are permitted. A patch in Debian's kernels makes perf_event_open() require CAP_SYS_ADMIN
 * if this setting is above 2, which is the default there
 *
 * (security-perf-allow-further-restriction-of-perf_event_open.patch in
 * debian/patches/features/all).
 */
static int forbids_events(uint32_t required)
{
	int paranoid = setting("/proc/sys/kernel/perf_event_paranoid");

	return required == 1U << PRIVILEGE_EVENTS && paranoid > 2 &&
			       !(effective() >> CAP_SYS_ADMIN & 1)
		       ? paranoid
		       : 0;
}

int privilege__explain(uint32_t required, const char *what, struct err *err)
{
	uint32_t missing = privilege__missing(required);
	int paranoid = forbids_events(required);
	char names[200];

	privilege__names(missing ? missing : required, names, sizeof(names));
	if (in_user_namespace())
		return err__set(
			err, -EPERM,
			"not permitted %s: that requires %s in the initial user namespace, and "
			"braid runs in another one (a rootless container). Run braid outside of it",
			what, names);
	if (missing)
		return err__set(err, -EPERM,
				"not permitted %s: user %u lacks %s. Run as root (sudo), or grant "
				"the missing capabilities (`braid doctor` explains how)",
				what, geteuid(), names);
	if (paranoid)
		return err__set(err, -EPERM,
				"not permitted %s: kernel.perf_event_paranoid is %d, so that this "
				"kernel requires CAP_SYS_ADMIN. Use sysctl "
				"kernel.perf_event_paranoid=2, or run as root (sudo)",
				what, paranoid);
	return err__set(err, -EPERM,
			"not permitted %s, though user %u has %s: a container's seccomp profile, a "
			"security module or the kernel's lockdown forbids it",
			what, geteuid(), names);
}

bool privilege__is_lent(void)
{
	return getauxval(AT_SECURE) && getuid();
}

int privilege__check_owner(uint32_t pid, uint32_t uid, struct err *err)
{
	if (!privilege__is_lent() || uid == getuid())
		return 0;
	return err__set(err, -EPERM,
			"process %u does not belong to user %u, or is not dumpable: braid has its "
			"privileges from its file, and shows each user only his own processes. Run "
			"it as root (sudo)",
			pid, getuid());
}

/* Capabilities of root that recording needs in addition to the table. */
#define CAPABILITIES_RETAINED                                                                      \
	(1ULL << CAP_DAC_OVERRIDE |			  /* files in a directory of the user's */ \
	 1ULL << CAP_CHOWN | 1ULL << CAP_FOWNER |	  /* owners of recordings */               \
	 1ULL << CAP_SETUID | 1ULL << CAP_SETGID |	  /* requests to a target as its user */   \
	 1ULL << CAP_KILL | 1ULL << CAP_SYS_CHROOT |	  /* the same, in a container */           \
	 1ULL << CAP_SYS_NICE | 1ULL << CAP_SYS_RESOURCE) /* the CPU limit; descriptors */

/* Reduces the permitted capabilities to @required and makes all of them effective. The kernel
 * always grants fewer. */
static void keep_capabilities(uint64_t required)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &header, data))
		return;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= required >> 32 * i;
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	syscall(SYS_capset, &header, data);
}

static void keep(uint64_t required)
{
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	keep_capabilities(required);
}

bool privilege__become_user(void)
{
	const uid_t uid = getuid();
	const gid_t gid = getgid();

	if (!privilege__is_lent())
		return true;
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) || setresgid(gid, gid, gid) ||
	    setresuid(uid, uid, uid))
		return false;
	keep_capabilities(capabilities_of((1U << PRIVILEGES_N) - 1));
	return true;
}

void privilege__drop_lent(void)
{
	if (privilege__is_lent())
		privilege__drop_all();
}

void privilege__drop_all(void)
{
	keep(0);
}

void privilege__keep_for_recording(void)
{
	keep(capabilities_of((1U << PRIVILEGES_N) - 1) | CAPABILITIES_RETAINED);
}

void privilege__why_hidden(char *ret, size_t size)
{
	if (setting("/proc/sys/kernel/kptr_restrict") == 2)
		snprintf(ret, size,
			 "the kernel hides their addresses from all users. Use sysctl "
			 "kernel.kptr_restrict=1");
	else if (privilege__missing(1U << PRIVILEGE_SYMBOLS))
		snprintf(ret, size, "user %u lacks CAP_SYSLOG", geteuid());
	else
		snprintf(ret, size, "/proc/kallsyms hides their addresses");
}

void privilege__own(char *ret, size_t size)
{
	uint64_t has = effective(), all = capabilities_of((1U << PRIVILEGES_N) - 1);

	if (!geteuid() && (has & all) == all) {
		snprintf(ret, size, "root");
		return;
	}
	snprintf(ret, size, "user %u%s, %s", geteuid(),
		 in_user_namespace() ? " of a user namespace that is not the machine's" : "",
		 has & all ? "with " : "without capabilities");
	if (has & all)
		list(has & all, ret + strlen(ret), size - strlen(ret));
}
