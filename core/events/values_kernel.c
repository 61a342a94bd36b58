// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "core/events/filter.h"
#include "core/events/values.h"

/* Values of tracepoints and of the kernel's functions, by the kernel's types (BTF). */

/* the function or tracepoint */
struct subject {
	const struct btf *btf;
	const char *name;
	const struct btf_type *proto;
	bool named; /* its parameters have names */
	bool is_function;
};

static const struct btf_param *params_of(const struct subject *subject)
{
	/* The first parameter of a tracepoint's function is not one of the tracepoint. */
	return btf_params(subject->proto) + !subject->is_function;
}

static uint32_t count_params(const struct subject *subject)
{
	uint32_t n = btf_vlen(subject->proto);

	return subject->is_function ? n : n ? n - 1 : 0;
}

/* Returns the number, from 1, of the parameter with that name; 0: there is none. */
static uint32_t find_param(const struct subject *subject, const char *name)
{
	for (uint32_t i = 0; subject->named && i < count_params(subject); i++)
		if (!strcmp(btf__name_by_offset(subject->btf, params_of(subject)[i].name_off),
			    name))
			return i + 1;
	return 0;
}

static int no_param(const struct subject *subject, const char *name, struct err *err)
{
	uint32_t n = count_params(subject);
	char available[200] = "";
	size_t used = 0;

	for (uint32_t i = 0; subject->named && i < n && used < sizeof(available) - 1; i++)
		used += snprintf(available + used, sizeof(available) - used, "%s%s", i ? ", " : "",
				 btf__name_by_offset(subject->btf, params_of(subject)[i].name_off));
	if (!subject->named && n)
		snprintf(available, sizeof(available), "arg0 to arg%u", n - 1);
	return err__set(err, -ENOENT, "the %s %s has no argument '%s'. It has %s",
			subject->is_function ? "kernel's function" : "tracepoint", subject->name,
			name, *available ? available : "none");
}

/* Sets the spec of a value of type @type at the end of the steps. */
static int finish(const struct subject *subject, const struct event_value *value,
		  const struct btf_type *type, struct value_spec *spec, struct err *err)
{
	const char *name = event_value__name(value);
	bool pointer = btf_is_ptr(type);
	bool text = (btf_is_array(type) &&
		     filter__is_char(filter__type(subject->btf, btf_array(type)->type))) ||
		    (pointer && filter__is_char(filter__type(subject->btf, type->type)));
	struct value_type own = {};

	if (text)
		own.is_text = true;
	else if (pointer)
		own = (struct value_type) { .bytes = 8, .is_pointer = true };
	else if (filter__is_number(type))
		own = (struct value_type) { .bytes = type->size,
					    .is_signed = filter__is_signed(type) };
	else
		return err__set(err, -ENOTSUP, "cannot record %s: it is a %s", value->path,
				btf_is_composite(type) ? "struct. Name one of its fields, with a "
							 "dot and the field's name at its end"
						       : "whole array");
	if (value->type && value->type->is_text && !text && !pointer &&
	    !(btf_is_int(type) && type->size == 8))
		return err__set(err, -EINVAL, "cannot record %s as a text: it is no address", name);
	if (value->type && !value->type->is_text && btf_is_array(type))
		return err__set(err, -EINVAL, "cannot record %s as a number: it is a text", name);
	if (value->type)
		own = *value->type;
	/* A wider type than that of the field would read its neighbours. */
	if (!own.is_text && !pointer)
		own.bytes = min_of(own.bytes, (uint8_t)type->size);
	value_spec__set_type(spec, &own);
	if (!own.is_text || btf_is_array(type))
		return 0;
	if (spec->n_steps == VALUE_STEPS_MAX)
		return err__set(err, -ENOTSUP, "cannot record %s: too many pointers lead to it",
				name);
	spec->offsets[spec->n_steps++] = 0;
	return 0;
}

static int set_value(const struct subject *subject, struct event_value *value, struct err *err)
{
	struct value_spec *spec = &value->spec;
	const struct btf_type *type;
	struct filter_test test = {};
	struct filter_term path;
	uint32_t number;
	int code = filter_terms__parse_path(value->path, &path, err);

	if (code)
		return code;
	number = find_param(subject, path.names[0]);
	if (!number && subject->is_function && value->by_number)
		number = value->argument;
	if (!number && !subject->is_function)
		number = filter__argument(subject->btf, subject->proto, path.names[0]) + 1;
	if (!number || number > count_params(subject))
		return no_param(subject, path.names[0], err);
	if (subject->is_function && number > 6)
		return err__set(err, -ENOTSUP,
				"cannot record %s: only the first six arguments of the kernel's "
				"functions are in registers",
				event_value__name(value));
	type = filter__type(subject->btf, params_of(subject)[number - 1].type);
	code = filter__follow(&path, subject->btf, type, &test, &type, err);
	if (code)
		return code;
	*spec = (struct value_spec) {
		.arg = { .kind = VALUE_WORD, .size = 8, .value = number - 1 },
		.n_steps = test.n_steps,
		.is_kernel = true,
	};
	if (subject->is_function)
		spec->arg = value__of_function(number, 8);
	memcpy(spec->offsets, test.offsets, sizeof(spec->offsets));
	return finish(subject, value, type, spec, err);
}
_Static_assert(VALUE_STEPS_MAX == FILTER_STEPS_MAX, "the same steps");

static int set_values(struct event_values *values, const struct subject *subject, struct err *err)
{
	int code = 0;

	if (values->is_all)
		return err__set(err, -EINVAL,
				"the list of values of %s is empty. Name its arguments",
				subject->name);
	for (uint32_t i = 0; !code && i < values->n; i++)
		code = set_value(subject, &values->list[i], err);
	return code;
}

static int no_types(struct err *err)
{
	return err__set(err, -ENOTSUP, "cannot read the kernel's types (BTF): %s", strerror(errno));
}

int event_values__of_tracepoint(struct event_values *values, const char *name, struct err *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct subject subject = { .btf = btf, .name = name };
	int code;

	if (!btf)
		return no_types(err);
	subject.proto = filter__arguments(btf, name, &subject.named);
	code = subject.proto
		       ? set_values(values, &subject, err)
		       : err__set(err, -ENOENT,
				  "cannot record values of the tracepoint %s: the kernel's types "
				  "(BTF) lack it",
				  name);
	btf__free(btf);
	return code;
}

int event_values__of_kernel(struct event_values *values, const char *name, struct err *err)
{
	struct btf *btf = btf__load_vmlinux_btf();
	struct subject subject = { .btf = btf, .name = name, .named = true, .is_function = true };
	const struct btf_type *type;
	int id, code;

	if (!btf)
		return no_types(err);
	id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	type = id > 0 ? btf__type_by_id(btf, id) : NULL;
	subject.proto = type ? filter__type(btf, type->type) : NULL;
	if (subject.proto) {
		code = set_values(values, &subject, err);
	} else {
		code = event_values__of_entry(values, "kernel's function", err);
		for (uint32_t i = 0; i < values->n; i++)
			values->list[i].spec.is_kernel = true;
	}
	btf__free(btf);
	return code;
}
