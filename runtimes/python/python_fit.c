// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_fit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/target/procfs.h"

/* Numbers of frames and threads that are read, since a process may claim any number of them. */
#define FRAMES_MAX   500 /* in a thread, from the innermost on */
#define THREADS_MAX  8
#define NAME_MAX_LEN 1024
#define ATTEMPTS     16 /* the process runs meanwhile */
#define LINE_MAX     (1 << 24)

/* PyTypeObject, Include/cpython/object.h: behind the head of objects with a size */
#define TYPE_BASIC_SIZE 16

/* PyCodeObject, Include/cpython/code.h: co_firstlineno, five other ints, co_version */
#define FIRST_LINE_TO_VERSION 24

#define CODE_UNIT_BYTES 2
#define TAGS		7 /* tag bits of a reference in a frame */
#define LAST_OWNER	6 /* enum _frameowner, pycore_frame.h; 3.15: 5 */

struct reader {
	uint32_t pid;
	const struct python_version *version;
	const struct python_offsets *offsets;
	uint64_t interpreters; /* address of the pointer to the first one */
	/* Addresses of types. */
	uint64_t code, unicode, bytes, dict, tuple;
};

static bool read_at(const struct reader *reader, uint64_t at, void *to, size_t size)
{
	return at && procfs__read_memory(reader->pid, at, to, size);
}

static bool read_word(const struct reader *reader, uint64_t at, uint64_t *ret)
{
	return read_at(reader, at, ret, sizeof(*ret));
}

/* The type is the last word of an object's head. */
static bool has_type(const struct reader *reader, uint64_t object, uint64_t type)
{
	uint64_t its;

	return object && !(object & TAGS) &&
	       read_word(reader, object + reader->offsets->object_bytes - 8, &its) && its == type;
}

/* The object that a field refers to, if it has the type. */
static bool read_object(const struct reader *reader, uint64_t at, uint64_t type, uint64_t *ret)
{
	return read_word(reader, at, ret) && has_type(reader, *ret, type);
}

const char *python_fit__offsets(const struct python_version *version)
{
	const struct python_offsets *offsets = &version->offsets;

	if (offsets->object_bytes != 16)
		return "build without the GIL";
	/* Names and tables of a code object are neighbours: file, name, qualified name, lines. */
	if (offsets->code_name != offsets->code_file + 16 ||
	    offsets->code_line_table != offsets->code_name + 8 ||
	    offsets->code_version != offsets->code_first_line + FIRST_LINE_TO_VERSION)
		return "code objects";
	return offsets->interp_gil ? NULL : "lock of the interpreter";
}

/* --- texts --- */

/* Reads an ASCII text: its length is a word behind the head, and a NUL ends it. */
static bool read_text(const struct reader *reader, uint64_t at, char text[NAME_MAX_LEN + 1])
{
	uint64_t object, len;

	if (!read_object(reader, at, reader->unicode, &object) ||
	    !read_word(reader, object + reader->offsets->object_bytes, &len) || !len ||
	    len > NAME_MAX_LEN ||
	    !read_at(reader, object + reader->offsets->unicode_ascii_data, text, len + 1))
		return false;
	return strnlen(text, len + 1) == len;
}

/* --- frames --- */

/* Is the qualified name the name, or does it end with a dot and the name? */
static bool is_qualified(const char *qualname, const char *name)
{
	size_t extra = strlen(qualname) - strlen(name);

	return strlen(qualname) >= strlen(name) && strcmp(qualname + extra, name) == 0 &&
	       (!extra || qualname[extra - 1] == '.');
}

/* Names of the code at @code. They may have other characters than ASCII, whose place is not
 * checked: then they prove nothing. */
static const char *check_names(const struct reader *reader, uint64_t code, bool *ret_proven)
{
	const struct python_offsets *offsets = reader->offsets;
	char name[NAME_MAX_LEN + 1], qualname[NAME_MAX_LEN + 1], path[NAME_MAX_LEN + 1];
	uint64_t object;

	for (int i = 0; i <= 2; i++)
		if (!read_object(reader, code + offsets->code_file + 8 * i, reader->unicode,
				 &object))
			return "names of code objects";
	*ret_proven = read_text(reader, code + offsets->code_name - 8, name) &&
		      read_text(reader, code + offsets->code_name, qualname) &&
		      read_text(reader, code + offsets->code_file, path);
	return !*ret_proven || is_qualified(qualname, name) ? NULL : "names of code objects";
}

/* Names, lines and instructions of the code at @code, of which the frame is at @instr. */
static const char *check_code(const struct reader *reader, uint64_t code, uint64_t instr,
			      bool *ret_proven)
{
	const struct python_offsets *offsets = reader->offsets;
	uint64_t object, units, size;
	const char *part = check_names(reader, code, ret_proven);
	int32_t first_line;

	if (part)
		return part;
	if (!read_object(reader, code + offsets->code_line_table, reader->bytes, &object) ||
	    !read_object(reader, code + offsets->code_version + 4, reader->tuple, &object) ||
	    !read_at(reader, code + offsets->code_first_line, &first_line, sizeof(first_line)) ||
	    first_line < 0 || first_line > LINE_MAX)
		return "lines of code objects";
	/* The code's instructions follow its fields, whose size its type has. */
	if (!read_word(reader, reader->code + offsets->object_bytes + TYPE_BASIC_SIZE, &size) ||
	    size != offsets->code_bytecode ||
	    !read_word(reader, code + offsets->object_bytes, &units) || !units ||
	    instr & (CODE_UNIT_BYTES - 1) ||
	    instr + CODE_UNIT_BYTES - (code + size) > units * CODE_UNIT_BYTES)
		return "instructions";
	return NULL;
}

/* Follows the frames of a thread. Each executes code, or stands for a call from C. */
static const char *check_frames(const struct reader *reader, uint64_t frame, size_t *ret_n)
{
	const struct python_offsets *offsets = reader->offsets;
	uint64_t object, instr;
	const char *part;
	uint8_t owner = 0;
	bool is_proven;
	size_t n;

	*ret_n = 0;
	for (n = 0; frame && n < FRAMES_MAX; n++) {
		if (!read_word(reader, frame + offsets->frame_code, &object) ||
		    !read_word(reader, frame + offsets->frame_instr, &instr) ||
		    !read_at(reader, frame + offsets->frame_owner, &owner, sizeof(owner)) ||
		    owner > LAST_OWNER)
			return "frames";
		object &= ~(uint64_t)TAGS;
		if ((owner >= PYTHON_OWNER_SHIM) == has_type(reader, object, reader->code))
			return "frames";
		is_proven = false;
		part = owner < PYTHON_OWNER_SHIM ? check_code(reader, object, instr, &is_proven)
						 : NULL;
		if (part)
			return part;
		*ret_n += is_proven;
		if (!read_word(reader, frame + offsets->frame_previous, &frame))
			return "frames";
	}
	return n == FRAMES_MAX || (!frame && (!n || owner >= PYTHON_OWNER_SHIM)) ? NULL : "frames";
}

/* --- threads --- */

/* A thread has its own id: in its pthread_t, the first word of which is its address, and in /proc.
 */
static bool has_ids(const struct reader *reader, uint64_t tstate)
{
	uint64_t thread, self, tid;
	char path[64];

	if (!read_word(reader, tstate + reader->offsets->tstate_thread_id, &thread) ||
	    !read_word(reader, thread, &self) || self != thread ||
	    !read_word(reader, tstate + reader->offsets->tstate_native_id, &tid) || !tid ||
	    tid > INT32_MAX)
		return false;
	if (procfs__namespace_tid(reader->pid, reader->pid) != reader->pid)
		return true; /* its numbers are others than those of /proc */
	snprintf(path, sizeof(path), "%s/%u/task/%u", procfs__root(), reader->pid, (uint32_t)tid);
	return procfs__is_recorded() || access(path, F_OK) == 0;
}

static const char *check_threads(const struct reader *reader, uint64_t interpreter, size_t *ret_n)
{
	uint64_t tstate, its, frame, previous;
	const char *part = NULL;
	size_t frames;

	*ret_n = 0;
	if (!read_word(reader, interpreter + reader->offsets->interp_threads, &tstate))
		return "interpreters";
	if (!read_word(reader, tstate, &previous) || previous) /* it is the first one */
		return "interpreters";
	for (size_t n = 0; tstate && !part && n < THREADS_MAX; n++) {
		if (!read_word(reader, tstate + PYTHON_TSTATE_INTERP, &its) || its != interpreter)
			return "threads";
		if (!has_ids(reader, tstate))
			return "ids of threads";
		if (!read_word(reader, tstate + reader->offsets->tstate_frame, &frame))
			return "threads";
		part = check_frames(reader, frame, &frames);
		*ret_n += frames;
		if (!read_word(reader, tstate + PYTHON_TSTATE_NEXT, &tstate))
			return "threads";
	}
	return part;
}

/* Returns true if @tstate is the state of a thread of @interpreter. */
static bool is_tstate(const struct reader *reader, uint64_t tstate, uint64_t interpreter)
{
	uint64_t its;

	return read_word(reader, tstate + PYTHON_TSTATE_INTERP, &its) && its == interpreter;
}

static const char *check_interpreter(const struct reader *reader, uint64_t interpreter,
				     size_t *ret_n)
{
	const struct python_offsets *offsets = reader->offsets;
	uint64_t object, gil, holder, next, tstate;
	int32_t locked;

	if (reader->version->modules &&
	    !read_object(reader, interpreter + reader->version->modules, reader->dict, &object))
		return "modules";
	if (!read_word(reader, interpreter + offsets->interp_gil, &gil) ||
	    !read_word(reader, gil + PYTHON_GIL_HOLDER, &holder) ||
	    !read_at(reader, gil + PYTHON_GIL_LOCKED, &locked, sizeof(locked)) || locked < -1 ||
	    locked > 1 || !is_tstate(reader, holder, interpreter))
		return "lock of the interpreter";
	if (!read_word(reader, interpreter + offsets->interp_next, &next))
		return "interpreters";
	if (next && (!read_word(reader, next + offsets->interp_threads, &tstate) ||
		     !is_tstate(reader, tstate, next)))
		return "interpreters";
	return check_threads(reader, interpreter, ret_n);
}

static bool find_types(const struct elf_file *file, uint64_t bias, struct reader *reader)
{
	const struct {
		const char *name;
		uint64_t *at;
	} types[] = {
		{ "PyCode_Type", &reader->code },   { "PyUnicode_Type", &reader->unicode },
		{ "PyBytes_Type", &reader->bytes }, { "PyDict_Type", &reader->dict },
		{ "PyTuple_Type", &reader->tuple },
	};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (elf_file__find_symbol(file, types[i].name, types[i].at, NULL))
			return false;
		*types[i].at += bias;
	}
	return true;
}

int python_fit__process(uint32_t pid, const struct elf_file *file, uint64_t bias,
			uint64_t interpreters, const struct python_version *version,
			const char **ret_part)
{
	struct reader reader = { .pid = pid,
				 .version = version,
				 .offsets = &version->offsets,
				 .interpreters = interpreters };
	const char *part = "types (stripped)";
	uint64_t interpreter, tstate;
	size_t n = 0;

	if (find_types(file, bias, &reader))
		part = NULL;
	for (int i = 0; !part && !n && i < ATTEMPTS; i++) {
		if (!read_word(&reader, interpreters, &interpreter))
			part = "interpreters";
		else if (!interpreter ||
			 (read_word(&reader, interpreter + version->offsets.interp_threads,
				    &tstate) &&
			  !tstate))
			return -EAGAIN;
		else
			part = check_interpreter(&reader, interpreter, &n);
		if (part && i + 1 < ATTEMPTS)
			part = NULL, n = 0;
	}
	*ret_part = part;
	return part ? -ENOTSUP : n ? 0 : -EAGAIN;
}
