// SPDX-License-Identifier: GPL-2.0-or-later
/* Containers by their cgroups: paths as container engines write them. */
#include "core/target/container.h"

#include <string.h>

#include "core/base/util.h"
#include "tests/tap.h"

#define ID    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static const struct {
	const char *path, *container; /* NULL: no container */
} cases[] = {
	{ "/", NULL },
	{ "", NULL },
	{ "/system.slice/docker.service", NULL },
	{ "/system.slice/docker-" ID ".scope", ID },
	{ "/system.slice/docker-" ID ".scope/init.scope", ID },
	{ "/docker/" ID, ID },
	{ "/docker/" ID "/docker/" OTHER, OTHER },
	{ "/machine.slice/libpod-" ID ".scope/container", ID },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope", ID },
	{ "/libpod_parent/libpod-" ID, ID },
	{ "/machine.slice/libpod-conmon-" ID ".scope", NULL },
	{ "/libpod_parent/conmon", NULL },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/"
	  "cri-containerd-" ID ".scope",
	  ID },
	{ "/kubepods/besteffort/pod12345678-1234-1234-1234-123456789012/" ID, ID },
	{ "/kubepods.slice/kubepods-pod1.slice/crio-" ID ".scope", ID },
	{ "/kubepods.slice/kubepods-pod1.slice/crio-conmon-" ID ".scope", NULL },
	{ "/kubepods/pod1/crio-" ID, ID },
	{ "/system.slice/nerdctl-" ID ".scope", ID },
	{ "/system.slice/runc-web.scope", "web" },
	{ "/system.slice/crun-web.1.scope", "web.1" },
	{ "/machine.slice/machine-debian\\x2d12.scope/payload/system.slice/x.service",
	  "debian-12" },
	{ "/machine.slice/systemd-nspawn@db.service/payload", "db" },
	{ "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", NULL },
	{ "/lxc.payload.web/system.slice", "web" },
	{ "/lxc.monitor.web", NULL },
	{ "/lxc/web", "web" },
	{ "/../" ID, ID },
	/* Paths of other forms, or incomplete ones. */
	{ "/docker-.scope", NULL },
	{ "/docker/0123456789abcdef", NULL },
	{ "/docker/" ID "0", NULL },
	{ "/docker/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", NULL },
	{ "/machine-a\\x1bb\\x0.scope", "a?b\\x0" },
};

int main(void)
{
	char ret[CONTAINER_BYTES], parent[300] = "/x/";

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bool found = container__of_cgroup(cases[i].path, ret);

		ok(found == !!cases[i].container && (!found || !strcmp(ret, cases[i].container)),
		   "%s", cases[i].path);
	}
	ok(container__is_cgroup("docker", ID, ret) && !container__is_cgroup(ID, "below", ret),
	   "the container's own cgroup");
	ok(container__may_be_called("web") && !container__may_be_called("web.service") &&
		   !container__may_be_called("libpod-conmon-web"),
	   "what no rule knows may be one, units and helpers are none");
	memset(parent + 3, 'a', 290);
	memcpy(parent + 3, "machine-", 8);
	strcpy(parent + 290, ".scope");
	ok(container__of_cgroup(parent, ret) && strlen(ret) == CONTAINER_BYTES - 1,
	   "a name that is too long is cut");
	return tap__done();
}
