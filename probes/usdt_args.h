/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_USDT_ARGS_H
#define BRAID_USDT_ARGS_H

#include <stdint.h>

#include "bpf/probe_rec.h"
#include "core/base/err.h"
#include "core/elf/elf_file.h"

/* The argument string of a probe site: SIZE@OPERAND for each argument, with operands as an x86-64
 * assembler writes them. -4@%eax, 8@16(%rsp), 1@-8(%rbp,%rax,4), -4@$5. */

#define USDT_ARGS_MAX 12 /* STAP_PROBE12, <sys/sdt.h> */

/* Fills `ret` and returns the number of arguments, or a negative errno with the sentence in `err`
 * (then `ret` is untouched): -EINVAL for what is no argument, -ENOTSUP for what is one but cannot
 * be read at a probe (vector registers, other segments), -E2BIG for too many.
 *
 * An operand that names a symbol, 8@counter+4(%rip), is read relative to the site: `file` (where
 * the symbol is looked up) and `pc_vaddr` are for that. Without a file, or the symbol, -ENOTSUP. */
int usdt_args__parse(const char *text, const struct elf_file *file, uint64_t pc_vaddr,
		     struct probe_arg ret[USDT_ARGS_MAX], struct err *err);

#endif
