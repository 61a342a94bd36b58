/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_NUMBERED_CODES_H
#define BRAID_NUMBERED_CODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/u64map.h"

/* A runtime's data of its code objects, by the numbers with which the kernel half announces them
 * (rec_code_object.code) and which frame keys contain. A number is used once in a session. A zeroed
 * struct is empty. */
struct numbered_codes {
	struct u64map places; /* number: place in `list`, from 1 */
	struct numbered_code_object {
		void *code;
		uint32_t number;
		bool missed; /* numbered_codes__forget did not find it the last time */
	} * list;	     /* in the order of their numbers' first announcement */
	size_t n, cap;
};

/* Returns NULL if the number is unknown. */
void *numbered_codes__find(const struct numbered_codes *codes, uint32_t number);

/* Returns the code object of a frame key, or NULL if it is unknown. */
void *numbered_codes__of_key(const struct numbered_codes *codes, uint64_t key);

/* Takes ownership of `code`. `free_code` frees the earlier object of the number, or `code` itself
 * on -ENOMEM. */
int numbered_codes__put(struct numbered_codes *codes, uint32_t number, void *code,
			void (*free_code)(void *code));

/* As runtime.forget_codes. */
void numbered_codes__forget(struct numbered_codes *codes, const struct u64map *listed,
			    void (*free_code)(void *code));

/* Idempotent. */
void numbered_codes__done(struct numbered_codes *codes, void (*free_code)(void *code));

#endif
