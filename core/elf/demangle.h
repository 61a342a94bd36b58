/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEMANGLE_H
#define BRAID_DEMANGLE_H

#include <stddef.h>

/* Demangles C++ (Itanium) and Rust (legacy and v0) names by libiberty. Returns an owned string
 * (malloc), a plain copy where `name` is not mangled; NULL: out of memory. Rust hashes are left
 * out; C++ parameters are left out too ("ns::f" not "ns::f(int)"), as flame graphs want it, and so
 * is what `symbol_name__length` cuts. */
char *demangle(const char *name);

/* Length of a symbol's name without what compilers and linkers put behind it when they move, split
 * or clone a function or make its name unique: f.cold, f.part.0, f.constprop.1.isra.0,
 * f.lto_priv.2, f.llvm.123. The programmer wrote f. */
size_t symbol_name__length(const char *name);

#endif
