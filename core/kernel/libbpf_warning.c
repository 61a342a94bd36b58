// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/kernel/libbpf_warning.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static __thread char last[200];

static int keep(enum libbpf_print_level level, const char *fmt, va_list args)
{
	if (level == LIBBPF_WARN) {
		vsnprintf(last, sizeof(last), fmt, args);
		last[strcspn(last, "\n")] = '\0';
	}
	return 0;
}

static void set(void)
{
	libbpf_set_print(keep);
}

void libbpf_warning__keep(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set);
}

const char *libbpf_warning__last(void)
{
	return last;
}
