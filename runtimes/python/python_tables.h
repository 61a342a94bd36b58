/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PYTHON_TABLES_H
#define BRAID_PYTHON_TABLES_H

#include "core/elf/elf_file.h"
#include "core/elf/function_names.h"

/* What a file of CPython, or an extension module, says of its own functions in the tables by which
 * Python finds them: PyModuleDef, PyTypeObject, PyType_Spec and what these point to. Stripped files
 * have them, too. Adds
 *
 *   time.sleep               a function of a module, by its PyMethodDef
 *   list.append              a method of a type
 *   frame.f_lineno.__get__   a getter or setter of an attribute
 *   dict.__len__             what a slot of a type is for, where it is for one method only
 *   dict.tp_dealloc, int.nb_add, time.m_exec
 *                            else the slot itself
 *
 * Files of other kinds have nothing to add, and are not searched. 0 or -ENOMEM. */
int python_tables__read(const struct elf_file *file, struct function_names *names);

#endif
