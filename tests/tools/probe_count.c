// SPDX-License-Identifier: GPL-2.0-or-later
/* probe_count PID PROVIDER [NAME]: counts hits of the provider's probes in the program that PID
 * runs, but only raises the semaphore of NAME. Prints ATTACHED. Then answers each line on standard
 * input with "NAME HITS" for each site and an empty line; a 'd' first detaches. With PID -1, counts
 * in the fixture named by the environment's PROGRAM, in every process. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "probes/counter.h"
#include "probes/usdt.h"

#define SITES_MAX 64

static const char *names[SITES_MAX];
static struct probe_point points[SITES_MAX];
static size_t n_points;

static int fail(const struct err *err)
{
	fprintf(stderr, "probe_count: %s\n", err->text);
	return 1;
}

static struct elf_file *open_program(const char *pid, struct err *err)
{
	struct elf_file *file = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/exe", pid);
	elf_file__open(open(pid[0] == '-' ? getenv("PROGRAM") : path, O_RDONLY | O_CLOEXEC), path,
		       &file, err);
	return file;
}

static void answer(struct probe_counter *counter)
{
	for (size_t i = 0; i < n_points; i++)
		printf("%s %llu\n", names[i], (unsigned long long)probe_counter__hits(counter, i));
	puts("");
	fflush(stdout);
}

static int serve(struct probe_counter *counter)
{
	char line[16];

	puts("ATTACHED");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (line[0] == 'd')
			probe_counter__detach(counter);
		answer(counter);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct probe_counter *counter = NULL;
	struct usdt_sites sites = {};
	struct elf_file *file;
	struct err err = {};
	int rc;

	if (argc < 3)
		return 2;
	file = open_program(argv[1], &err);
	rc = !file || usdt__read(file, &sites, &err) ||
	     probe_counter__open(SITES_MAX, &counter, &err);
	for (size_t i = 0; !rc && i < sites.n && n_points < SITES_MAX; i++) {
		const struct usdt_site *site = &sites.list[i];

		if (strcmp(site->provider, argv[2]) != 0)
			continue;
		if (argv[3] && strcmp(site->name, argv[3]) == 0) {
			rc = probe_counter__raise_semaphore(counter, atoi(argv[1]), file,
							    site->semaphore_vaddr, &err);
			continue;
		}
		names[n_points] = site->name;
		points[n_points] = (struct probe_point) { .file = file,
							  .pc_vaddr = site->pc_vaddr,
							  .semaphore_vaddr = site->semaphore_vaddr,
							  .cookie = n_points };
		n_points++;
	}
	rc = rc || probe_counter__attach(counter, atoi(argv[1]), points, n_points, &err);
	if (!rc)
		probe_counter__count(counter, true);
	rc = rc ? fail(&err) : serve(counter);
	probe_counter__free(counter);
	usdt_sites__done(&sites);
	elf_file__free(file);
	return rc;
}
