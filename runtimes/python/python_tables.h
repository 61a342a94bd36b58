/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_TABLES_H
#define BRAID_PYTHON_TABLES_H

#include "core/elf/elf_file.h"
#include "core/elf/function_names.h"

/* Adds names from the tables by which Python finds the functions of CPython, or of an extension
 * module: PyModuleDef, PyTypeObject, PyType_Spec and the tables that these point to. Stripped files
 * have them, too. The names:
 *
 *   time.sleep               a function of a module, by its PyMethodDef
 *   list.append              a method of a type
 *   frame.f_lineno.__get__   a getter or setter of an attribute
 *   dict.__len__             a slot of a type that serves one method only
 *   dict.tp_dealloc, int.nb_add, time.m_exec
 *                            any other slot
 *
 * Files of other kinds are not searched. Returns 0 or -ENOMEM. */
int python_tables__read(const struct elf_file *file, struct function_names *names);

#endif
