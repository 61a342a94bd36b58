// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_interpreter.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/jvm.h"
#include "core/base/util.h"
#include "core/target/procfs.h"

#define CODE_BYTES_MAX (1 << 20) /* 75 to 260 KB in JDK 8 to 28 */
#define WORD_BYTES     8
#define FRAME_WORDS    16 /* limit for an interpreted frame below rbp */

/* Loads of r13: 250 to 610 load the bytecode's address in JDK 8 to 28, at most 2 load another
 * word. */
#define LOADS_MIN   32
#define LOADS_RATIO 8 /* to the next most frequent one */

#define SKIPPED_MAX 8 /* instructions between the pushes of a frame; 3 in JDK 25 */
#define METHOD_PUSH 3 /* the position of the Method among them: sender sp, last sp, Method */

/* The bytes of instructions. */
static const uint8_t LOAD_R13[] = { 0x4c, 0x8b, 0x6d };		       /* mov r13, [rbp + ib] */
static const uint8_t ENTER[] = { 0x55, 0x48, 0x8b, 0xec, 0x41, 0x55 }; /* ...; push r13 */
#define PUSH_RBX 0x53
#define PUSH_8	 0x6a
#define PUSH_32	 0x68
#define REX_W	 0x48 /* with any of the lower three bits */
#define MOV_LOAD 0x8b
#define LEA	 0x8d
#define MOD_8	 1 /* [register + ib] */

/* Returns the length of an instruction that loads a register from `[register + ib]`, or computes
 * that address; 0: another instruction. */
static size_t move__bytes(const uint8_t *code, size_t n)
{
	bool has_sib;

	if (n < 5 || (code[0] & 0xf8) != REX_W || (code[1] != MOV_LOAD && code[1] != LEA) ||
	    code[2] >> 6 != MOD_8)
		return 0;
	has_sib = (code[2] & 7) == 4;
	return 4 + has_sib;
}

/* Returns true if the frame that begins at ENTER has its Method in the expected position. */
static bool frame__is_listed(const uint8_t *code, size_t n)
{
	size_t at = sizeof(ENTER), pushes = 1, bytes;

	for (int i = 0; i < SKIPPED_MAX && at < n; i++, at += bytes) {
		if (code[at] == PUSH_RBX)
			return pushes + 1 == METHOD_PUSH;
		bytes = code[at] == PUSH_8 ? 2 : code[at] == PUSH_32 ? 5 : 0;
		pushes += bytes != 0;
		if (!bytes)
			bytes = move__bytes(code + at, n - at);
		if (!bytes)
			break;
	}
	return false;
}

static bool has_listed_frame(const uint8_t *code, size_t n)
{
	const uint8_t *at = code;

	while ((at = memmem(at, n - (at - code), ENTER, sizeof(ENTER)))) {
		if (frame__is_listed(at, n - (at - code)))
			return true;
		at++;
	}
	return false;
}

/* Returns the place from which r13 is loaded most often, in words below rbp. 0: no place stands
 * out. */
static uint32_t find_bcp(const uint8_t *code, size_t n)
{
	const uint8_t *at = code;
	uint32_t counts[FRAME_WORDS + 1] = {}, best = 0, next = 0;

	while ((at = memmem(at, n - (at - code), LOAD_R13, sizeof(LOAD_R13))) &&
	       (size_t)(at - code) + sizeof(LOAD_R13) < n) {
		int bytes = -(int8_t)at[sizeof(LOAD_R13)];

		if (bytes > 0 && bytes % WORD_BYTES == 0 && bytes / WORD_BYTES <= FRAME_WORDS)
			counts[bytes / WORD_BYTES]++;
		at++;
	}
	for (uint32_t i = 1; i <= FRAME_WORDS; i++)
		if (counts[i] > counts[best])
			best = i;
	for (uint32_t i = 1; i <= FRAME_WORDS; i++)
		if (i != best)
			next = max_of(next, counts[i]);
	return counts[best] >= LOADS_MIN && counts[best] >= LOADS_RATIO * next ? best : 0;
}

int jvm_interpreter__read(const uint8_t *code, size_t n, uint32_t *ret_bcp_words)
{
	uint32_t words = find_bcp(code, n);

	if ((words != JVM_BCP_WORDS && words != JVM_BCP_WORDS_8) || !has_listed_frame(code, n))
		return -ENOTSUP;
	*ret_bcp_words = words;
	return 0;
}

int jvm_interpreter__find(const struct jvm_vm *vm, uint32_t *ret_bcp_words)
{
	const struct jvm_proc_rec *rec = jvm_vm__rec(vm);
	uint64_t n = min_of(rec->interpreter_end - rec->interpreter_start, CODE_BYTES_MAX);
	uint8_t *code;
	int rc;

	if (procfs__is_recorded()) {
		*ret_bcp_words = jvm_vm__major(vm) == 8 ? JVM_BCP_WORDS_8 : JVM_BCP_WORDS;
		return 0;
	}
	code = malloc(n + 1);
	if (!code)
		return -ENOMEM;
	rc = jvm_vm__read(vm, rec->interpreter_start, code, n);
	if (!rc)
		rc = jvm_interpreter__read(code, n, ret_bcp_words);
	free(code);
	return rc;
}
