// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/events/values.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/events/event.h"

/* --- types --- */

#define TYPES "s8 to s64, u8 to u64, ptr or str"

#define INTEGER(name_, bytes_, is_signed_)                              \
	{                                                               \
		.name = name_, .bytes = bytes_, .is_signed = is_signed_ \
	}

static const struct value_type types[] = {
	INTEGER("s8", 1, true),
	INTEGER("s16", 2, true),
	INTEGER("s32", 4, true),
	INTEGER("s64", 8, true),
	INTEGER("u8", 1, false),
	INTEGER("u16", 2, false),
	INTEGER("u32", 4, false),
	INTEGER("u64", 8, false),
	{ .name = "ptr", .bytes = 8, .is_pointer = true },
	{ .name = "str", .is_text = true },
	{ .name = "ustr", .is_text = true, .is_user = true },
};

static const struct value_type type_number = INTEGER("u64", 8, false);

static const char *const floating[] = { "f32", "f64", "float", "double" };

static int find_type(const char *text, const struct event_value *value,
		     const struct value_type **ret, struct err *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i].name, text)) {
			*ret = &types[i];
			return 0;
		}
	for (size_t i = 0; i < ARRAY_SIZE(floating); i++)
		if (!strcmp(floating[i], text))
			return err__set(
				err, -EINVAL,
				"cannot record the value %s as %s: probes cannot read the "
				"registers of floating-point arguments. Leave it out with _",
				event_value__name(value), text);
	return err__set(err, -EINVAL,
			"the value %s has an unknown type '%.20s'. Choose one of " TYPES,
			event_value__name(value), text);
}

void value_spec__set_type(struct value_spec *spec, const struct value_type *type)
{
	spec->bytes = type->bytes;
	spec->is_signed = type->is_signed;
	spec->is_user = type->is_user;
	spec->type = type->is_text ? VALUE_TEXT : type->is_pointer ? VALUE_POINTER : VALUE_NUMBER;
}

/* Makes the argument that @arg describes the whole value. A text is behind it. */
static void set_direct(struct value_spec *spec, const struct value_type *type,
		       const struct probe_arg *arg)
{
	*spec = (struct value_spec) { .arg = *arg };
	value_spec__set_type(spec, type);
	spec->n_steps = type->is_text;
}

/* --- parsing --- */

static bool is_path(const char *text)
{
	for (const char *at = text; *at; at++) {
		if (isalnum((unsigned char)*at) || *at == '_' || *at == '.')
			continue;
		if (at[0] != '-' || at[1] != '>')
			return false;
		at++;
	}
	return isalpha((unsigned char)*text) || *text == '_';
}

static bool is_name(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return n && !text[n] && n < VALUE_NAME_BYTES && !isdigit((unsigned char)*text);
}

/* Returns N of argN; 0: @text is another name. */
static uint32_t number_of(const char *text)
{
	char *end;
	long n;

	if (strncmp(text, "arg", 3) != 0 || !isdigit((unsigned char)text[3]))
		return 0;
	n = strtol(text + 3, &end, 10);
	return *end || n > UINT8_MAX ? 0 : n;
}

/* Returns the last component of a path: the name of its value. */
static const char *last_of(const char *path)
{
	const char *dot = strrchr(path, '.'), *arrow = strrchr(path, '>');

	return dot > arrow ? dot + 1 : arrow ? arrow + 1 : path;
}

static int check_name(const struct event_values *values, const char *name, const char *item,
		      struct err *err)
{
	if (!is_name(name))
		return err__set(err, -EINVAL,
				"'%.40s' is no value. Write NAME:TYPE, such as fd:s32, or _ for an "
				"argument that is not recorded",
				item);
	for (uint32_t i = 0; i < values->n; i++)
		if (!strcmp(event_value__name(&values->list[i]), name))
			return err__set(err, -EINVAL,
					"two values have the name %s. Write NAME=%.40s for one of "
					"them",
					name, item);
	return 0;
}

/* Adds the value @item, of argument number @position by its place. Changes the text. */
static int add_value(struct event_values *values, char *item, uint32_t position, struct err *err)
{
	char *type = strchr(item, ':'), *equals = strchr(item, '='), *path = item;
	struct event_value *value = &values->list[values->n];
	const char *name;
	int code;

	if (!strcmp(item, "_"))
		return 0;
	if (type)
		*type++ = '\0';
	if (equals && (!type || equals < type)) {
		*equals = '\0';
		path = equals + 1;
	}
	name = path == item ? last_of(path) : item;
	if (!is_path(path) || strlen(path) >= VALUE_PATH_BYTES)
		name = ""; /* no name */
	code = check_name(values, name, item, err);
	if (code)
		return code;
	if (values->n == VALUES_MAX)
		return err__set(err, -EINVAL,
				"an event may have at most %d values: leave out %s and those after "
				"it",
				VALUES_MAX, name);
	*value = (struct event_value) {};
	snprintf(value->label, sizeof(value->label), VALUE_LABEL "%s", name);
	snprintf(value->path, sizeof(value->path), "%s", path);
	value->argument = number_of(path);
	value->by_number = value->argument > 0;
	if (!value->argument)
		value->argument = position;
	values->n++;
	return type ? find_type(type, value, &value->type, err) : 0;
}

static char *trimmed(char *text)
{
	size_t n;

	text += strspn(text, " \t");
	n = strlen(text);
	while (n && (text[n - 1] == ' ' || text[n - 1] == '\t'))
		text[--n] = '\0';
	return text;
}

/* Refuses a list before the filter, whose slash it precedes. */
static int check_filtered(const char *name, struct err *err)
{
	const char *slash = strchr(name, '/');

	return slash > name && slash[-1] == ')'
		       ? err__set(err, -EINVAL,
				  "the values of an event follow its filter. Write "
				  "tracepoint:SYS:NAME/FILTER/(VALUES), not %s",
				  name)
		       : 0;
}

int event_values__parse(char *name, struct event_values *ret, struct err *err)
{
	size_t len = strlen(name);
	char *begin = strrchr(name, '('), *item, *next;
	uint32_t position = 0;
	int code = 0;

	*ret = (struct event_values) {};
	if (name[len ? len - 1 : 0] == '/')
		return check_filtered(name, err);
	if (!begin && !strchr(name, ')'))
		return 0;
	if (begin && name[len - 1] != ')' && go_receiver__begins(name, begin))
		return 0;
	if (begin && strstr(begin, EVENT_LATENCY))
		return err__set(
			err, -EINVAL,
			"cannot record values where an interval begins: its sample is taken "
			"at its end. Write the list at the end, A:latency:B(ret:s64)");
	if (!begin || name[len - 1] != ')')
		return err__set(err, -EINVAL,
				"the values of an event are a list in parentheses at its end, such "
				"as uprobe:libc.so.6:write(fd:s32, buf:ptr, n:u64), not as in %s",
				name);
	name[len - 1] = '\0';
	*begin = '\0';
	trimmed(name);
	item = trimmed(begin + 1);
	ret->is_all = !*item;
	for (; !code && item && !ret->is_all; item = next) {
		next = strchr(item, ',');
		if (next)
			*next++ = '\0';
		code = add_value(ret, trimmed(item), ++position, err);
	}
	if (!code && !ret->n && !ret->is_all)
		code = err__set(err, -EINVAL, "the list of values of %s has only _", name);
	return code;
}

/* --- arguments of functions --- */

int event_values__check_paths(const struct event_values *values, struct err *err)
{
	for (uint32_t i = 0; i < values->n; i++) {
		const char *path = values->list[i].path;

		if (strcmp(last_of(path), path) != 0)
			return err__set(err, -EINVAL,
					"cannot record %s: only values of the kernel have fields. "
					"Record the pointer, as ptr",
					path);
		if (!strcmp(path, "arg0"))
			return err__set(err, -EINVAL,
					"cannot record arg0: arguments are counted from arg1");
	}
	return 0;
}

static int check_plain(const struct event_values *values, const char *kind, struct err *err)
{
	if (values->is_all)
		return err__set(err, -EINVAL,
				"the list of values of a %s is empty. Name its arguments, such as "
				"(fd:s32, buf:ptr)",
				kind);
	return event_values__check_paths(values, err);
}

/* Registers of the first arguments of a function, in the ABI of the machine, and of a system call.
 */
static const enum probe_reg of_function[] = { PROBE_RDI, PROBE_RSI, PROBE_RDX,
					      PROBE_RCX, PROBE_R8,  PROBE_R9 };
static const enum probe_reg of_syscall[] = { PROBE_RDI, PROBE_RSI, PROBE_RDX,
					     PROBE_R10, PROBE_R8,  PROBE_R9 };

struct probe_arg value__of_function(uint32_t argument, uint32_t bytes)
{
	struct probe_arg arg = { .kind = PROBE_ARG_REGISTER, .size = 8 };

	if (argument <= ARRAY_SIZE(of_function)) {
		arg.reg = of_function[argument - 1];
		return arg;
	}
	/* The return address lies below the arguments on the stack. */
	return (struct probe_arg) { .kind = PROBE_ARG_MEMORY,
				    .reg = PROBE_RSP,
				    .index_reg = PROBE_REG_NONE,
				    .size = bytes ?: 8,
				    .value = 8 * (argument - ARRAY_SIZE(of_function)) };
}

int event_values__of_entry(struct event_values *values, const char *kind, struct err *err)
{
	int code = check_plain(values, kind, err);

	for (uint32_t i = 0; !code && i < values->n; i++) {
		struct event_value *value = &values->list[i];
		const struct value_type *type = value->type ?: &type_number;
		struct probe_arg arg;

		if (value->argument > VALUE_ARGUMENTS_MAX)
			return err__set(err, -EINVAL,
					"cannot record %s: it is argument %u of the function, and "
					"only the first %d can be read",
					event_value__name(value), value->argument,
					VALUE_ARGUMENTS_MAX);
		arg = value__of_function(value->argument, type->bytes);
		set_direct(&value->spec, type, &arg);
	}
	return code;
}

int event_values__of_return(struct event_values *values, const char *kind, struct err *err)
{
	static const struct probe_arg result = { .kind = PROBE_ARG_REGISTER,
						 .reg = PROBE_RAX,
						 .size = 8 };
	int code = check_plain(values, kind, err);

	if (!code && values->n > 1)
		return err__set(err, -EINVAL,
				"a return has one value, but %s is the second. Record arguments at "
				"the entry of the function",
				event_value__name(&values->list[1]));
	if (!code && (values->list[0].by_number || values->list[0].argument != 1))
		code = err__set(err, -EINVAL,
				"cannot record argument %u at a return: its only value is the "
				"result. Write (ret:s64), or record arguments at the entry",
				values->list[0].argument);
	if (!code)
		set_direct(&values->list[0].spec, values->list[0].type ?: &type_number, &result);
	return code;
}

int event_values__of_syscall(struct event_values *values, struct err *err)
{
	int code = check_plain(values, "tracepoint of a system call", err);

	for (uint32_t i = 0; !code && i < values->n; i++) {
		struct event_value *value = &values->list[i];
		const struct value_type *type = value->type ?: &type_number;
		/* the address of the registers */
		const struct probe_arg arg = { .kind = VALUE_WORD, .size = 8, .value = 0 };

		if (value->argument > ARRAY_SIZE(of_syscall))
			return err__set(err, -EINVAL,
					"cannot record %s: a system call has six arguments",
					event_value__name(value));
		value->spec = (struct value_spec) { .arg = arg, .n_steps = 1, .is_kernel = true };
		value_spec__set_type(&value->spec, type);
		value->spec.offsets[0] = 8 * of_syscall[value->argument - 1];
		value->spec.n_steps += type->is_text;
		value->spec.is_user = type->is_text;
	}
	return code;
}

int event_values__of_site(const struct event_values *values, const struct probe_arg *args, size_t n,
			  struct value_list *ret, struct err *err)
{
	struct event_values completed = *values;

	if (values->is_all && n < completed.n)
		completed.n = n;
	for (uint32_t i = 0; i < completed.n; i++) {
		struct event_value *value = &completed.list[i];
		const struct probe_arg *arg;
		struct value_type type;

		if (value->argument > n)
			return err__set(err, -EINVAL,
					"cannot record %s: it is argument %u of the probe, which "
					"has %zu",
					event_value__name(value), value->argument, n);
		arg = &args[value->argument - 1];
		type = (struct value_type) { .bytes = arg->size, .is_signed = arg->is_signed };
		set_direct(&value->spec, value->type ?: &type, arg);
	}
	event_values__list(&completed, ret);
	return 0;
}

void event_values__list(const struct event_values *values, struct value_list *ret)
{
	*ret = (struct value_list) { .n = values->n };
	for (uint32_t i = 0; i < values->n; i++) {
		const struct value_spec *spec = &values->list[i].spec;

		ret->list[i] = *spec;
		ret->is_text |= (spec->type == VALUE_TEXT) << i;
		ret->is_pointer |= (spec->type == VALUE_POINTER) << i;
		ret->is_signed |= spec->is_signed << i;
	}
}

/* --- samples --- */

bool values__are_sane(const struct rec_values *rec, size_t size)
{
	return size >= REC_VALUES_HEADER && rec->n <= VALUES_MAX && rec->n_texts <= VALUES_MAX &&
	       size == REC_VALUES_HEADER + (size_t)rec->n_texts * VALUE_TEXT_BYTES;
}

/* Writes a text of @bytes bytes, including the NUL, without control characters. A longer one than
 * VALUE_TEXT_SHOWN is cut. */
static void write_text(const char *text, uint64_t bytes, char *to)
{
	size_t len = strnlen(text, min_of(bytes, (uint64_t)VALUE_TEXT_BYTES - 1));
	bool is_cut = len > VALUE_TEXT_SHOWN;

	if (is_cut)
		len = VALUE_TEXT_SHOWN;
	memcpy(to, text, len);
	to[len] = '\0';
	escape__printable(to);
	if (is_cut)
		strcpy(to + strlen(to), "...");
	if (!len)
		strcpy(to, VALUE_EMPTY);
}

size_t values__decode(const struct event_values *values, const struct rec_values *rec,
		      struct value_texts *texts, struct sink_label *labels)
{
	size_t n = min_of(rec->n, values->n), text = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t bit = 1U << i;
		char *to = texts->list[i];

		if (rec->is_missing & bit)
			strcpy(to, VALUE_UNREADABLE);
		else if (rec->is_text & bit)
			write_text(text < rec->n_texts ? rec->texts[text++] : "", rec->numbers[i],
				   to);
		else if (rec->is_pointer & bit)
			snprintf(to, VALUE_TEXT_BYTES, "0x%" PRIx64, (uint64_t)rec->numbers[i]);
		else if (rec->is_signed & bit)
			snprintf(to, VALUE_TEXT_BYTES, "%" PRId64, (int64_t)rec->numbers[i]);
		else
			snprintf(to, VALUE_TEXT_BYTES, "%" PRIu64, (uint64_t)rec->numbers[i]);
		labels[i] = (struct sink_label) { values->list[i].label, to };
	}
	if (values->places && rec->place && rec->place <= values->places->n)
		labels[n++] = (struct sink_label) { VALUE_LABEL PLACE_NAME,
						    values->places->names[rec->place - 1] };
	return n;
}

/* --- places --- */

uint32_t event_places__add(struct event_places *places, const char *name)
{
	for (size_t i = 0; i < places->n; i++)
		if (!strcmp(places->names[i], name))
			return i + 1;
	if (places->n == EVENT_PLACES_MAX ||
	    array__reserve(&places->names, &places->cap, places->n + 1, sizeof(*places->names)))
		return 0;
	places->names[places->n] = strdup(name);
	return places->names[places->n] ? ++places->n : 0;
}

void event_places__done(struct event_places *places)
{
	while (places->n)
		free(places->names[--places->n]);
	free(places->names);
	*places = (struct event_places) {};
}
