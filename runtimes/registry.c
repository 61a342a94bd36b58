// SPDX-License-Identifier: GPL-2.0-or-later
#include <stddef.h>

#include "runtimes/registry.h"

extern const struct runtime runtime_go;
extern const struct runtime runtime_jit;
extern const struct runtime runtime_jvm;
extern const struct runtime runtime_native;
extern const struct runtime runtime_node;
extern const struct runtime runtime_other;
extern const struct runtime runtime_perl;
extern const struct runtime runtime_php;
extern const struct runtime runtime_python;
extern const struct runtime runtime_ruby;

const struct runtime *const runtimes[] = {
	&runtime_native,
	&runtime_python,
	&runtime_ruby,
	&runtime_jvm,
	&runtime_perl,
	&runtime_php,
	&runtime_node,
	&runtime_go,
	&runtime_other,
	&runtime_jit, /* after runtimes that recognize their code by its name */
	NULL,
};
