/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_JVM_NAMES_H
#define BRAID_JVM_NAMES_H

/* Readable forms of the names in class files. Results are owned; NULL: out of memory. */

/* Returns "java.lang.String.length" for "java/lang/String", "length". Names of hidden classes
 * lose their address. `class_name` is modified. */
char *jvm_name__method(char *class_name, const char *method_name);

/* Returns "(int, java.lang.String[]): void" for "(I[Ljava/lang/String;)V". A text that is
 * truncated, or not a signature, is returned unchanged. */
char *jvm_name__signature(const char *descriptor);

#endif
