// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/event.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/privilege.h"
#include "core/base/util.h"
#include "core/events/perf.h"

/* Events that the kernel counts as perf events, by perf's names: software events, and hardware
 * events of the CPU (a PMU). They are counted on each CPU, for all tasks; the program selects
 * targets. */

#define CACHE(cache, op, result)                                          \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 | \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)
#define LOADS(cache)  CACHE(cache, READ, ACCESS)
#define MISSES(cache) CACHE(cache, READ, MISS)

/* The first of several synonyms is the name in recordings. */
const struct perf_name perf_names[] = {
	{ "page-fault", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, "Page faults" },
	{ "page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, NULL },
	{ "faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, NULL },
	{ "major-fault", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
	  "Page faults that had to wait for a file or swap" },
	{ "major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, NULL },
	{ "minor-fault", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN,
	  "Page faults that needed no file or swap" },
	{ "minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, NULL },
	{ "context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES,
	  "Times that a thread leaves the CPU" },
	{ "cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, NULL },
	{ "cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS,
	  "Times that a thread moves to another CPU" },
	{ "migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, NULL },
	{ "alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS,
	  "Unaligned accesses that the kernel had to handle" },
	{ "emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS,
	  "Instructions that the kernel had to emulate" },
	{ "cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "CPU cycles" },
	{ "cpu-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, NULL },
	{ "instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, "Instructions retired" },
	{ "ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES,
	  "Cycles of a clock of constant rate" },
	{ "cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
	  "Accesses of the last-level cache" },
	{ "cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES,
	  "Accesses of the last-level cache that went to memory" },
	{ "branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "Branches" },
	{ "branch-instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, NULL },
	{ "branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES,
	  "Mispredicted branches" },
	{ "bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, "Bus cycles" },
	{ "stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	  "Cycles in which the front end issued no instruction" },
	{ "stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	  "Cycles in which the back end accepted no instruction" },
	{ "L1-dcache-loads", PERF_TYPE_HW_CACHE, LOADS(L1D), "Loads" },
	{ "L1-dcache-load-misses", PERF_TYPE_HW_CACHE, MISSES(L1D), "Loads that missed L1" },
	{ "L1-dcache-stores", PERF_TYPE_HW_CACHE, CACHE(L1D, WRITE, ACCESS), "Stores" },
	{ "L1-icache-load-misses", PERF_TYPE_HW_CACHE, MISSES(L1I),
	  "Instruction fetches that missed L1" },
	{ "LLC-loads", PERF_TYPE_HW_CACHE, LOADS(LL), "Loads from the last-level cache" },
	{ "LLC-load-misses", PERF_TYPE_HW_CACHE, MISSES(LL),
	  "Loads that missed the last-level cache and went to memory" },
	{ "LLC-stores", PERF_TYPE_HW_CACHE, CACHE(LL, WRITE, ACCESS),
	  "Stores to the last-level cache" },
	{ "LLC-store-misses", PERF_TYPE_HW_CACHE, CACHE(LL, WRITE, MISS),
	  "Stores that missed the last-level cache and went to memory" },
	{ "dTLB-loads", PERF_TYPE_HW_CACHE, LOADS(DTLB), "Loads through the data TLB" },
	{ "dTLB-load-misses", PERF_TYPE_HW_CACHE, MISSES(DTLB), "Loads that missed the data TLB" },
	{ "dTLB-store-misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, WRITE, MISS),
	  "Stores that missed the data TLB" },
	{ "iTLB-loads", PERF_TYPE_HW_CACHE, LOADS(ITLB), "Fetches through the instruction TLB" },
	{ "iTLB-load-misses", PERF_TYPE_HW_CACHE, MISSES(ITLB),
	  "Fetches that missed the instruction TLB" },
	{ "branch-loads", PERF_TYPE_HW_CACHE, LOADS(BPU), "Lookups in the branch predictor" },
	{ "branch-load-misses", PERF_TYPE_HW_CACHE, MISSES(BPU),
	  "Lookups that missed in the branch predictor" },
	{ "node-loads", PERF_TYPE_HW_CACHE, LOADS(NODE),
	  "Loads from memory of the CPU's own NUMA node" },
	{ "node-load-misses", PERF_TYPE_HW_CACHE, MISSES(NODE),
	  "Loads from memory of another NUMA node" },
	{}
};

static bool is_fault(const struct perf_name *name)
{
	return name->type == PERF_TYPE_SOFTWARE && (name->config == PERF_COUNT_SW_PAGE_FAULTS ||
						    name->config == PERF_COUNT_SW_PAGE_FAULTS_MAJ ||
						    name->config == PERF_COUNT_SW_PAGE_FAULTS_MIN);
}

static bool is_software(const struct perf_name *name)
{
	return name->type == PERF_TYPE_SOFTWARE && !is_fault(name);
}

static bool is_pmu(const struct perf_name *name)
{
	return name->type != PERF_TYPE_SOFTWARE;
}

/* Returns the @i-th name for which @holds returns true, after the first, which is the kind's
 * own. */
static const char *nth(bool (*holds)(const struct perf_name *), size_t i)
{
	size_t n = 0;

	for (const struct perf_name *name = perf_names; name->name; name++)
		if (holds(name) && n++ == i + 1)
			return name->name;
	return NULL;
}

static const char *fault_name(size_t i)
{
	return nth(is_fault, i);
}

static const char *software_name(size_t i)
{
	return nth(is_software, i);
}

static const char *pmu_name(size_t i)
{
	return nth(is_pmu, i);
}

/* Returns true for "r" and the hexadecimal number of an event in the CPU's manual. */
static bool is_raw(const char *text, size_t len)
{
	size_t digits = 0;

	if (len < 2 || len > 17 || text[0] != 'r')
		return false;
	while (digits < len - 1 && isxdigit((unsigned char)text[1 + digits]))
		digits++;
	return digits == len - 1;
}

static const struct perf_name *find(const char *text)
{
	for (const struct perf_name *name = perf_names; name->name; name++)
		if (!strcmp(name->name, text))
			return name;
	return NULL;
}

static int parse(struct event_spec *spec, struct err *err)
{
	const struct perf_name *name = find(spec->name);

	(void)err;
	while (name && !name->help)
		name--;
	if (name)
		snprintf(spec->name, sizeof(spec->name), "%s", name->name);
	return 0;
}

static void fill_attr(const struct event *event, struct perf_event_attr *ret)
{
	const struct perf_name *name = find(event->spec.name);

	*ret = (struct perf_event_attr) { .size = sizeof(*ret),
					  .type = name ? name->type : PERF_TYPE_RAW,
					  .config = name ? name->config
							 : strtoull(event->spec.name + 1, NULL, 16),
					  .sample_period = 1 };
	if (event->spec.kind == &event_fault)
		ret->sample_type = PERF_SAMPLE_ADDR;
	if (!event->spec.kind->rated)
		return;
	ret->freq = !event->period;
	ret->sample_period = event->period ? event->period : event->frequency_hz;
}

bool perf__counts(const struct perf_name *name)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.type = name->type,
					.config = name->config,
					.exclude_kernel = 1 }; /* needs the least privilege */
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	bool counts = fd >= 0;

	/* A missing permission is not a missing counter. */
	if (!counts)
		counts = errno != ENOENT && errno != EOPNOTSUPP && errno != ENODEV;
	close_fd(&fd);
	return counts;
}

bool perf__has_pmu(void)
{
	return perf__counts(&(struct perf_name) { .type = PERF_TYPE_HARDWARE,
						  .config = PERF_COUNT_HW_CPU_CYCLES });
}

/* Returns a similar event that does not need a PMU. */
static const char *instead_of(const char *name)
{
	return strstr(name, "miss") || strstr(name, "loads") || strstr(name, "stores")
		       ? "cpu, which shows where time goes, or page-fault"
		       : "cpu, which needs only a clock";
}

static int refuse(int code, const struct event *event, struct err *err)
{
	const char *name = event->spec.name;

	if (code == -EPERM || code == -EACCES)
		return privilege__explain(1U << PRIVILEGE_EVENTS, "to count on all CPUs", err);
	if (code == -EBUSY || code == -ENOSPC)
		return err__set(err, code,
				"cannot count %s: all hardware counters of the CPU are in use. End "
				"other profilers, or record fewer events",
				name);
	if (event->spec.kind != &event_pmu)
		return err__set(err, code, "cannot count %s: %s", name, strerror(-code));
	if (!perf__has_pmu())
		return err__set(err, -ENOTSUP,
				"cannot count %s: this machine has no hardware counters (PMU), "
				"like many virtual machines. Record %s",
				name, instead_of(name));
	return err__set(err, code,
			"this CPU cannot count %s (%s). braid events lists the events that it can",
			name, strerror(-code));
}

static int attach_on(struct event *event, int cpu, struct perf_event_attr *attr, struct err *err)
{
	uint64_t cookie = event__cookie(event, false) |
			  (event->spec.kind == &event_fault ? COOKIE_ADDRESS : 0) |
			  (event->spec.kind->rated ? COOKIE_PERIOD : 0);
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie);
	int fd = syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC), code;
	struct bpf_link *link;

	if (fd < 0 && (errno == ENXIO || (errno == ENODEV && cpu)))
		return 0; /* offline */
	if (fd < 0)
		return refuse(-errno, event, err);
	link = bpf_program__attach_perf_event_opts(event->program, fd, &opts);
	if (link)
		return event__add_link(event, link, fd, err);
	code = -errno;
	close(fd);
	return err__set(err, code, "cannot attach to %s on CPU %d: %s", event->spec.name, cpu,
			strerror(-code));
}

static int attach(struct event *event, const struct event_place *place, struct err *err)
{
	int n_cpus = libbpf_num_possible_cpus(), code = 0;
	struct perf_event_attr attr;

	(void)place;
	fill_attr(event, &attr);
	for (int cpu = 0; !code && cpu < n_cpus; cpu++)
		code = attach_on(event, cpu, &attr, err);
	return code;
}

static int slow_down(struct event *event, uint32_t slowdown)
{
	uint64_t value = event->period ? event->period * slowdown
				       : max_of(event->frequency_hz / slowdown, 1U);
	int code = 0;

	for (size_t i = 0; i < event->n_links; i++)
		if (ioctl(event->fds[i], PERF_EVENT_IOC_PERIOD, &value))
			code = -errno;
	return code;
}

const struct event_kind event_fault = {
	.name = "page-fault",
	.other_name = fault_name,
	.unit = "count",
	.help = "Page faults",
	.type = CHAIN_TICK,
	.parse = parse,
	.attach = attach,
};

const struct event_kind event_software = {
	.name = "context-switches",
	.other_name = software_name,
	.unit = "count",
	.help = "Times that a thread leaves the CPU",
	.type = CHAIN_TICK,
	.parse = parse,
	.attach = attach,
};

const struct event_kind event_pmu = {
	.name = "cycles",
	.other_name = pmu_name,
	.is_name = is_raw,
	.unit = "count",
	.help = "Events of the CPU's hardware counters, by perf's names, or rNNN",
	.type = CHAIN_TICK,
	.rated = true,
	.parse = parse,
	.attach = attach,
	.slow_down = slow_down,
};
