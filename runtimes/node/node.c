// SPDX-License-Identifier: GPL-2.0-or-later
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/node/node_idle.h"
#include "runtimes/node/node_label.h"
#include "runtimes/runtime.h"

/* Node.js, or what else has V8 in it and exports V8's data for debuggers. JavaScript frames are
 * native frames, which V8 chains by frame pointers; their names come from a perf map or a jitdump
 * file, which it writes if it is told so at its start. */

/* In all versions from 18 to 25. */
#define V8_SYMBOL "v8dbg_APIObjectType"

#define V8_LINE_SKEW 0x40 /* of an ELF header: src/diagnostics/perf-jit.cc, LogWriteDebugInfo */

#define INTERPRETED "interpreted functions have no names without --interpreted-frames-native-stack"
#define NO_MAP                                                                                   \
	"V8 writes no map of its code: start it with NODE_OPTIONS='--perf-basic-prof "           \
	"--interpreted-frames-native-stack', or with these options; while it runs it cannot be " \
	"told to"

struct runtime_image {
	char unused;
};

struct runtime_session {
	char unused;
};

/* --- image --- */

static int node__detect(const struct elf_file *file)
{
	uint64_t vaddr;

	return !elf_file__find_symbol(file, V8_SYMBOL, &vaddr, NULL);
}

#define VERSION_BEFORE "/node-v"
#define VERSION_WINDOW (256 * 1024) /* of tens of megabytes, which need not be kept */

/* The version behind the first VERSION_BEFORE in the text that has digits behind it. */
static bool take_version(const char *text, size_t size, char ret[RUNTIME_VERSION_BYTES])
{
	const char *end = text + size;
	size_t n = 0;

	while ((text = memmem(text, end - text, VERSION_BEFORE, strlen(VERSION_BEFORE)))) {
		text += strlen(VERSION_BEFORE);
		if (text < end && isdigit((unsigned char)*text))
			break;
	}
	if (!text)
		return false;
	while (text + n < end && n < RUNTIME_VERSION_BYTES - 1 &&
	       (isdigit((unsigned char)text[n]) ||
		(text[n] == '.' && text + n + 1 < end && isdigit((unsigned char)text[n + 1]))))
		n++;
	snprintf(ret, RUNTIME_VERSION_BYTES, "%.*s", (int)n, text);
	return true;
}

/* "https://nodejs.org/download/release/v20.19.2/node-v20.19.2.tar.gz" */
static int find_version(const struct elf_file *file, char ret[RUNTIME_VERSION_BYTES])
{
	const size_t overlap = strlen(VERSION_BEFORE) + RUNTIME_VERSION_BYTES;
	char *window = malloc(VERSION_WINDOW);
	bool found = false;

	if (!window)
		return -ENOMEM;
	snprintf(ret, RUNTIME_VERSION_BYTES, "(unknown)");
	for (size_t i = 0; !found && i < file->n_segments; i++) {
		const struct elf_segment *segment = &file->segments[i];
		uint64_t at, left;

		for (at = 0; !found && at < segment->filesz; at += VERSION_WINDOW - overlap) {
			left = min_of(segment->filesz - at, (uint64_t)VERSION_WINDOW);
			if (elf_file__read(file, segment->vaddr + at, window, left))
				break;
			found = take_version(window, left, ret);
		}
	}
	free(window);
	return 0;
}

static int node__prepare(const struct elf_file *file, struct runtime_image **ret_image,
			 struct runtime_verdict *ret_verdict)
{
	memset(ret_verdict, 0, sizeof(*ret_verdict));
	*ret_image = calloc(1, sizeof(**ret_image));
	return *ret_image ? find_version(file, ret_verdict->version) : -ENOMEM;
}

static void node__image_free(struct runtime_image *image)
{
	free(image);
}

/* --- session --- */

static int node__open(struct bpf_object *probes, struct runtime_session **ret, struct err *err)
{
	(void)probes;
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : err__set(err, -ENOMEM, "node: out of memory");
}

static void node__close(struct runtime_session *session)
{
	free(session);
}

/* --- instance --- */

#define WORDS_BYTES (256 * 1024)

/* Is the option in the text? V8 takes '_' for '-'. */
static bool has_option(const char *text, const char *option)
{
	size_t len = strlen(option), i;

	for (; *text; text++) {
		for (i = 0; i < len && (text[i] == '_' ? '-' : text[i]) == option[i]; i++)
			;
		if (i == len)
			return true;
	}
	return false;
}

/* Is it among the arguments, or in NODE_OPTIONS? `name`: "cmdline" or "environ". */
static bool is_given(uint32_t pid, const char *name, const char *option)
{
	bool environment = !strcmp(name, "environ"), found = false;
	char path[PROCFS_PATH_BYTES], *words = malloc(WORDS_BYTES), *word;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "%s/%u/%s", procfs__root(), pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && words)
		n = read(fd, words, WORDS_BYTES - 1);
	if (n > 0)
		words[n] = '\0';
	for (word = words; n > 0 && word < words + n && !found; word += strlen(word) + 1)
		if (!environment || !strncmp(word, "NODE_OPTIONS=", strlen("NODE_OPTIONS=")))
			found = has_option(word, option);
	close_fd(&fd);
	free(words);
	return found;
}

static bool has_flag(uint32_t pid, const char *option)
{
	return is_given(pid, "cmdline", option) || is_given(pid, "environ", option);
}

static int node__attach(struct runtime_session *session, const struct runtime_target *target,
			void *ret_record, struct err *err)
{
	uint32_t pid = target->pid;

	(void)session, (void)ret_record;
	if (!has_flag(pid, "--perf-basic-prof") && !has_flag(pid, "--perf-prof") &&
	    !procfs__has_perf_map(pid)) {
		err__set(err, 0, NO_MAP);
		return 1;
	}
	if (!has_flag(pid, "--interpreted-frames-native-stack"))
		err__set(err, 0, INTERPRETED);
	return 0;
}

const struct runtime runtime_node = {
	.name = "node",
	.suffix = "_[j]",
	.versions = "Node.js 18 to 25, with --perf-basic-prof or --perf-prof",
	.idle = node_idle,
	.walker = -1,
	.jit = "[JavaScript]",
	.jitdump_skew = V8_LINE_SKEW,
	.detect = node__detect,
	.prepare = node__prepare,
	.image_free = node__image_free,
	.open = node__open,
	.close = node__close,
	.attach = node__attach,
	.label = node_label__make,
};
