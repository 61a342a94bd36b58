// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/python/python_build.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/common/x86_code.h"

/* --- version --- */

/* "3.9.2", "3.10.0rc1", "3.8.5+" */
static bool parse_version(const char *text, uint32_t *ret_hex)
{
	unsigned int major, minor, micro, serial = 0;
	uint32_t level = 0xf;
	int n = 0;

	if (sscanf(text, "%1u.%2u.%2u%n", &major, &minor, &micro, &n) != 3)
		return false;
	text += n;
	if (*text == 'a' || *text == 'b' || strncmp(text, "rc", 2) == 0) {
		level = *text == 'a' ? 0xa : *text == 'b' ? 0xb : 0xc;
		text += 1 + (*text == 'r');
		if (sscanf(text, "%1u%n", &serial, &n) != 1)
			return false;
		text += n;
	}
	if (*text && strcmp(text, "+") != 0)
		return false;
	*ret_hex = major << 24 | minor << 16 | micro << 8 | level << 4 | serial;
	return true;
}

void python_build__format(uint32_t hex, char *to, size_t size)
{
	uint32_t level = PYTHON_LEVEL(hex);
	int n = snprintf(to, size, "%u.%u.%u", PYTHON_MAJOR(hex), PYTHON_MINOR(hex),
			 PYTHON_MICRO(hex));

	if (level != PYTHON_LEVEL_FINAL)
		snprintf(to + n, size - n, "%s%u",
			 level == 0xa	? "a"
			 : level == 0xb ? "b"
			 : level == 0xc ? "rc"
					: "?",
			 hex & 0xf);
}

int python_build__version(const struct elf_file *file, uint32_t *ret_hex)
{
	struct x86_stub stub;
	char text[16];
	uint64_t vaddr;
	size_t i;

	if (elf_file__find_symbol(file, "Py_Version", &vaddr, NULL) == 0)
		return elf_file__read(file, vaddr, ret_hex, sizeof(*ret_hex)) ? -ENOENT : 0;
	if (x86_stub__read(file, "Py_GetVersion", &stub))
		return -ENOENT;
	for (i = 0; i + 4 <= stub.size; i++) {
		uint64_t at[] = { x86_stub__relative(&stub, i), x86_stub__value(&stub, i) };

		for (size_t k = 0; k < ARRAY_SIZE(at); k++)
			if (elf_file__read(file, at[k], text, sizeof(text)) == 0 &&
			    memchr(text, 0, sizeof(text)) && parse_version(text, ret_hex))
				return 0;
	}
	return -ENOENT;
}

/* --- key --- */

#define KEY_OFFSET 4 /* offset of Py_tss_t.key, behind is_initialized */

/* Returns the link-time address of the Py_tss_t (3.6: int) to which an instruction at byte `i`
 * refers, or 0. The forms are all that gcc and clang were seen to make. */
static uint64_t key_at(const struct x86_stub *stub, uint64_t runtime, size_t i)
{
	const uint8_t *code = stub->code + i;
	uint64_t loaded = x86_stub__loads_edi(stub, i);

	if (i + 5 <= stub->size && code[0] == 0xbf) { /* mov $tss,%edi; add _PyRuntime,%rdi */
		uint64_t value = x86_stub__value(stub, i + 1);

		return value < runtime ? runtime + value : value;
	}
	if (loaded)
		return loaded - (runtime ? KEY_OFFSET : 0);
	if (i + 7 > stub->size)
		return 0;
	if (code[0] == 0x48 && code[1] == 0x8d && code[2] == 0x3d) /* lea tss(%rip),%rdi */
		return x86_stub__relative(stub, i + 3);
	if (!runtime || (code[1] & 0xc7) == 0x84) /* the latter would have a SIB byte */
		return 0;
	if (code[0] == 0x8b && (code[1] & 0xf8) == 0xb8) /* mov key(%reg),%edi */
		return runtime + x86_stub__value(stub, i + 2) - KEY_OFFSET;
	if ((code[0] & 0xfa) == 0x48 && code[1] == 0x8d && (code[2] & 0xc0) == 0x80 &&
	    (code[2] & 7) != 4) /* lea tss(%reg),%reg */
		return runtime + x86_stub__value(stub, i + 3);
	return 0;
}

/* Does any 32-bit value mean this address or that of the key in it? */
static bool refers_to(const struct x86_stub *stub, uint64_t runtime, uint64_t tss)
{
	for (size_t i = 0; i + 4 <= stub->size; i++)
		for (uint64_t at = tss; at <= tss + KEY_OFFSET; at += KEY_OFFSET)
			if (x86_stub__relative(stub, i) == at || x86_stub__value(stub, i) == at ||
			    runtime + x86_stub__value(stub, i) == at)
				return true;
	return false;
}

int python_build__key(const struct elf_file *file, uint64_t runtime, uint64_t size,
		      uint64_t expected, uint64_t *ret_vaddr)
{
	uint64_t found = 0, at;
	struct x86_stub stub;

	if (x86_stub__read(file, "PyGILState_GetThisThreadState", &stub))
		return -ENOENT;
	if (runtime && refers_to(&stub, runtime, expected)) {
		*ret_vaddr = expected;
		return 0;
	}
	for (size_t i = 0; i + 4 <= stub.size; i++) {
		at = key_at(&stub, runtime, i);
		if (!at || at & 3)
			continue;
		if (runtime ? at <= runtime || at - runtime >= size : !x86_code__is_data(file, at))
			continue;
		if (found && found != at)
			return -ENOENT;
		found = at;
	}
	if (!found)
		return -ENOENT;
	*ret_vaddr = found;
	return 0;
}

/* --- thread-local variable --- */

int python_build__tls(const struct elf_file *file, struct x86_tls *ret)
{
	struct x86_stub stub;
	int rc = x86_stub__read(file, "PyGILState_GetThisThreadState", &stub);

	return rc ? rc : x86_stub__tls(&stub, ret);
}

/* --- loops --- */

size_t python_build__loops(const struct elf_file *file, struct runtime_range ret[PYTHON_LOOPS_MAX])
{
	struct x86_functions functions;
	uint64_t vaddr, size;
	size_t n = 0;

	if (elf_file__find_symbol(file, "_PyEval_EvalFrameDefault", &vaddr, &size) || !size)
		return 0;
	ret[n++] = (struct runtime_range) { vaddr, vaddr + size };
	if (x86_functions__read(file, &functions))
		return n;
	n += x86_functions__cold(&functions, file, &ret[0], &ret[n]);
	x86_functions__done(&functions);
	return n;
}

/* Python/ceval.c, from 3.14 on. Not by the size of the loop's function, some 700 bytes: gcc 16
 * makes two parts of others, too, of which the first has no more. */
bool python_build__tail_calls(const struct elf_file *file)
{
	static const char *const names[] = { "_TAIL_CALL_start_frame",
					     "_TAIL_CALL_start_frame.lto_priv.0" };
	uint64_t vaddr;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!elf_file__find_symbol(file, names[i], &vaddr, NULL))
			return true;
	return false;
}

/* None of its functions is exported, but this only it has to say (Python/jit.c, from 3.13 on). */
static const char compiler_says[] = "unable to protect executable memory";

bool python_build__compiles(const struct elf_file *file)
{
	const Elf_Data *data = elf_file__section(file, ".rodata", NULL);

	return data && data->d_buf &&
	       memmem(data->d_buf, data->d_size, compiler_says, sizeof(compiler_says));
}
