// SPDX-License-Identifier: GPL-2.0-or-later
/* Names and numbers of system calls. */
#include "core/base/syscalls.h"

#include <errno.h>
#include <sys/syscall.h>

#include "tests/tap.h"

int main(void)
{
	int n = 0, last = -1, strays = 0;

	is_str(syscall__name(SYS_read), "read", "the first");
	is_str(syscall__name(SYS_futex), "futex", "futex");
	is_str(syscall__name(SYS_epoll_pwait2), "epoll_pwait2", "a name with a digit");
	is_str(syscall__name(455), "futex_wait", "newer than the headers, maybe");
	ok(!syscall__name(-1) && !syscall__name(100000), "no number of any");
	is_int(syscall__number("futex"), SYS_futex, "by name");
	is_int(syscall__number("futex_wait"), 455, "a newer one by name");
	is_int(syscall__number("futex_"), -ENOENT, "no such name");
	is_int(syscall__number(""), -ENOENT, "no name");
	for (int i = syscall__next(0); i >= 0; i = syscall__next(i + 1), n++) {
		strays += i <= last || syscall__number(syscall__name(i)) != i;
		last = i;
	}
	is_int(strays, 0, "each is found by its name, in order");
	ok(n > 300, "all are listed (%d)", n);
	return tap__done();
}
