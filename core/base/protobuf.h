/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROTOBUF_H
#define BRAID_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages as bytes, by https://protobuf.dev/programming-guides/encoding/: as much as output needs.
 * A zeroed struct is an empty message. Want of memory sticks: look at `failed` at the end. */
struct protobuf {
	unsigned char *data;
	size_t len, cap;
	bool failed;
};

/* One element of a packed list, which is a part of its own. */
void protobuf__varint(struct protobuf *message, uint64_t value);

/* An integer field; nothing if it is 0, which is what readers take for one that is not there. */
void protobuf__number(struct protobuf *message, int field, uint64_t value);

/* The same in eight bytes. */
void protobuf__fixed64(struct protobuf *message, int field, uint64_t value);

void protobuf__text(struct protobuf *message, int field, const void *text, size_t len);

/* A message or a packed list as a field of another. `part` is empty afterwards. */
void protobuf__part(struct protobuf *message, int field, struct protobuf *part);

/* The fields of `more`, after those that are there. */
void protobuf__append(struct protobuf *message, const struct protobuf *more);

void protobuf__done(struct protobuf *message); /* leaves an empty one */

#endif
