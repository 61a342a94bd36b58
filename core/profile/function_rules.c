// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/function_rules.h"

#include <fnmatch.h>
#include <string.h>

static const struct function_rules *rules_of_kind(const struct profile *profile, size_t number)
{
	const char *kind = profile->kinds[number].name;

	for (const struct function_rules *const *rules = profile->rules; rules && *rules; rules++)
		if (!strcmp((*rules)->runtime, kind))
			return *rules;
	return NULL;
}

static const struct function_rules *rules_of(const struct profile *profile,
					     const struct profile_frame *frame)
{
	return rules_of_kind(profile, frame->kind);
}

static bool fits_any(const char *const *patterns, const char *text)
{
	for (; patterns && *patterns; patterns++)
		if (!fnmatch(*patterns, text, FNM_EXTMATCH))
			return true;
	return false;
}

bool function_rules__is_function(const struct profile *profile, const struct profile_frame *frame)
{
	const struct function_rules *rules;

	if (!profile__is_runtime(profile, frame))
		return false;
	rules = rules_of(profile, frame);
	return !rules || !fits_any(rules->machinery, strtab__get(profile->strings, frame->name));
}

bool function_rules__are_compiled(const struct profile *profile)
{
	const struct function_rules *rules;
	bool any = false;

	/* A recording lists the kinds of all runtimes, also of those without frames. */
	for (size_t i = 0; i < profile->n_frames; i++) {
		if (!profile__is_runtime(profile, &profile->frames[i]))
			continue;
		rules = rules_of(profile, &profile->frames[i]);
		if (!rules || !rules->compiled)
			return false;
		any = true;
	}
	return any;
}

const char *code_rules__own_title(const struct profile *profile)
{
	return function_rules__are_compiled(profile) ? "Own" : "Script";
}

bool function_rules__is_own(const struct profile *profile, const struct profile_frame *frame)
{
	const struct function_rules *rules;

	if (!function_rules__is_function(profile, frame))
		return false;
	rules = rules_of(profile, frame);
	return !rules ||
	       (!fits_any(rules->library_files, strtab__get(profile->strings, frame->file)) &&
		!fits_any(rules->library_functions, strtab__get(profile->strings, frame->name)));
}

bool function_rules__is_nameless(const struct profile *profile, const struct profile_frame *frame)
{
	const struct function_rules *rules =
		profile__is_runtime(profile, frame) ? rules_of(profile, frame) : NULL;

	return rules && fits_any(rules->nameless, strtab__get(profile->strings, frame->name));
}

const char *function_rules__wait(const struct profile *profile, const struct profile_frame *frame)
{
	const char *name = strtab__get(profile->strings, frame->name);
	const char *file = strtab__get(profile->strings, frame->file);

	if (frame->kind == KIND_KERNEL || profile->kinds[frame->kind].label)
		return NULL;
	for (const struct function_rules *const *rules = profile->rules; rules && *rules; rules++)
		for (const struct wait_rule *wait = (*rules)->waits; wait && wait->function; wait++)
			if (!fnmatch(wait->function, name, FNM_EXTMATCH) &&
			    (!wait->file || !fnmatch(wait->file, file, FNM_EXTMATCH)))
				return wait->what;
	return NULL;
}

const char *function_rules__tasks(const struct profile *profile)
{
	/* A recording lists the kinds of all runtimes, also of those without frames. */
	for (size_t i = 0; i < profile->n_frames; i++) {
		const struct function_rules *rules = rules_of(profile, &profile->frames[i]);

		if (rules && rules->tasks)
			return rules->tasks;
	}
	return NULL;
}
