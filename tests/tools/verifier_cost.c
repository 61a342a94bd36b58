// SPDX-License-Identifier: GPL-2.0-or-later
/* Prints what the verifier spent on each BPF program, against a budget; the kernel's limit is
 * 1,000,000 instructions. Without the privilege to load it says so and succeeds. */
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/braid.skel.h"
#include "core/util.h"

#define LOG_BYTES   (1 << 23)
#define BUDGET	    100000
#define LOG_STATS   5 /* BPF_LOG_STATS | BPF_LOG_LEVEL1 */
#define LOG_SHOWN   3000
#define PROGRAM_MAX 32

static int complain(enum libbpf_print_level level, const char *fmt, va_list args)
{
	return level == LIBBPF_WARN && geteuid() == 0 ? vprintf(fmt, args) : 0;
}

int main(void)
{
	static char logs[PROGRAM_MAX][LOG_BYTES];
	struct braid_bpf *skel;
	struct bpf_program *program;
	int n = 0, status = 0;

	libbpf_set_print(complain);
	skel = braid_bpf__open();
	if (!skel) {
		fprintf(stderr, "cannot open the BPF object: %s\n", strerror(errno));
		return 1;
	}
	skel->rodata->cfg_walkers = ~0U; /* what is not run is not verified */
	bpf_object__for_each_program (program, skel->obj) {
		if (n == PROGRAM_MAX)
			break;
		bpf_program__set_autoload(program, true);
		bpf_program__set_log_level(program, LOG_STATS);
		bpf_program__set_log_buf(program, logs[n++], LOG_BYTES);
	}
	if (braid_bpf__load(skel)) {
		printf("  VERIFY   not loaded: %s\n", strerror(errno));
		status = geteuid() == 0; /* the verifier's word, not a lack of privilege */
	}
	for (n = 0; status && n + 1 < PROGRAM_MAX && logs[n + 1][0]; n++)
		;
	if (status) /* the end of the last log says why */
		printf("%s\n", logs[n] + max_of(strlen(logs[n]), (size_t)LOG_SHOWN) - LOG_SHOWN);
	n = 0;
	bpf_object__for_each_program (program, skel->obj) {
		const char *found = strstr(logs[n], "processed ");
		unsigned insns = found ? strtoul(found + strlen("processed "), NULL, 10) : 0;

		if (insns)
			printf("  VERIFY   %-18s %6u of %d instructions\n",
			       bpf_program__name(program), insns, BUDGET);
		if (insns > BUDGET)
			status = 1;
		if (++n == PROGRAM_MAX)
			break;
	}
	braid_bpf__destroy(skel);
	return status;
}
