// SPDX-License-Identifier: GPL-2.0-or-later
#include <sys/mman.h>
#include <unistd.h>

#include "bpf/host/host.h"

struct host host = { .comm = "host" };

/* --- maps --- */

struct host_map *host_map__find(const void *map)
{
	for (size_t i = 0; i < host.n_maps; i++)
		if (host.maps[i].map == map)
			return &host.maps[i];
	return NULL;
}

struct host_map *host_map__named(const char *name)
{
	for (size_t i = 0; i < host.n_maps; i++)
		if (strcmp(host.maps[i].name, name) == 0)
			return &host.maps[i];
	return NULL;
}

/* Most maps have far more room than entries, so that pages without an entry are never touched. */
static struct host_entry *map_entries(uint32_t max)
{
	void *entries = mmap(NULL, (max + 1) * sizeof(struct host_entry), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (entries == MAP_FAILED)
		abort(); /* out of memory */
	return entries;
}

struct host_map *host_map__add(const char *name, const void *map, bool is_array, uint32_t key_size,
			       uint32_t value_size, uint32_t max)
{
	struct host_map *host_map = &host.maps[host.n_maps];

	if (host.n_maps == HOST_MAPS_MAX || key_size > HOST_KEY_BYTES)
		abort(); /* the limits in host.h are too low for the kernel half */
	host.n_maps++;
	*host_map = (struct host_map) {
		.name = name,
		.map = map,
		.is_array = is_array,
		.key_size = key_size,
		.value_size = value_size,
		.n = is_array ? max : 0,
		.max = max,
		.entries = map_entries(max),
	};
	for (uint32_t i = 0; value_size && i < host_map->n; i++)
		host_map->entries[i].value = calloc(1, value_size);
	return host_map;
}

static struct host_entry *host_map__entry(const struct host_map *map, const void *key)
{
	uint32_t index;

	if (map->is_array) {
		memcpy(&index, key, sizeof(index));
		return index < map->n ? &map->entries[index] : NULL;
	}
	for (uint32_t i = 0; i < map->n; i++)
		if (memcmp(map->entries[i].key, key, map->key_size) == 0)
			return &map->entries[i];
	return NULL;
}

static void *fetch(const struct host_map *map, const void *key)
{
	struct host_entry *entry;
	void *value;

	if (!host.fetch || map->is_array || !map->value_size)
		return NULL;
	value = calloc(1, map->value_size);
	if (value && host.fetch(map, key, value) && !host_map__update(map->map, key, value)) {
		free(value);
		entry = host_map__entry(map, key);
		entry->is_changed = false;
		return entry->value;
	}
	free(value);
	return NULL;
}

/* Returns the value of @key in @map. If no map has the address @map, it is an inner map, which is
 * represented by its only value. */
void *host_map__lookup(const void *map, const void *key)
{
	const struct host_map *host_map = host_map__find(map);
	const struct host_entry *entry;

	if (!host_map)
		return (void *)map;
	entry = host_map__entry(host_map, key);
	return entry ? entry->value : fetch(host_map, key);
}

long host_map__update(const void *map, const void *key, const void *value)
{
	struct host_map *host_map = host_map__find(map);
	struct host_entry *entry = host_map__entry(host_map, key);

	if (!entry) {
		if (host_map->is_array || host_map->n == host_map->max)
			return -E2BIG;
		entry = &host_map->entries[host_map->n++];
		memcpy(entry->key, key, host_map->key_size);
		entry->value = host_map->value_size ? calloc(1, host_map->value_size) : NULL;
	}
	entry->is_changed = true;
	if (host_map->value_size)
		memcpy(entry->value, value, host_map->value_size);
	else
		entry->value = (void *)value;
	return 0;
}

long host_map__delete(const void *map, const void *key)
{
	struct host_map *host_map = host_map__find(map);
	struct host_entry *entry = host_map__entry(host_map, key);

	if (!entry || host_map->is_array)
		return -ENOENT;
	if (host_map->value_size)
		free(entry->value);
	*entry = host_map->entries[--host_map->n];
	return 0;
}

void host_map__clear(const void *map)
{
	struct host_map *host_map = host_map__find(map);

	for (uint32_t i = 0; i < host_map->n; i++) {
		if (host_map->value_size)
			free(host_map->entries[i].value);
		host_map->entries[i].value = NULL;
	}
	host_map->n = 0;
}

void host_map__reset(const void *map)
{
	struct host_map *host_map = host_map__find(map);

	if (!host_map->is_array)
		host_map__clear(map);
	for (uint32_t i = 0; i < host_map->n; i++)
		if (host_map->value_size)
			memset(host_map->entries[i].value, 0, host_map->value_size);
		else
			host_map->entries[i].value = NULL;
}

void host__done(void)
{
	for (size_t i = 0; i < host.n_maps; i++) {
		host_map__clear(host.maps[i].map);
		munmap(host.maps[i].entries, (host.maps[i].max + 1) * sizeof(struct host_entry));
	}
	host.n_maps = 0;
}

void host__set(const volatile uint32_t *variable, uint32_t value)
{
	uintptr_t size = sysconf(_SC_PAGESIZE), page = (uintptr_t)variable & ~(size - 1);

	mprotect((void *)page, size, PROT_READ | PROT_WRITE); /* read-only with some compilers */
	*(volatile uint32_t *)variable = value;
}

/* --- the target --- */

void host__add_range(uint64_t start, const void *bytes, size_t size)
{
	host.ranges[host.n_ranges++] = (struct host_range) { start, size, bytes };
}

long host__read_user(void *to, uint32_t size, uint64_t from)
{
	void (*interrupt)(void) = host.interrupt;

	host.interrupt = NULL;
	if (interrupt)
		interrupt();
	if (host.memory && !memory__read(host.memory, from, to, size))
		return 0;
	for (size_t i = 0; !host.memory && i < host.n_ranges; i++) {
		const struct host_range *range = &host.ranges[i];

		if (from >= range->start && size <= range->size &&
		    from - range->start <= range->size - size) {
			memcpy(to, (const char *)range->bytes + (from - range->start), size);
			return 0;
		}
	}
	memset(to, 0, size); /* as the kernel does */
	return -EFAULT;
}

long host__read_str(void *to, uint32_t size, uint64_t from)
{
	char *text = to;

	for (uint32_t i = 0; i < size; i++) {
		if (host__read_user(&text[i], 1, from + i)) {
			memset(to, 0, size); /* as the kernel does */
			return -EFAULT;
		}
		if (!text[i])
			return i + 1;
	}
	text[size - 1] = '\0';
	return size;
}

void host__set_regs(struct pt_regs *regs, const uint64_t *dwarf)
{
	*regs = (struct pt_regs) {
		.rax = dwarf[0],
		.rdx = dwarf[1],
		.rcx = dwarf[2],
		.rbx = dwarf[3],
		.rsi = dwarf[4],
		.rdi = dwarf[5],
		.rbp = dwarf[6],
		.rsp = dwarf[7],
		.r8 = dwarf[8],
		.r9 = dwarf[9],
		.r10 = dwarf[10],
		.r11 = dwarf[11],
		.r12 = dwarf[12],
		.r13 = dwarf[13],
		.r14 = dwarf[14],
		.r15 = dwarf[15],
		.rip = dwarf[16],
		.cs = 0x33, /* __USER_CS */
	};
}

/* Returns three made-up kernel frames, unless there are real ones. */
long host__get_stack(void *to, uint32_t size)
{
	static const uint64_t frames[] = { -3, -2, -1 };

	if (host.kernel) {
		size = size < 8 * host.n_kernel ? size : 8 * host.n_kernel;
		memcpy(to, host.kernel, size);
		return size;
	}
	memcpy(to, frames, sizeof(frames));
	return sizeof(frames);
}

/* --- programs --- */

bool host__tail_call(void *ctx, uint32_t stage)
{
	if (stage >= STAGES_N || !host.stages[stage])
		return false;
	host.stages[stage](ctx);
	return true;
}

long bpf_loop(uint32_t n, long (*step)(uint32_t, void *), void *ctx, uint64_t flags)
{
	uint32_t i = 0;

	(void)flags;
	while (i < n && !step(i++, ctx))
		;
	return i;
}

/* --- the ring --- */

static void keep(uint32_t type, const void *data, size_t size)
{
	if (type == REC_SAMPLE) {
		memcpy(&host.sample, data, size);
		host.sample_bytes = size;
		host.n_samples++;
	} else if (type == REC_STACK) {
		memcpy(&host.stack, data, size);
		host.stack_bytes = size;
		host.n_stacks++;
	} else if (type == REC_UNMAPPED) {
		host.n_unmapped++;
	} else if (type == REC_CODE_OBJECT && host.on_code) {
		host.on_code(data, size);
	}
}

/* Records in the order of their reservation, as in the kernel's ring. A record after one that is
 * not submitted yet has to wait. */
struct host_record {
	struct host_record *next;
	size_t size;
	enum { RESERVED, SUBMITTED, DISCARDED } state;
	uint64_t data[];
};

static struct host_record *first_record, **last_record = &first_record;

static void deliver(void)
{
	struct host_record *record;
	uint32_t type;

	while ((record = first_record) && record->state != RESERVED) {
		first_record = record->next;
		if (!first_record)
			last_record = &first_record;
		memcpy(&type, record->data, sizeof(type));
		if (record->state == SUBMITTED)
			keep(type, record->data, record->size);
		if (record->state == SUBMITTED && host.on_record)
			host.on_record(host.record_ctx, record->data, record->size);
		free(record);
	}
}

static void interrupt_reserve(bool reserved)
{
	void (*interrupt)(bool) = host.at_reserve;

	host.at_reserve = NULL;
	if (interrupt)
		interrupt(reserved);
}

uint64_t host__ring(uint64_t what)
{
	return what == BPF_RB_RING_SIZE ? HOST_RING_BYTES : host.ring_used;
}

void *host__reserve(size_t size)
{
	struct host_record *record;

	interrupt_reserve(false);
	record = host.ring_full ? NULL : malloc(sizeof(*record) + size);
	if (!record)
		return NULL;
	*record = (struct host_record) { .size = size };
	memset(record->data, 0xee, size);
	*last_record = record;
	last_record = &record->next;
	interrupt_reserve(true);
	return record->data;
}

static void end_record(void *data, int state)
{
	struct host_record *record =
		(struct host_record *)((char *)data - offsetof(struct host_record, data));

	record->state = state;
	deliver();
}

void host__submit(void *data)
{
	end_record(data, SUBMITTED);
}

void host__discard(void *data)
{
	end_record(data, DISCARDED);
}

long host__output(const void *data, size_t size)
{
	void *record = host__reserve(size);

	if (!record)
		return -EAGAIN;
	memcpy(record, data, size);
	host__submit(record);
	return 0;
}
