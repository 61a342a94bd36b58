/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_FUNCTION_RULES_H
#define BRAID_FUNCTION_RULES_H

#include <stdbool.h>

/* A function that waits, and the object of its wait as a part of a sentence: "a lock". */
struct wait_rule {
	const char *function; /* pattern of its name */
	const char *what;
	const char *file; /* pattern of its file; NULL: any */
};

/* Facts about the functions of a language by which readers choose and name them. Patterns are
 * fnmatch's with FNM_EXTMATCH; lists end with NULL or an empty rule. NULL: there are none. */
struct function_rules {
	const char *runtime; /* name of the frames' kind: "python" */

	/* Code that the user has not written: the standard library and installed packages, by the
	 * path of the file or the name of the function. */
	const char *const *library_files;
	const char *const *library_functions;

	/* Code of the runtime itself that is not a function of the language: stubs and entries
	 * of a VM. Views treat its frames as native ones: its time counts for the function that
	 * runs it. */
	const char *const *machinery;

	/* The functions are compiled to machine code: they have time of their own. */
	bool compiled;

	/* Functions without their own name, which only their lines distinguish. */
	const char *const *nameless;

	/* Word for tasks that wait on no thread, "goroutines"; NULL: such waits are not recorded.
	 */
	const char *tasks;

	/* Functions that wait, of the language or of its native code. */
	const struct wait_rule *waits;
};

#endif
