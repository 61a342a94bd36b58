/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_NAMES_H
#define BRAID_JVM_NAMES_H

/* Java's names as class files have them, for people. Owned; NULL: out of memory. */

/* "java/lang/String", "length": "java.lang.String.length". Hidden classes go without the address in
 * their name. `class_name` is changed. */
char *jvm_name__method(char *class_name, const char *method_name);

/* "(I[Ljava/lang/String;)V": "(int, java.lang.String[]): void". What is no signature, or was cut,
 * stays as it is. */
char *jvm_name__signature(const char *descriptor);

#endif
