/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_EVENT_VALUES_H
#define BRAID_EVENT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/values.h"
#include "core/base/err.h"
#include "core/profile/sink.h"

/* The values that an event records with each sample, as written after its name:
 *
 *   (VALUE, ...)   VALUE: [NAME=]ARGUMENT[:TYPE], or _ for an argument that is not recorded
 *   ARGUMENT       a name, argN, or a path of the kernel's fields: file->f_inode->i_ino
 *   TYPE           s8 to s64, u8 to u64, ptr, str or ustr
 *
 * An argument without a number stands for the one at its position, unless the kernel's types name
 * the arguments. The values are recorded as labels of the samples. */

#define VALUE_NAME_BYTES    40
#define VALUE_PATH_BYTES    100
#define VALUE_ARGUMENTS_MAX 12
#define VALUE_UNREADABLE    "[unreadable]" /* the text of such a value */
#define VALUE_EMPTY	    "[empty]"	   /* replaces an empty text, which labels lack */

struct value_type {
	const char *name;
	uint8_t bytes; /* 0: a text */
	bool is_signed, is_pointer, is_text;
	bool is_user; /* a text in the target's memory, at an event of the kernel */
};

struct event_value {
	char label[sizeof(VALUE_LABEL) + VALUE_NAME_BYTES];
	char path[VALUE_PATH_BYTES]; /* the argument and its fields, as written */
	uint32_t argument;	     /* number of the argument from 1, by argN or by its position */
	bool by_number;		     /* it was written as argN */
	const struct value_type *type; /* NULL: none was written */
	struct value_spec spec;	       /* set by event_kind.values */
};

/* The functions or probes of an event's pattern, numbered from 1 (rec_values.place). */
#define EVENT_PLACES_MAX 1000
#define PLACE_NAME	 "function" /* name of the value that says which one it was */
struct event_places {
	char **names; /* owned */
	size_t n, cap;
};

/* Returns the number of the place, which it adds if it is new; 0: there are too many, or out of
 * memory. */
uint32_t event_places__add(struct event_places *places, const char *name);
void event_places__done(struct event_places *places); /* idempotent */

struct event_values {
	struct event_value list[VALUES_MAX];
	uint32_t n;
	bool is_all;			   /* the list was empty: all arguments */
	bool by_place;			   /* the event has a pattern */
	const struct event_places *places; /* those of the event; borrowed; NULL: none */
};

static inline bool event_values__are_recorded(const struct event_values *values)
{
	return values->n || values->is_all || values->by_place;
}

/* Returns true if the parenthesis at @at, in @text, begins the receiver of a method of Go:
 * main.(*server).handle. It begins no list, and its star is no pattern. */
static inline bool go_receiver__begins(const char *text, const char *at)
{
	return at > text && at[-1] == '.' && at[0] == '(' && at[1] == '*';
}

/* Moves the list at the end of @name, if there is one, to @ret, which has no `spec` yet. Returns 0,
 * or -EINVAL with a message. */
int event_values__parse(char *name, struct event_values *ret, struct err *err);

/* Returns the name that users see. */
static inline const char *event_value__name(const struct event_value *value)
{
	return value->label + sizeof(VALUE_LABEL) - 1;
}

/* Refuses paths with fields, and arg0, which have a meaning only at events of the kernel. Returns
 * 0, or -EINVAL with a message. */
int event_values__check_paths(const struct event_values *values, struct err *err);

/* Complete the values, which are the arguments at the entry of a function, or its result. They
 * belong to a @kind, for messages. Return 0, or -EINVAL with a message. */
int event_values__of_entry(struct event_values *values, const char *kind, struct err *err);
int event_values__of_return(struct event_values *values, const char *kind, struct err *err);

/* As event_values__of_entry(), for the entry of a system call, at its tracepoint. */
int event_values__of_syscall(struct event_values *values, struct err *err);

/* Likewise for arguments of a kernel's tracepoint or function @name, by the kernel's types. */
int event_values__of_tracepoint(struct event_values *values, const char *name, struct err *err);
int event_values__of_kernel(struct event_values *values, const char *name, struct err *err);

/* Makes the list of a USDT probe's values for a site with the arguments @args. Returns 0, or
 * -EINVAL with a message. */
int event_values__of_site(const struct event_values *values, const struct probe_arg *args, size_t n,
			  struct value_list *ret, struct err *err);

/* Returns argument number @argument, from 1, at the entry of a function. @bytes is its size. */
struct probe_arg value__of_function(uint32_t argument, uint32_t bytes);

/* Applies a type to the last step of a value. */
void value_spec__set_type(struct value_spec *spec, const struct value_type *type);

/* Converts completed values. */
void event_values__list(const struct event_values *values, struct value_list *ret);

/* the texts of a sample's values */
struct value_texts {
	char list[VALUES_MAX][VALUE_TEXT_BYTES];
};
#define VALUE_LABELS_MAX (VALUES_MAX + 1) /* values and PLACE_NAME */

/* Returns true if the record, of @size bytes, is well-formed. */
bool values__are_sane(const struct rec_values *rec, size_t size);

/* Writes the values of a well-formed record to @texts, and the labels to @labels
 * (VALUE_LABELS_MAX), which borrow them. Returns their number. */
size_t values__decode(const struct event_values *values, const struct rec_values *rec,
		      struct value_texts *texts, struct sink_label *labels);

#endif
