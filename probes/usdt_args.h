/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_USDT_ARGS_H
#define BRAID_USDT_ARGS_H

#include <stdint.h>

#include "bpf/probe_rec.h"
#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* The argument string of a probe site: SIZE@OPERAND for each argument, with operands in the syntax
 * of x86-64 assemblers, such as -4@%eax, 8@16(%rsp), 1@-8(%rbp,%rax,4), -4@$5. */

#define USDT_ARGS_MAX 12 /* STAP_PROBE12, <sys/sdt.h> */

/* Parses @text into @ret. Returns the number of arguments, or a negative errno with a message and
 * @ret unchanged. The errors are -EINVAL for malformed text and -E2BIG for too many arguments.
 * -ENOTSUP is for arguments that cannot be read at a probe (vector registers, other segments).
 *
 * An operand with a symbol, 8@counter+4(%rip), is relative to the site at @pc_vaddr. @file has the
 * symbol; without a file or the symbol the result is -ENOTSUP. */
int usdt_args__parse(const char *text, const struct elf_file *file, uint64_t pc_vaddr,
		     struct probe_arg ret[USDT_ARGS_MAX], struct err *err);

#endif
