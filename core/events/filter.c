// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/nearest.h"

#define NESTED_MAX    8 /* maximum nesting of anonymous structs */
#define SUGGESTED_MAX 300

const struct btf_type *filter__type(const struct btf *btf, uint32_t id)
{
	const struct btf_type *type = btf__type_by_id(btf, id);

	for (int i = 0; i < 32 && type; i++) {
		if (!btf_is_mod(type) && !btf_is_typedef(type) && !btf_is_type_tag(type))
			return type;
		type = btf__type_by_id(btf, type->type);
	}
	return NULL;
}

static const char *name_at(const struct btf *btf, uint32_t offset)
{
	const char *name = btf__name_by_offset(btf, offset);

	return name ? name : "";
}

const struct btf_type *filter__arguments(const struct btf *btf, const char *tracepoint,
					 bool *ret_named)
{
	const struct btf_type *type;
	char name[200];
	int id;

	/* The function that calls attached programs: one for each tracepoint since Linux 5.10. */
	snprintf(name, sizeof(name), "__traceiter_%s", tracepoint);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	*ret_named = id > 0;
	if (id > 0)
		return filter__type(btf, btf__type_by_id(btf, id)->type);
	/* The type that attaching uses: a pointer to a prototype. */
	snprintf(name, sizeof(name), "btf_trace_%s", tracepoint);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
	type = id > 0 ? filter__type(btf, id) : NULL;
	type = type && btf_is_ptr(type) ? filter__type(btf, type->type) : NULL;
	return type && btf_is_func_proto(type) ? type : NULL;
}

static void list_one(char *available, const char *name, struct nearest *nearest)
{
	size_t used = strlen(available);

	if (*name)
		nearest__add(nearest, name);
	if (*name && used < SUGGESTED_MAX - 8)
		snprintf(available + used, SUGGESTED_MAX - used, "%s%.*s", used ? ", " : "",
			 (int)(SUGGESTED_MAX - used - 8), name);
	if (strlen(available) >= SUGGESTED_MAX - 8)
		snprintf(available + SUGGESTED_MAX - 8, 8, ", ...");
}

static const char *meant(struct nearest *nearest, char *available)
{
	if (!nearest->n)
		return available;
	snprintf(available, SUGGESTED_MAX, "%s", nearest__text(nearest));
	return available;
}

static int unknown_argument(const struct btf *btf, const struct btf_type *proto, bool named,
			    const char *name, const char *tracepoint, struct err *err)
{
	const struct btf_param *params = btf_params(proto);
	struct nearest nearest = nearest__to(name, strlen(name));
	char available[SUGGESTED_MAX] = "";

	if (btf_vlen(proto) <= 1)
		return err__set(err, -ENOENT,
				"the tracepoint %s has no arguments to filter by. Use pid, tid or "
				"comm of the thread",
				tracepoint);
	for (int i = 1; named && i < btf_vlen(proto); i++)
		list_one(available, name_at(btf, params[i].name_off), &nearest);
	if (!named)
		snprintf(available, sizeof(available), "arg0 to arg%d", btf_vlen(proto) - 2);
	return err__set(err, -ENOENT,
			"the tracepoint %s has no argument '%s'. Choose one of %s, or pid, tid or "
			"comm of the thread",
			tracepoint, name, available);
}

int filter__argument(const struct btf *btf, const struct btf_type *proto, const char *name)
{
	const struct btf_param *params = btf_params(proto);
	char generated[16];

	for (int i = 1; i < btf_vlen(proto); i++) {
		snprintf(generated, sizeof(generated), "arg%d", i - 1);
		if (!strcmp(name_at(btf, params[i].name_off), name) || !strcmp(generated, name))
			return i - 1;
	}
	return -1;
}

/* Names for the current thread in filters of any tracepoint. An argument of the tracepoint with the
 * same name takes precedence. */
static const struct {
	const char *name, *field; /* member of struct task_struct */
} of_thread[] = { { "pid", "tgid" }, { "tid", "pid" }, { "comm", "comm" } };

/* Returns the member for the name; NULL: it is no such name. */
static const char *thread_field(const struct filter_term *term)
{
	for (size_t i = 0; term->n_names == 1 && i < ARRAY_SIZE(of_thread); i++)
		if (!strcmp(term->names[0], of_thread[i].name))
			return of_thread[i].field;
	return NULL;
}

struct field {
	const struct btf_type *type;
	uint64_t offset; /* bytes */
	bool bits;	 /* a bit field */
};

/* Finds a field, also in anonymous structs and unions. */
static bool find_field(const struct btf *btf, const struct btf_type *in, const char *name,
		       int depth, struct field *ret)
{
	const struct btf_member *members = btf_members(in);

	for (int i = 0; i < btf_vlen(in); i++) {
		uint64_t offset = btf_member_bit_offset(in, i);
		const char *its = name_at(btf, members[i].name_off);
		const struct btf_type *type = filter__type(btf, members[i].type);
		struct field inner;

		if (type && !strcmp(its, name)) {
			*ret = (struct field) { type, offset / 8,
						btf_member_bitfield_size(in, i) || offset % 8 };
			return true;
		}
		if (*its || !type || !btf_is_composite(type) || !depth ||
		    !find_field(btf, type, name, depth - 1, &inner))
			continue;
		*ret = inner;
		ret->offset += offset / 8;
		return true;
	}
	return false;
}

static void list_fields(const struct btf *btf, const struct btf_type *in, int depth,
			char *available, struct nearest *nearest)
{
	const struct btf_member *members = btf_members(in);

	for (int i = 0; i < btf_vlen(in); i++) {
		const char *its = name_at(btf, members[i].name_off);
		const struct btf_type *type = filter__type(btf, members[i].type);

		if (*its)
			list_one(available, its, nearest);
		else if (type && btf_is_composite(type) && depth)
			list_fields(btf, type, depth - 1, available, nearest);
	}
}

static int unknown_field(const struct btf *btf, const struct btf_type *in, const char *name,
			 struct err *err)
{
	struct nearest nearest = nearest__to(name, strlen(name));
	char available[SUGGESTED_MAX] = "";

	list_fields(btf, in, NESTED_MAX, available, &nearest);
	return err__set(err, -ENOENT, "the kernel's struct %s has no field '%s': %s %s",
			name_at(btf, in->name_off), name, nearest.n ? "did you mean" : "it has",
			meant(&nearest, available));
}

bool filter__is_char(const struct btf_type *type)
{
	return type && btf_is_int(type) && type->size == 1;
}

bool filter__is_signed(const struct btf_type *type)
{
	return btf_is_int(type)	   ? !!(btf_int_encoding(type) & BTF_INT_SIGNED)
	       : btf_is_enum(type) ? btf_kflag(type)
				   : 0;
}

bool filter__is_number(const struct btf_type *type)
{
	return (btf_is_int(type) || btf_is_any_enum(type)) && type->size && type->size <= 8 &&
	       !(type->size & (type->size - 1));
}

/* Sets the value to compare with, and checks that the type can be compared with it. */
static int finish_test(const struct btf *btf, const struct filter_term *term,
		       const struct btf_type *type, struct filter_test *test, struct err *err)
{
	const char *name = term->names[term->n_names - 1];
	bool pointer = btf_is_ptr(type),
	     text = (btf_is_array(type) &&
		     filter__is_char(filter__type(btf, btf_array(type)->type))) ||
		    (pointer && filter__is_char(filter__type(btf, type->type)));

	if (term->is_text && !text)
		return err__set(err, -ENOTSUP,
				"cannot compare %s with '%s': the argument is not a text", name,
				term->text);
	if (term->is_text) {
		if (pointer) { /* one more step, to the text */
			if (test->n_steps == FILTER_STEPS_MAX)
				return err__set(err, -ENOTSUP,
						"cannot compare %s: too many pointers lead to it",
						name);
			test->n_steps++;
		}
		memcpy(test->text, term->text, sizeof(test->text));
		return 0;
	}
	test->value = term->value;
	test->bytes = pointer ? 8 : type->size;
	if (pointer)
		return 0;
	test->is_signed = filter__is_signed(type);
	if (filter__is_number(type))
		return 0;
	if (text)
		return err__set(
			err, -ENOTSUP,
			"cannot compare %s with a number: it is a text. Compare it with \"...\"",
			name);
	return err__set(
		err, -ENOTSUP,
		"cannot compare %s with a number: it is a %s. Name one of its fields, %s.FIELD",
		name, btf_is_composite(type) ? "struct" : "whole array", name);
}

int filter__follow(const struct filter_term *term, const struct btf *btf,
		   const struct btf_type *type, struct filter_test *test,
		   const struct btf_type **ret_type, struct err *err)
{
	bool in_place = false; /* `type` is at the last offset, instead of behind a pointer */
	struct field field;

	for (size_t i = 1; type && i < term->n_names; i++) {
		const struct btf_type *in = type;

		if (btf_is_ptr(type)) {
			in = filter__type(btf, type->type);
			in_place = false;
		} else if (!in_place) {
			in = NULL; /* an argument that is not a pointer */
		}
		if (!in || !btf_is_composite(in))
			return err__set(err, -ENOENT, "%s has no fields, so there is no %s->%s",
					term->names[i - 1], term->names[i - 1], term->names[i]);
		if (!find_field(btf, in, term->names[i], NESTED_MAX, &field))
			return unknown_field(btf, in, term->names[i], err);
		if (field.bits)
			return err__set(err, -ENOTSUP, "cannot read %s: it is a bit field",
					term->names[i]);
		if (!in_place && test->n_steps == FILTER_STEPS_MAX)
			return err__set(err, -ENOTSUP,
					"cannot read %s: too many pointers lead to it",
					term->names[i]);
		if (!in_place)
			test->offsets[test->n_steps++] = 0;
		if (test->offsets[test->n_steps - 1] + field.offset > UINT16_MAX)
			return err__set(err, -ENOTSUP,
					"cannot read %s: its offset in the struct is 65,536 "
					"bytes or more",
					term->names[i]);
		test->offsets[test->n_steps - 1] += field.offset;
		type = field.type;
		in_place = true;
	}
	if (!type)
		return err__set(err, -ENOTSUP, "cannot read %s: the kernel's BTF lacks its type",
				term->names[term->n_names - 1]);
	*ret_type = type;
	return 0;
}

/* @type: type of the argument. */
static int compile_term(const struct filter_term *term, const struct btf *btf,
			const struct btf_type *type, struct filter_test *test, struct err *err)
{
	int code = filter__follow(term, btf, type, test, &type, err);

	test->op = term->op;
	test->begins = term->begins;
	return code ? code : finish_test(btf, term, type, test, err);
}

/* As compile_term(), for `pid`, `tid` or `comm`: a field of the thread's task. */
static int compile_thread(const struct filter_term *term, const struct btf *btf,
			  struct filter_test *test, struct err *err)
{
	int id = btf__find_by_name_kind(btf, "task_struct", BTF_KIND_STRUCT);
	const struct btf_type *task = id > 0 ? filter__type(btf, id) : NULL;
	struct field field;

	if (!task || !find_field(btf, task, thread_field(term), 0, &field) ||
	    field.offset > UINT16_MAX)
		return err__set(err, -ENOTSUP,
				"cannot compare a thread's %s: the kernel's BTF lacks its offset",
				term->names[0]);
	test->argument = FILTER_THREAD;
	test->op = term->op;
	test->begins = term->begins;
	test->offsets[test->n_steps++] = field.offset;
	return finish_test(btf, term, field.type, test, err);
}

int filter__compile(const struct filter_terms *terms, const struct btf *btf, const char *tracepoint,
		    struct event_filter *ret, struct err *err)
{
	bool named;
	const struct btf_type *proto = filter__arguments(btf, tracepoint, &named);
	int code = 0;

	if (!proto)
		return err__set(
			err, -ENOENT,
			"cannot filter the tracepoint %s: the kernel's BTF lacks its arguments",
			tracepoint);
	ret->required = ret->n;
	for (size_t i = 0; !code && i < terms->n; i++) {
		const struct filter_term *term = &terms->list[i];
		struct filter_test *test = &ret->tests[ret->n];
		int argument = filter__argument(btf, proto, term->names[0]);

		if (ret->n == FILTER_TESTS_MAX)
			return err__set(err, -E2BIG,
					"a filter of this event may have at most %zu comparisons",
					(size_t)(FILTER_TESTS_MAX - ret->required));
		if (argument < 0 && !thread_field(term))
			return unknown_argument(btf, proto, named, term->names[0], tracepoint, err);
		*test = (struct filter_test) { .argument = argument };
		if (argument < 0)
			code = compile_thread(term, btf, test, err);
		else
			code = compile_term(term, btf,
					    filter__type(btf, btf_params(proto)[argument + 1].type),
					    test, err);
		ret->n++;
	}
	return code;
}
