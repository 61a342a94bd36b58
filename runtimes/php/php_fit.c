// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/php/php_fit.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/common/x86_code.h"

/* --- the file --- */

/* Checks that zend_get_executed_lineno uses the offsets of the frame, the exception, and the
 * operation before the exception. The exception's field lies one or two words before that
 * operation's field. */
static bool has_globals(const struct elf_file *file, uint64_t globals,
			const struct php_offsets *offsets)
{
	static const char function[] = "zend_get_executed_lineno";
	uint16_t at = offsets->exception_opline;

	return x86_code__uses(file, function, globals, offsets->current, X86_USE_ANY) &&
	       x86_code__uses(file, function, globals, at, X86_USE_ANY) &&
	       (x86_code__uses(file, function, globals, at - 8, X86_USE_ANY) ||
		x86_code__uses(file, function, globals, at - 16, X86_USE_ANY));
}

/* Checks that zend_fiber_switch_context uses the offsets of the current fiber's context, and of the
 * active fiber in the next word. */
static bool has_fibers(const struct elf_file *file, uint64_t globals,
		       const struct php_offsets *offsets)
{
	static const char function[] = "zend_fiber_switch_context";

	return x86_code__uses(file, function, globals, offsets->fiber, X86_USE_ANY) &&
	       x86_code__uses(file, function, globals, offsets->fiber + 8, X86_USE_ANY);
}

static bool has_generators(const struct elf_file *file, const struct php_offsets *offsets)
{
	return x86_code__uses(file, "zend_generator_check_placeholder_frame", 0,
			      offsets->generator_parent, X86_USE_ANY) &&
	       x86_code__uses(file, "zend_generator_resume", 0, offsets->generator_fake,
			      X86_USE_ADDRESS);
}

const char *php_fit__file(const struct elf_file *file, const struct php_build *build,
			  const struct php_offsets *offsets)
{
	if (build->key_vaddr)
		return "state of threads (ZTS)";
	if (!has_globals(file, build->globals_vaddr, offsets))
		return "executor_globals";
	if (!has_fibers(file, build->globals_vaddr, offsets))
		return "state of fibers";
	return has_generators(file, offsets) ? NULL : "generators";
}

/* --- a process --- */

/* The words of a frame (struct _zend_execute_data), zend_compile.h */
#define FRAME_WORDS  7
#define FRAME_OPLINE 0
#define FRAME_FUNC   3
#define FRAME_PREV   6
#define FRAMES_MAX   10000

/* zend_function.type */
#define INTERNAL_FUNCTION 1
#define USER_FUNCTION	  2
#define EVAL_CODE	  4

/* zend_op, zend_compile.h; the last operation of a function, zend_vm_opcodes.h */
#define OP_BYTES	    32
#define OP_LINE		    24
#define OP_CODE		    28
#define OPS_MAX		    (1U << 24)
#define OP_RETURN	    62
#define OP_RETURN_BY_REF    111
#define OP_GENERATOR_RETURN 161

/* zend_string, zend_types.h: type, length, characters */
#define STRING_TYPE   4
#define STRING_LENGTH 16
#define STRING_CHARS  24
#define TYPE_MASK     0xf
#define TYPE_STRING   6
#define NAME_MAX_LEN  4096

#define ATTEMPTS 16 /* the process runs meanwhile */

struct reader {
	uint32_t pid;
	const struct php_offsets *offsets;
};

static bool read_at(const struct reader *reader, uint64_t at, void *to, size_t size)
{
	return at && procfs__read_memory(reader->pid, at, to, size);
}

/* Checks the words before the current frame: top and end of PHP's stack, its page, and the size of
 * pages. A page begins with its top and its end. Returns 0, -EAGAIN or -ENOTSUP. */
static int check_stack(const struct reader *reader, uint64_t globals, uint64_t *ret_frame)
{
	struct {
		uint64_t top, end, page, page_bytes, frame;
	} stack;
	uint64_t end;

	if (!read_at(reader, globals + reader->offsets->current - 32, &stack, sizeof(stack)))
		return -ENOTSUP;
	if (!stack.top && !stack.end && !stack.page)
		return -EAGAIN;
	if (stack.page_bytes < 4096 || stack.page_bytes & (stack.page_bytes - 1) ||
	    stack.top < stack.page || stack.top > stack.end ||
	    !read_at(reader, stack.page + 8, &end, sizeof(end)) || end != stack.end)
		return -ENOTSUP;
	*ret_frame = stack.frame;
	return stack.frame ? 0 : -EAGAIN;
}

static bool is_file_name(const struct reader *reader, uint64_t string)
{
	char text[NAME_MAX_LEN + 1];
	uint64_t len;
	uint32_t type;

	if (!read_at(reader, string + STRING_TYPE, &type, sizeof(type)) ||
	    (type & TYPE_MASK) != TYPE_STRING ||
	    !read_at(reader, string + STRING_LENGTH, &len, sizeof(len)) || !len ||
	    len > NAME_MAX_LEN || !read_at(reader, string + STRING_CHARS, text, len + 1) ||
	    text[len])
		return false;
	for (size_t i = 0; i < len; i++)
		if (iscntrl((unsigned char)text[i]))
			return false;
	return true;
}

/* Checks that the frame is at one of its function's operations, and that the last operation
 * returns. */
static const char *check_function(const struct reader *reader, uint64_t function, uint64_t opline)
{
	const struct php_offsets *offsets = reader->offsets;
	uint64_t opcodes, filename, opcodes_end;
	uint32_t last, line, first_line;
	uint8_t code;

	if (!read_at(reader, function + offsets->opcodes, &opcodes, sizeof(opcodes)) ||
	    !read_at(reader, function + offsets->last, &last, sizeof(last)) || !opcodes || !last ||
	    last > OPS_MAX)
		return "operations of functions";
	opcodes_end = opcodes + (uint64_t)last * OP_BYTES;
	if (opline < opcodes || opline >= opcodes_end || (opline - opcodes) % OP_BYTES)
		return "operations of functions";
	if (!read_at(reader, opcodes_end - OP_BYTES + OP_CODE, &code, sizeof(code)) ||
	    (code != OP_RETURN && code != OP_RETURN_BY_REF && code != OP_GENERATOR_RETURN) ||
	    !read_at(reader, opcodes_end - OP_BYTES + OP_LINE, &line, sizeof(line)) ||
	    !read_at(reader, opcodes + OP_LINE, &first_line, sizeof(first_line)) ||
	    line < first_line)
		return "operations of functions";
	if (!read_at(reader, function + offsets->filename, &filename, sizeof(filename)) ||
	    !is_file_name(reader, filename))
		return "files of functions";
	return NULL;
}

/* Follows the frames to the outermost one that runs a script, and checks its function. */
static const char *check_frames(const struct reader *reader, uint64_t frame)
{
	uint64_t words[FRAME_WORDS], function = 0, opline = 0;
	uint8_t type;
	int n;

	for (n = 0; frame && n < FRAMES_MAX; n++) {
		if (frame & 7 || !read_at(reader, frame, words, sizeof(words)))
			return "frames";
		frame = words[FRAME_PREV];
		if (!words[FRAME_FUNC])
			continue;
		if (!read_at(reader, words[FRAME_FUNC], &type, sizeof(type)) ||
		    (type != INTERNAL_FUNCTION && type != USER_FUNCTION && type != EVAL_CODE))
			return "frames";
		if (type == INTERNAL_FUNCTION)
			continue;
		function = words[FRAME_FUNC];
		opline = words[FRAME_OPLINE];
	}
	return n < FRAMES_MAX && function ? check_function(reader, function, opline) : "frames";
}

/* Checks the handler's offset with zend_pass_function, a C function that each build exports. */
static bool has_handler(const struct reader *reader, const struct elf_file *file, uint64_t bias)
{
	uint64_t vaddr, size, handler;
	uint8_t type;

	if (elf_file__find_symbol(file, "zend_pass_function", &vaddr, &size) ||
	    !fits_in(reader->offsets->handler, sizeof(handler), size) ||
	    !read_at(reader, bias + vaddr, &type, sizeof(type)) || type != INTERNAL_FUNCTION ||
	    !read_at(reader, bias + vaddr + reader->offsets->handler, &handler, sizeof(handler)))
		return false;
	return x86_code__is_code(file, handler - bias);
}

int php_fit__process(uint32_t pid, const struct elf_file *file, uint64_t bias,
		     const struct php_build *build, const struct php_offsets *offsets,
		     const char **ret_part)
{
	struct reader reader = { pid, offsets };
	const char *part = NULL;
	uint64_t frame;
	int ret;

	for (int i = 0; i < ATTEMPTS; i++) {
		ret = check_stack(&reader, bias + build->globals_vaddr, &frame);
		if (ret == -EAGAIN)
			return ret;
		part = ret ? "stack" : check_frames(&reader, frame);
		if (!part)
			break;
	}
	if (!part && !has_handler(&reader, file, bias))
		part = "functions in C";
	*ret_part = part;
	return part ? -ENOTSUP : 0;
}
