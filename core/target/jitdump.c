// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/target/jitdump.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/util.h"

#define MAGIC	  0x4a695444
#define VERSION	  1
#define OWN_CLOCK 1 /* JITDUMP_FLAGS_ARCH_TIMESTAMP */

enum { RECORD_LOAD, RECORD_MOVE, RECORD_DEBUG_INFO };

struct header {
	uint32_t magic, version, total_size, elf_machine, pad, pid;
	uint64_t timestamp, flags;
};

struct prefix {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct load {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma, address, size, number;
	/* followed by the name and the code */
};

struct move {
	struct prefix prefix;
	uint32_t pid, tid;
	uint64_t vma, from, to, size, number;
};

struct debug {
	struct prefix prefix;
	uint64_t address, n;
	/* followed by the entries */
};

struct debug_entry {
	uint64_t address;
	uint32_t line, discriminator;
	/* followed by the file's name; "\377": that of the previous entry */
};

#define LINES_BYTES_MAX (128 * 1024) /* for one piece of code; the rest is not read */

/* Bytes of the file that are read at a time. Records are mostly code; long code is never copied. */
#define BUFFER_BYTES (64 * 1024)

struct buffer {
	struct jit_file *file;
	uint64_t file_size;
	uint64_t start;
	size_t n;
	uint8_t *bytes;
};

/* Returns the bytes at @offset, or NULL if the file does not hold all of them yet. */
static const void *buffer__get(struct buffer *buffer, uint64_t offset, size_t size)
{
	if (offset < buffer->start || offset + size > buffer->start + buffer->n) {
		buffer->start = offset;
		buffer->n = jit_file__read(buffer->file, offset, buffer->bytes, BUFFER_BYTES);
		if (buffer->n < size)
			return NULL;
	}
	return buffer->bytes + (offset - buffer->start);
}

/* Returns the bytes of the header, 0 if it is incomplete, or -EBADMSG. */
static int64_t read_header(struct jitdump *dump, struct buffer *buffer)
{
	const struct header *at = buffer__get(buffer, 0, sizeof(*at));
	struct header header;

	if (!at)
		return 0;
	memcpy(&header, at, sizeof(header));
	if (header.magic != MAGIC || header.version != VERSION || header.elf_machine != EM_X86_64 ||
	    header.total_size < sizeof(header) || header.total_size > BUFFER_BYTES)
		return -EBADMSG;
	dump->own_clock = header.flags & OWN_CLOCK;
	dump->started = true;
	return header.total_size;
}

static bool is_user_range(uint64_t start, uint64_t size)
{
	return size && size <= UINT32_MAX && !(start >> 63) && !((start + size - 1) >> 63);
}

static int on_load(struct jitdump *dump, const struct load *load, uint64_t offset,
		   uint64_t since_ns, struct jit_index *index)
{
	struct jit_entry entry = {
		.start = load->address, .since_ns = since_ns, .size = load->size, .text = offset
	};

	if (!is_user_range(load->address, load->size)) {
		dump->skipped++;
		return 0;
	}
	if (dump->lines_of == load->address)
		entry.lines = dump->lines;
	dump->lines = 0;
	dump->lines_of = 0;
	dump->symbols++;
	return jit_index__add(index, &entry);
}

static int on_move(struct jitdump *dump, const struct move *move, uint64_t since_ns,
		   struct jit_index *index)
{
	struct jit_entry entry, removed;
	int rc;

	if (!is_user_range(move->to, move->size) ||
	    !jit_index__find(index, move->from, since_ns, &entry) || entry.start != move->from) {
		dump->skipped++;
		return 0;
	}
	removed = (struct jit_entry) { .start = entry.start,
				       .since_ns = since_ns,
				       .size = entry.size };
	entry.start = move->to;
	entry.since_ns = since_ns;
	rc = jit_index__add(index, &removed);
	return rc ? rc : jit_index__add(index, &entry);
}

static int on_record(struct jitdump *dump, struct buffer *buffer, uint64_t offset,
		     const struct prefix *prefix, uint64_t since_ns, struct jit_index *index)
{
	static const size_t sizes[] = { [RECORD_LOAD] = sizeof(struct load),
					[RECORD_MOVE] = sizeof(struct move),
					[RECORD_DEBUG_INFO] = sizeof(struct debug) };
	union {
		struct load load;
		struct move move;
		struct debug debug;
	} record;
	const void *at;

	if (prefix->id >= ARRAY_SIZE(sizes))
		return 0;
	at = prefix->total_size < sizes[prefix->id]
		     ? NULL
		     : buffer__get(buffer, offset, sizes[prefix->id]);
	if (!at && buffer->file->refused)
		return buffer->file->refused;
	if (!at) {
		dump->skipped++;
		return 0;
	}
	memcpy(&record, at, sizes[prefix->id]);
	if (prefix->id == RECORD_LOAD)
		return on_load(dump, &record.load, offset, since_ns, index);
	if (prefix->id == RECORD_MOVE)
		return on_move(dump, &record.move, since_ns, index);
	dump->lines = offset;
	dump->lines_of = record.debug.address;
	return 0;
}

/* Returns the bytes of the record, 0 if the record is incomplete, -EBADMSG, or an error of
 * jit_index__add(). */
static int64_t read_record(struct jitdump *dump, struct buffer *buffer, uint64_t offset,
			   uint64_t since_ns, uint64_t now_ns, struct jit_index *index)
{
	const void *at = buffer__get(buffer, offset, sizeof(struct prefix));
	struct prefix prefix;
	int64_t rc;

	if (!at)
		return 0;
	memcpy(&prefix, at, sizeof(prefix));
	if (prefix.total_size < sizeof(prefix))
		return -EBADMSG;
	if (offset + prefix.total_size > buffer->file_size)
		return 0;
	if (!dump->own_clock && prefix.timestamp <= now_ns)
		since_ns = prefix.timestamp;
	rc = on_record(dump, buffer, offset, &prefix, since_ns, index);
	return rc ? rc : prefix.total_size;
}

int64_t jitdump__read(struct jitdump *dump, struct jit_file *file, uint64_t max, uint64_t since_ns,
		      uint64_t now_ns, struct jit_index *index)
{
	struct buffer buffer = { .file = file, .bytes = malloc(BUFFER_BYTES) };
	uint64_t offset = file->done;
	int64_t taken = 0;
	struct stat st;

	if (!buffer.bytes)
		return -ENOMEM;
	buffer.file_size = fstat(file->fd, &st) ? 0 : st.st_size;
	file->refused = 0;
	while (!dump->broken && offset - file->done < max) {
		taken = dump->started ? read_record(dump, &buffer, offset, since_ns, now_ns, index)
				      : read_header(dump, &buffer);
		if (taken <= 0)
			break;
		offset += taken;
		if (offset >= JIT_FILE_MAX)
			taken = -ENOSPC;
	}
	free(buffer.bytes);
	if (taken == -EBADMSG) {
		dump->broken = true;
		dump->skipped++;
		taken = 0;
	}
	taken = taken < 0 ? taken : (int64_t)(offset - file->done);
	jit_file__take(file, offset);
	return taken;
}

bool jitdump__name(struct jit_file *file, const struct jit_entry *entry, char *buf, size_t size)
{
	struct load load;
	size_t n;

	if (jit_file__read(file, entry->text, &load, sizeof(load)) != sizeof(load) ||
	    load.prefix.id != RECORD_LOAD || load.size != entry->size ||
	    load.prefix.total_size <= sizeof(load))
		return false;
	n = min_of(load.prefix.total_size - sizeof(load), size - 1);
	n = jit_file__read(file, entry->text + sizeof(load), buf, n);
	buf[n] = '\0';
	return buf[0];
}

/* Finds the line in the entries. All of them must belong to this code: some writers put a length or
 * a name in a wrong place. */
static bool find_line(const uint8_t *at, size_t size, const struct debug *debug, uint64_t code_size,
		      uint64_t address, const char **ret_file, uint32_t *ret_line)
{
	const char *file = NULL;
	const uint8_t *end;
	uint64_t best = 0;
	uint64_t i;

	*ret_file = NULL;
	for (i = 0; i < debug->n && size > sizeof(struct debug_entry); i++) {
		struct debug_entry entry;
		const char *name = (const char *)at + sizeof(entry);

		memcpy(&entry, at, sizeof(entry));
		end = memchr(name, '\0', size - sizeof(entry));
		if (!end)
			break;
		if (entry.address - debug->address > code_size)
			return false;
		if (strcmp(name, "\377") != 0)
			file = name;
		if (file && entry.address <= address && entry.address >= best) {
			best = entry.address;
			*ret_file = file;
			*ret_line = entry.line;
		}
		size -= end + 1 - at;
		at = end + 1;
	}
	return *ret_file;
}

bool jitdump__line(struct jit_file *file, const struct jit_entry *entry, uint64_t address,
		   uint32_t skew, char *buf, size_t size, uint32_t *ret_line)
{
	const char *name;
	struct debug debug;
	uint8_t *bytes;
	bool found;
	size_t n;

	if (!entry->lines ||
	    jit_file__read(file, entry->lines, &debug, sizeof(debug)) != sizeof(debug) ||
	    debug.prefix.id != RECORD_DEBUG_INFO || debug.prefix.total_size <= sizeof(debug))
		return false;
	n = min_of(debug.prefix.total_size - sizeof(debug), (size_t)LINES_BYTES_MAX);
	bytes = malloc(n);
	if (!bytes)
		return false;
	n = jit_file__read(file, entry->lines + sizeof(debug), bytes, n);
	found = find_line(bytes, n, &debug, (uint64_t)entry->size + skew,
			  debug.address + (address - entry->start) + skew, &name, ret_line) &&
		*ret_line;
	if (found)
		snprintf(buf, size, "%s", name);
	free(bytes);
	return found;
}
