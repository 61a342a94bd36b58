/* SPDX-License-Identifier: GPL-2.0 */
#ifndef BRAID_PHP_PROCS_BPF_H
#define BRAID_PHP_PROCS_BPF_H

#include "bpf/php.h"
#include "bpf/scratch.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* address space */
	__type(value, struct php_proc_rec);
} php_procs __weak SEC(".maps");

#endif
