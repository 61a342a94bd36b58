// SPDX-License-Identifier: GPL-2.0-or-later
/* mksamples FILE: writes a recording of the samples on standard input, one line each, with tabs
 * between the fields:
 *
 *   EVENT UNIT VALUE STATE LOCK SYSCALL PID:COMM TID:THREAD FRAME;FRAME;... [OBJECT [TASK]]
 *
 * STATE: running, preempted, waiting, stopped or -. LOCK: held, free, waited or -. SYSCALL: a name
 * or -. Tasks are called goroutines. Frames come root first:
 *
 *   k:NAME                                of the kernel
 *   n:NAME or n:NAME@IMAGE                native; NAME may be empty
 *   n:NAME@IMAGE+ADDRESS                  native, at that address, with the file's present build id
 *   KIND:NAME@FILE or KIND:NAME@FILE:LINE of a runtime */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/strtab.h"
#include "core/base/syscalls.h"
#include "core/base/util.h"
#include "core/capture/ids.h"
#include "core/elf/elf_file.h"
#include "core/profile/profile.h"
#include "core/store/recording.h"

#define FIELDS 9
#define STRIDE 1024 /* bytes of stack per native frame */

static struct recording *recording;
static struct ids *ids;
static struct strtab *texts; /* keys of events, processes and frames */
static uint32_t *numbers;    /* by text: an id; 0: not assigned yet */
static size_t cap_numbers;
static int n_kinds = KIND_RUNTIME;
static struct err err;

static void check(int code)
{
	if (!code)
		return;
	fprintf(stderr, "mksamples: %s\n", err.text);
	exit(1);
}

static uint32_t *number_of(const char *sort, const char *text)
{
	char key[1000];
	uint32_t id;
	size_t cap = cap_numbers;

	snprintf(key, sizeof(key), "%s\t%s", sort, text);
	if (strtab__intern(texts, key, &id) ||
	    array__reserve(&numbers, &cap_numbers, id + 1, sizeof(*numbers)))
		abort();
	memset(numbers + cap, 0, (cap_numbers - cap) * sizeof(*numbers));
	return &numbers[id];
}

static uint8_t choice(const char *text, const char *const *names, uint8_t n)
{
	for (uint8_t i = 0; i < n; i++)
		if (!strcmp(text, names[i]))
			return i;
	fprintf(stderr, "mksamples: what is '%s'?\n", text);
	exit(2);
}

static uint32_t event_of(const char *name, const char *unit)
{
	uint32_t *id = number_of("event", name);

	if (!*id)
		check(ids__event(ids, &(struct sink_event) { name, unit }, id, &err));
	return *id;
}

/* Parses "42:name". Returns the name. */
static const char *after_number(const char *text, uint32_t *ret_number)
{
	char *end;

	*ret_number = strtoul(text, &end, 10);
	return *end == ':' ? end + 1 : end;
}

static uint32_t process_of(const char *text)
{
	uint32_t *id = number_of("process", text);
	struct sink_process process = { .start_ticks = 1 };

	process.name = process.command = after_number(text, &process.pid);
	if (!*id)
		check(ids__process(ids, &process, id, &err));
	return *id;
}

static int kind_of(const char *name)
{
	uint32_t *kind = number_of("kind", name);

	if (!*kind) {
		*kind = n_kinds++;
		check(recording__kind(recording, *kind, name, "", &err));
	}
	return *kind;
}

/* Returns the build id in hexadecimal, or "" if there is no such file. */
static const char *build_id_of(const char *path)
{
	static char text[2 * ELF_BUILD_ID_MAX + 1];
	struct elf_file *file;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*text = '\0';
	if (fd < 0 || elf_file__open(fd, path, &file, NULL))
		return text;
	for (size_t i = 0; i < file->build_id_len; i++)
		sprintf(text + 2 * i, "%02x", file->build_id[i]);
	elf_file__free(file);
	return text;
}

static uint32_t frame_of(int kind, uint32_t process, const char *name, const char *file, bool loop)
{
	bool native = kind == KIND_NATIVE;
	struct sink_location location = { kind, name, native ? NULL : file, 0 };
	struct ids_frame frame = { .kind = kind, .loop = loop };
	char key[500], path[400], *address;
	uint32_t id;
	bool new;

	snprintf(path, sizeof(path), "%s", file ? file : "/bin/made");
	address = native ? strstr(path, "+0x") : NULL;
	if (address)
		*address = '\0';

	snprintf(key, sizeof(key), "%s@%s", name, file ? file : "");
	if (!native && file && strrchr(file, ':')) {
		char *line = strrchr(path, ':');

		location.line = strtoul(line + 1, NULL, 10);
		*line = '\0';
		location.file = path;
	}
	if (native)
		check(ids__image(ids, path, address ? build_id_of(path) : "", &frame.image, &err));
	else if (kind != KIND_KERNEL)
		frame.process = process;
	*number_of("address", key) = 1;
	strtab__intern(texts, key, &id);
	frame.address = address ? strtoull(address + 1, NULL, 16) : 64 * (id + 1);
	check(ids__frame(ids, &frame, &id, &new, &err));
	if (new &&*name)
		check(ids__locations(ids, id, &location, 1, &err));
	return id;
}

/* Adds the frames of a sample. A run of frames of a runtime gets the frame of its interpreter's
 * loop outside of it. */
static void add_frames(struct sink_sample *sample, uint32_t process, char *frames)
{
	int64_t offset = 0, in_run = 0;
	char *text;

	while ((text = strsep(&frames, ";")) && *text) {
		char *name = strchr(text, ':'), *file = strrchr(text, '@');
		bool kernel = text[0] == 'k' && text[1] == ':';
		bool native = text[0] == 'n' && text[1] == ':';
		uint32_t *stack = kernel || native ? &sample->native : &sample->runtime;
		uint32_t frame;
		int kind = kernel ? KIND_KERNEL : KIND_NATIVE;

		*name++ = '\0';
		if (file)
			*file++ = '\0';
		if (!kernel && !native) {
			kind = kind_of(text);
			if (!in_run) {
				frame = frame_of(KIND_NATIVE, process, "loop", NULL, true);
				check(ids__node(ids, sample->native, frame, offset += STRIDE,
						&sample->native, &err));
			}
			in_run += 8;
		} else {
			in_run = 0;
			offset += STRIDE;
		}
		frame = frame_of(kind, process, name, file, false);
		check(ids__node(ids, *stack, frame, kernel ? SINK_NO_OFFSET : offset + in_run,
				stack, &err));
	}
}

static void add_sample(char *line, uint64_t number)
{
	static const char *const states[] = { "-", "running", "preempted", "waiting", "stopped" };
	static const char *const locks[] = { "-", "held", "free", "waited" };
	char *fields[FIELDS] = { NULL };
	struct sink_sample sample = { .time_ns = number, .flags = 1 };
	uint32_t process, tid;
	const char *thread;

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 0; i < FIELDS; i++)
		fields[i] = strsep(&line, "\t");
	if (!fields[FIELDS - 1]) {
		fprintf(stderr, "mksamples: line %llu is too short\n", (unsigned long long)number);
		exit(2);
	}
	sample.event = event_of(fields[0], fields[1]);
	sample.value = sample.total = strtoull(fields[2], NULL, 10);
	sample.weight = 1;
	sample.condition.state = choice(fields[3], states, ARRAY_SIZE(states));
	sample.condition.lock = choice(fields[4], locks, ARRAY_SIZE(locks));
	sample.condition.syscall =
		!strcmp(fields[5], "-") ? NO_SYSCALL : syscall__number(fields[5]);
	process = process_of(fields[6]);
	thread = after_number(fields[7], &tid);
	check(ids__thread(ids, process, tid, thread, &sample.thread, &err));
	add_frames(&sample, process, fields[8]);
	sample.object = line ? strtoull(line, &line, 10) : 0;
	sample.task = line ? strtoull(line, NULL, 10) : 0;
	check(ids__sample(ids, &sample, &err));
}

int main(int argc, char **argv)
{
	uint64_t number = 0;
	char *line = NULL;
	size_t size = 0;

	texts = strtab__new();
	if (argc != 2 || !texts)
		return 2;
	check(recording__create(argv[1], false, &recording, &err));
	check(ids__new(recording__sink(recording), &ids, &err));
	check(recording__kind(recording, KIND_KERNEL, "kernel", "_[k]", &err));
	check(recording__kind(recording, KIND_NATIVE, "native", "_[n]", &err));
	check(recording__meta(recording, "target", "made up", &err));
	check(recording__meta(recording, META_TASK, "goroutine", &err));
	while (getline(&line, &size, stdin) > 0)
		add_sample(line, ++number);
	check(recording__close(recording, &err));
	ids__free(ids);
	strtab__free(texts);
	free(numbers);
	free(line);
	return 0;
}
