/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEMANGLE_H
#define BRAID_DEMANGLE_H

#include <stddef.h>

/* Demangles C++ (Itanium) and Rust (legacy and v0) names by libiberty. Returns an owned string
 * (malloc), which is a plain copy if @name is not mangled, or NULL if out of memory. Leaves out
 * Rust hashes, C++ parameters ("ns::f" not "ns::f(int)", as in flame graphs) and the suffixes that
 * symbol_name__length() cuts. */
char *demangle(const char *name);

/* Returns the length of a symbol's name without its suffixes. Compilers and linkers append them
 * when they move, split or clone a function or make its name unique: f.cold, f.part.0,
 * f.constprop.1.isra.0, f.lto_priv.2, f.llvm.123. The programmer wrote f. */
size_t symbol_name__length(const char *name);

#endif
