// SPDX-License-Identifier: GPL-2.0-or-later
#include "tests/replay/expect.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/profile.h"

#define LINE_BYTES 4096

int expect__read(const char *path, struct expect *ret, struct err *err)
{
	FILE *in = fopen(path, "re");
	size_t n = 0, cap = 0;
	char *text = NULL;
	int code = in ? 0 : -errno;

	while (!code && !feof(in)) {
		code = array__reserve(&text, &cap, n + 65536, 1);
		if (!code)
			n += fread(text + n, 1, cap - n - 1, in);
	}
	if (in)
		fclose(in);
	if (code) {
		free(text);
		return err__set(err, code, "%s: %s", path, strerror(-code));
	}
	text[n] = '\0';
	ret->text = text;
	return 0;
}

void expect__done(struct expect *expect)
{
	free(expect->text);
	expect->text = NULL;
}

/* --- lines --- */

/* Copies the line at *@at, without its end, and moves *@at to the next one. Returns false if there
 * is no line. */
static bool next_line(const char **at, char ret[LINE_BYTES])
{
	size_t length = *at ? strcspn(*at, "\n") : 0;

	if (!*at || !**at)
		return false;
	snprintf(ret, LINE_BYTES, "%.*s", (int)length, *at);
	*at += length + ((*at)[length] == '\n');
	return true;
}

/* Returns the line after "== NAME", or NULL if there is no such case. */
static const char *find_case(const struct expect *expect, const char *name)
{
	const char *at = expect->text;
	char line[LINE_BYTES];

	while (next_line(&at, line))
		if (!strncmp(line, "== ", 3) && !strcmp(line + 3, name))
			return at;
	return NULL;
}

/* Returns the lines of a section of the case that begins at @at, up to the next mark; "": none.
 * @rest is the text after the title. */
static const char *find_section(const char *at, const char *title, char rest[LINE_BYTES])
{
	char line[LINE_BYTES];

	rest[0] = '\0';
	while (next_line(&at, line) && strncmp(line, "== ", 3) != 0) {
		if (strncmp(line, "-- ", 3) != 0 || strncmp(line + 3, title, strlen(title)) != 0)
			continue;
		snprintf(rest, LINE_BYTES, "%s", line + 3 + strlen(title));
		return at;
	}
	return "";
}

static bool next_in_section(const char **at, char ret[LINE_BYTES])
{
	return strncmp(*at, "-- ", 3) != 0 && strncmp(*at, "== ", 3) != 0 && next_line(at, ret);
}

/* --- the stack that the program described --- */

static const char *last_part(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? dot + 1 : name;
}

static bool is_described(char *line, const struct pipeline_frame *frame)
{
	char *file = strchr(line, '\t'), *number = file ? strchr(file + 1, '\t') : NULL;
	const char *name = frame->name;

	if (!number)
		return false;
	*file++ = *number++ = '\0';
	if (*line == '~') {
		name = last_part(name);
		line++;
	}
	return (!strcmp(line, "*") || !strcmp(line, name)) &&
	       (!strcmp(file, "*") || !strcmp(file, frame->file)) &&
	       (!strcmp(number, "*") || strtoul(number, NULL, 10) == frame->line);
}

/* Returns true for a runtime frame that its program can see. A builtin of V8 is a part of V8
 * itself. */
static bool is_visible(const struct pipeline_frame *frame)
{
	return frame->kind >= KIND_RUNTIME && strncmp(frame->name, "Builtins_", 9) != 0;
}

/* Returns true if the stack has exactly the runtime frames of the section, or with @part only some
 * of them. Moves *@at past the section. */
static bool match_described(const char **at, bool part, const struct pipeline_stack *stack,
			    FILE *out)
{
	char line[LINE_BYTES], shown[LINE_BYTES];
	bool good = true;
	size_t i = 0;

	while (next_in_section(at, line)) {
		while (i < stack->n_frames && !is_visible(&stack->frames[i]))
			i++;
		snprintf(shown, sizeof(shown), "%s", line);
		if (good && i < stack->n_frames &&
		    is_described(line + (*line == '?'), &stack->frames[i])) {
			i++;
			continue;
		}
		if (part || *shown == '?')
			continue;
		if (good)
			fprintf(out, "# told:  %s\n# found: %s\n", shown,
				i < stack->n_frames ? stack->frames[i].label : "the end");
		good = false;
	}
	while (good && i < stack->n_frames && !is_visible(&stack->frames[i]))
		i++;
	if (good && i < stack->n_frames)
		fprintf(out, "# not told: %s\n", stack->frames[i].label);
	return good && i == stack->n_frames;
}

/* Returns true if the stack matches one of the described stacks. */
static bool match_any(const char **at, bool part, const struct pipeline_stack *stack, FILE *out)
{
	bool good = match_described(at, part, stack, out);
	char line[LINE_BYTES];

	while (!good && !strncmp(*at, "-- or\n", 6)) {
		next_line(at, line);
		good = match_described(at, part, stack, out);
	}
	return good;
}

/* Returns true if the case whose section begins at @at allows a cut walk. */
static bool may_be_cut(const char *at)
{
	char line[LINE_BYTES];

	while (strncmp(at, "== ", 3) != 0 && next_line(&at, line))
		if (!strcmp(line, "-- or cut"))
			return true;
	return false;
}

/* Returns true if the native stack is cut, and the case that begins at @at allows that. */
static bool is_cut(const char *at, const struct pipeline_stack *stack)
{
	return !(stack->flags & SAMPLE_COMPLETE) && may_be_cut(at);
}

static bool check_described(const char *section, const struct pipeline_stack *stack, FILE *out)
{
	bool broken = stack->flags & SAMPLE_RUNTIME_BROKEN, good;
	bool cut = broken || is_cut(section, stack);
	const char *at = section;
	char *why = NULL;
	size_t n = 0;
	FILE *text = open_memstream(&why, &n);

	good = match_any(&at, false, stack, text);
	if (broken && !may_be_cut(section)) {
		fprintf(text, "# the walk is flagged as broken off\n");
		good = false;
	} else if (cut && !good) {
		at = section;
		good = match_any(&at, true, stack, text);
	}
	fclose(text);
	if (!good)
		fputs(why, out);
	free(why);
	return good;
}

/* Removes the suffixes that compilers add to parts and copies of a function: ".cold", ".isra.0". */
static void cut_suffix(struct pipeline_frame *frame, char name[LINE_BYTES])
{
	snprintf(name, LINE_BYTES, "%s", frame->name);
	name[strcspn(name, ".")] = '\0';
	frame->name = name;
}

/* Returns true if the stack has the section's functions in this order. With @part the last ones may
 * be missing. */
static bool check_called(const char *section, bool part, const struct pipeline_stack *stack,
			 FILE *out)
{
	char line[LINE_BYTES], shown[LINE_BYTES], name[LINE_BYTES];
	size_t i = 0, n = 0;
	bool found;

	while (next_in_section(&section, shown)) {
		for (found = false; !found && i < stack->n_frames; i++) {
			struct pipeline_frame frame = stack->frames[i];

			snprintf(line, sizeof(line), "%s", shown);
			cut_suffix(&frame, name);
			found = frame.kind < KIND_RUNTIME && is_described(line, &frame);
		}
		n += found;
		if (found)
			continue;
		if (part && n)
			break;
		fprintf(out, "# called, but not found: %s\n", shown);
		return false;
	}
	return true;
}

/* --- the stack that libdwfl found --- */

static void format_native(const struct pipeline_native *native, char ret[LINE_BYTES])
{
	snprintf(ret, LINE_BYTES, "%s+%#" PRIx64, native->image[0] ? native->image : "?",
		 native->vaddr);
}

/* Compares the native stack with that of libdwfl, which ends at code that no file backs. With @cut
 * the stack may end earlier. */
static bool check_unwound(const char *section, bool part, bool cut,
			  const struct pipeline_stack *stack, FILE *out)
{
	char line[LINE_BYTES], got[LINE_BYTES];
	size_t i = 0;

	for (; next_in_section(&section, line); i++) {
		if (cut && i && i == stack->n_natives)
			return true;
		snprintf(got, sizeof(got), "the end");
		if (i < stack->n_natives)
			format_native(&stack->natives[i], got);
		if (strcmp(got, line) == 0)
			continue;
		fprintf(out, "# native frame %zu: %s, libdwfl: %s\n", i, got, line);
		return false;
	}
	if (part || i == stack->n_natives)
		return true;
	format_native(&stack->natives[i], got);
	fprintf(out, "# native frame %zu: %s, libdwfl is at the end\n", i, got);
	return false;
}

void expect__each_return(const struct expect *expect, const char *name,
			 void (*found)(void *ctx, const char *image, uint64_t vaddr), void *ctx)
{
	const char *at = find_case(expect, name), *section;
	char line[LINE_BYTES], *plus;

	section = at ? find_section(at, "unwound", line) : "";
	for (bool first = true; next_in_section(&section, line); first = false) {
		plus = strrchr(line, '+');
		if (!plus || first) /* the first one is the pc */
			continue;
		*plus = '\0';
		found(ctx, line, strtoull(plus + 1, NULL, 0));
	}
}

/* --- merged --- */

static void format_merged(const struct pipeline_frame *frame, char ret[LINE_BYTES])
{
	snprintf(ret, LINE_BYTES, "%s %s", frame->hidden ? "~" : " ", frame->label);
}

static bool check_merged(const char *section, const struct pipeline_stack *stack, FILE *out)
{
	char line[LINE_BYTES], got[LINE_BYTES];
	size_t i = 0;

	if (!*section) {
		fprintf(out, "# no merged stack is known\n");
		return false;
	}
	for (; next_in_section(&section, line); i++) {
		snprintf(got, sizeof(got), "the end");
		if (i < stack->n_frames)
			format_merged(&stack->frames[i], got);
		if (strcmp(got, line) == 0)
			continue;
		fprintf(out, "# frame %zu\n# want %s\n# got  %s\n", i, line, got);
		return false;
	}
	if (i < stack->n_frames)
		fprintf(out, "# %zu frames more than wanted, the first: %s\n", stack->n_frames - i,
			stack->frames[i].label);
	return i == stack->n_frames;
}

void expect__print_merged(const struct pipeline_stack *stack, FILE *out)
{
	char line[LINE_BYTES];

	fprintf(out, "-- merged\n");
	for (size_t i = 0; i < stack->n_frames; i++) {
		format_merged(&stack->frames[i], line);
		fprintf(out, "%s\n", line);
	}
}

bool expect__check(const struct expect *expect, const char *name,
		   const struct pipeline_stack *stack, bool merged, FILE *out)
{
	const char *at = find_case(expect, name), *section;
	char rest[LINE_BYTES];
	bool good = true;

	if (!at) {
		fprintf(out, "# nothing is expected of this case\n");
		return false;
	}
	section = find_section(at, "told", rest);
	if (strcmp(rest, " nothing") != 0)
		good = check_described(section, stack, out);
	section = find_section(at, "called", rest);
	good &= !*section || check_called(section, !strcmp(rest, " part"), stack, out);
	section = find_section(at, "unwound", rest);
	if (*section && *section != '=')
		good &= check_unwound(section, !strcmp(rest, " part"), is_cut(at, stack), stack,
				      out);
	return merged ? check_merged(find_section(at, "merged", rest), stack, out) && good : good;
}

void expect__write(const struct expect *expect, const char *name,
		   const struct pipeline_stack *stack, FILE *out)
{
	const char *at = find_case(expect, name);
	char line[LINE_BYTES];

	fprintf(out, "== %s\n", name);
	while (at && strncmp(at, "== ", 3) != 0 && strncmp(at, "-- merged", 9) != 0 &&
	       next_line(&at, line))
		fprintf(out, "%s\n", line);
	expect__print_merged(stack, out);
}
