/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_DEMANGLE_H
#define BRAID_DEMANGLE_H

/* Demangles C++ (Itanium) and Rust (legacy and v0) names by libiberty. Returns an owned string
 * (malloc), a plain copy where `name` is not mangled; NULL: out of memory. Rust hashes are left
 * out; C++ parameters are left out too ("ns::f" not "ns::f(int)"), as flame graphs want it. */
char *demangle(const char *name);

#endif
