// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/usdt_args.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define SYMBOL_BYTES_MAX 256

struct parser {
	const char *at; /* the rest of the text */
	const char *arg;
	const struct elf_file *file; /* or NULL */
	uint64_t pc_vaddr;
	struct err *err;
};

/* names for 8, 4, 2 and 1 bytes */
static const struct {
	const char *names[4];
	enum probe_reg reg;
} registers[] = {
	{ { "rax", "eax", "ax", "al" }, PROBE_RAX },
	{ { "rbx", "ebx", "bx", "bl" }, PROBE_RBX },
	{ { "rcx", "ecx", "cx", "cl" }, PROBE_RCX },
	{ { "rdx", "edx", "dx", "dl" }, PROBE_RDX },
	{ { "rsi", "esi", "si", "sil" }, PROBE_RSI },
	{ { "rdi", "edi", "di", "dil" }, PROBE_RDI },
	{ { "rbp", "ebp", "bp", "bpl" }, PROBE_RBP },
	{ { "rsp", "esp", "sp", "spl" }, PROBE_RSP },
	{ { "r8", "r8d", "r8w", "r8b" }, PROBE_R8 },
	{ { "r9", "r9d", "r9w", "r9b" }, PROBE_R9 },
	{ { "r10", "r10d", "r10w", "r10b" }, PROBE_R10 },
	{ { "r11", "r11d", "r11w", "r11b" }, PROBE_R11 },
	{ { "r12", "r12d", "r12w", "r12b" }, PROBE_R12 },
	{ { "r13", "r13d", "r13w", "r13b" }, PROBE_R13 },
	{ { "r14", "r14d", "r14w", "r14b" }, PROBE_R14 },
	{ { "r15", "r15d", "r15w", "r15b" }, PROBE_R15 },
	{ { "rip", "eip", "", "" }, PROBE_RIP },
};

static int complain(const struct parser *parser, int code, const char *why)
{
	return err__set(parser->err, code, "probe argument '%.*s': %s",
			(int)min_of(strcspn(parser->arg, " "), (size_t)64), parser->arg, why);
}

static bool take(struct parser *parser, char c)
{
	bool found = *parser->at == c;

	parser->at += found;
	return found;
}

/* Reads a decimal or hexadecimal number with an optional sign. Returns false if there is none. */
static bool take_number(struct parser *parser, __s64 *ret)
{
	const char *digits = parser->at + (*parser->at == '-' || *parser->at == '+');
	bool negative = *parser->at == '-';
	uint64_t value;
	char *end;

	if (!isdigit((unsigned char)*digits))
		return false;
	errno = 0;
	value = strtoull(digits, &end, 0);
	if (errno)
		return false;
	*ret = negative ? -value : value;
	parser->at = end;
	return true;
}

/* Reads a register after its '%'. */
static int take_register(struct parser *parser, uint8_t *ret, bool whole)
{
	size_t len = 0, n_spellings = whole ? 1 : ARRAY_SIZE(registers[0].names);

	while (isalnum((unsigned char)parser->at[len]))
		len++;
	for (size_t i = 0; i < ARRAY_SIZE(registers); i++) {
		for (size_t k = 0; k < n_spellings; k++) {
			const char *name = registers[i].names[k];

			if (strlen(name) != len || memcmp(name, parser->at, len) != 0 || !len)
				continue;
			parser->at += len;
			*ret = registers[i].reg;
			return 0;
		}
	}
	return complain(parser, -ENOTSUP, "braid cannot read this register at a probe");
}

/* Reads symbol or symbol+4. The result is the address less that of the site, which is the
 * instruction pointer when the probe fires. */
static int take_symbol(struct parser *parser, __s64 *ret)
{
	char name[SYMBOL_BYTES_MAX];
	size_t len = strspn(parser->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					"0123456789_.$");
	__s64 addend = 0;
	uint64_t vaddr;

	if (!len || len >= sizeof(name))
		return complain(parser, -EINVAL, "not an operand");
	memcpy(name, parser->at, len);
	name[len] = '\0';
	parser->at += len;
	if (*parser->at == '+' || *parser->at == '-')
		if (!take_number(parser, &addend))
			return complain(parser, -EINVAL, "not an operand");
	if (!parser->file || elf_file__find_symbol(parser->file, name, &vaddr, NULL))
		return complain(parser, -ENOTSUP, "the file has no such symbol (stripped?)");
	*ret = vaddr + addend - parser->pc_vaddr;
	return 0;
}

/* Reads the rest after '(': base, index, scale) */
static int take_registers(struct parser *parser, struct probe_arg *arg)
{
	__s64 scale = 1;
	int ret = 0;

	if (take(parser, '%'))
		ret = take_register(parser, &arg->reg, true);
	if (!ret && take(parser, ',')) {
		if (!take(parser, '%'))
			return complain(parser, -EINVAL, "no index register");
		ret = take_register(parser, &arg->index_reg, true);
		if (!ret && take(parser, ',') &&
		    (!take_number(parser, &scale) ||
		     (scale != 1 && scale != 2 && scale != 4 && scale != 8)))
			return complain(parser, -EINVAL, "the scale is not 1, 2, 4 or 8");
		arg->scale_log2 = __builtin_ctzll(scale);
	}
	if (ret)
		return ret;
	if (!take(parser, ')') || (arg->reg == PROBE_REG_NONE && arg->index_reg == PROBE_REG_NONE))
		return complain(parser, -EINVAL, "not an operand");
	if (arg->index_reg == PROBE_RSP || arg->index_reg == PROBE_RIP)
		return complain(parser, -EINVAL, "no index register");
	return 0;
}

static int take_memory(struct parser *parser, struct probe_arg *arg)
{
	bool symbol = false;
	int ret = 0;

	if (*parser->at != '(' && !take_number(parser, &arg->value)) {
		ret = take_symbol(parser, &arg->value);
		symbol = true;
	}
	if (!ret && take(parser, '('))
		ret = take_registers(parser, arg);
	else if (!ret && !symbol) /* an absolute address: no compiler writes that */
		ret = complain(parser, -EINVAL, "not an operand");
	if (ret)
		return ret;
	if (symbol && arg->reg == PROBE_REG_NONE && arg->index_reg == PROBE_REG_NONE)
		arg->reg = PROBE_RIP;
	if (symbol != (arg->reg == PROBE_RIP) ||
	    (arg->reg == PROBE_RIP && arg->index_reg != PROBE_REG_NONE))
		return complain(parser, -ENOTSUP, "symbols can be read relative to %rip only");
	return 0;
}

static int take_operand(struct parser *parser, struct probe_arg *arg)
{
	if (take(parser, '$')) {
		arg->kind = PROBE_ARG_CONSTANT;
		return take_number(parser, &arg->value)
			       ? 0
			       : complain(parser, -EINVAL, "the constant is not a number");
	}
	if (take(parser, '%')) {
		arg->kind = PROBE_ARG_REGISTER;
		return take_register(parser, &arg->reg, false);
	}
	arg->kind = PROBE_ARG_MEMORY;
	return take_memory(parser, arg);
}

static int take_arg(struct parser *parser, struct probe_arg *ret_arg)
{
	struct probe_arg arg = { .reg = PROBE_REG_NONE, .index_reg = PROBE_REG_NONE };
	__s64 size;
	int ret;

	parser->arg = parser->at;
	if (!take_number(parser, &size))
		return complain(parser, -EINVAL, "no size");
	arg.is_signed = size < 0;
	if (size < -8 || size > 8 || __builtin_popcountll(llabs(size)) != 1)
		return complain(parser, -EINVAL, "the size is not 1, 2, 4 or 8");
	arg.size = llabs(size);
	if (take(parser, 'f'))
		return complain(parser, -ENOTSUP, "braid cannot read floating-point arguments");
	if (!take(parser, '@'))
		return complain(parser, -EINVAL, "no '@' after the size");
	ret = take_operand(parser, &arg);
	if (ret)
		return ret;
	if (*parser->at && *parser->at != ' ')
		return complain(parser, -EINVAL, "not an operand");
	*ret_arg = arg;
	return 0;
}

int usdt_args__parse(const char *text, const struct elf_file *file, uint64_t pc_vaddr,
		     struct probe_arg ret[USDT_ARGS_MAX], struct err *err)
{
	struct parser parser = { .at = text, .file = file, .pc_vaddr = pc_vaddr, .err = err };
	struct probe_arg args[USDT_ARGS_MAX];
	int n = 0, rc;

	for (;;) {
		parser.at += strspn(parser.at, " ");
		if (!*parser.at)
			break;
		parser.arg = parser.at;
		if (n == USDT_ARGS_MAX)
			return complain(&parser, -E2BIG, "more than 12 arguments");
		rc = take_arg(&parser, &args[n]);
		if (rc)
			return rc;
		n++;
	}
	memcpy(ret, args, n * sizeof(*args));
	return n;
}
