/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROFILE_FUNCTION_RULES_H
#define BRAID_PROFILE_FUNCTION_RULES_H

#include "core/profile/profile.h"
#include "runtimes/function_rules.h"

/* Applies the rules of profile->rules to frames. */

/* Returns true for a function of a runtime's language, false for native code and for stubs and
 * entries of a VM. */
bool function_rules__is_function(const struct profile *profile, const struct profile_frame *frame);

/* Returns true if the functions of all runtimes in the profile are compiled to machine code. */
bool function_rules__are_compiled(const struct profile *profile);

/* Returns the title of the column with a function's time and that of the native code that it calls:
 * "Script", or "Own" if all functions are compiled. */
const char *code_rules__own_title(const struct profile *profile);

/* Returns true for a function of a runtime that the user has written: neither of the standard
 * library nor of an installed package, by the runtime's rules. */
bool function_rules__is_own(const struct profile *profile, const struct profile_frame *frame);

/* Returns true for a function without a name of its own. */
bool function_rules__is_nameless(const struct profile *profile, const struct profile_frame *frame);

/* Returns the object of a wait inside the frame's function, "a lock", by a rule of any runtime, or
 * NULL. */
const char *function_rules__wait(const struct profile *profile, const struct profile_frame *frame);

/* Returns the word for tasks of a runtime in the profile that wait on no thread, or NULL. */
const char *function_rules__tasks(const struct profile *profile);

#endif
