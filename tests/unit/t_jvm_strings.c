// SPDX-License-Identifier: GPL-2.0-or-later
/* Java's names in readable form, and methods that probes report by their strings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/jvm.h"
#include "runtimes/jvm/jvm_names.h"
#include "runtimes/jvm/jvm_strings.h"
#include "tests/tap.h"

static void is_signature(const char *descriptor, const char *want)
{
	char *got = jvm_name__signature(descriptor);

	is_str(got, want, "signature %s", descriptor);
	free(got);
}

static void is_method(const char *class, const char *method, const char *want)
{
	char copy[64], *got;

	strcpy(copy, class);
	got = jvm_name__method(copy, method);
	is_str(got, want, "method %s of %s", method, class);
	free(got);
}

static void test_names(void)
{
	is_signature("()V", "(): void");
	is_signature("(I)J", "(int): long");
	is_signature("(BCDFISZ)Ljava/lang/String;",
		     "(byte, char, double, float, int, short, boolean): java.lang.String");
	is_signature("([[JLa/b$C;[La/B;)[I", "(long[][], a.b$C, a.B[]): int[]");
	is_signature("", "");
	is_signature("(", "(");
	is_signature("()", "()");
	is_signature("(Lx)V", "(Lx)V");
	is_signature("(L;)V", "(L;)V");
	is_signature("(Q)V", "(Q)V");
	is_signature("(I)VV", "(I)VV");
	is_signature("(I...", "(I...");
	is_signature("([)V", "([)V");
	is_method("java/lang/String", "length", "java.lang.String.length");
	is_method("A", "<init>", "A.<init>");
	is_method("a/B$$Lambda+0x00007f1234567890", "run", "a.B$$Lambda.run");
	is_method("a/B$$Lambda$14+0x0000000800c03000", "run", "a.B$$Lambda$14.run");
	is_method("a/B+c", "run", "a.B+c.run");
	is_method("", "", ".");
}

static void set(struct rec_code_object *rec, uint32_t code, const char *class, const char *name,
		const char *signature)
{
	*rec = (struct rec_code_object) { .type = REC_CODE_OBJECT,
					  .code = code,
					  .table_format = JVM_CODE_STRINGS,
					  .table_size = strlen(signature),
					  .name_len = strlen(name),
					  .file_len = strlen(class),
					  .name_kind = CODE_OBJECT_TEXT_UTF8,
					  .file_kind = CODE_OBJECT_TEXT_UTF8 };
	memcpy(rec->name, name, strlen(name));
	memcpy(rec->file, class, strlen(class));
	memcpy(rec->table, signature, strlen(signature));
}

#define SIZE (REC_CODE_OBJECT_HEADER + 3 * CODE_OBJECT_TEXT_BYTES)

static int add(struct jvm_strings *strings, uint32_t code, const char *class, const char *name,
	       const char *signature)
{
	static struct rec_code_object rec;

	set(&rec, code, class, name, signature);
	return jvm_strings__add(strings, &rec, SIZE);
}

static void is_name(struct jvm_strings *strings, uint32_t code, bool apart, const char *want)
{
	const char *got = "";

	ok(!jvm_strings__name(strings, code, apart, &got), "name of %u", code);
	is_str(got, want, "%s", want);
}

static void test_strings(void)
{
	struct jvm_strings *strings = jvm_strings__new();
	static struct rec_code_object rec;
	const char *name;

	ok(!add(strings, 1, "a/B", "f", "()V") && !add(strings, 2, "a/B", "g", "()V") &&
		   !add(strings, 3, "a/C", "f", "()V"),
	   "methods of different names");
	is_name(strings, 1, true, "a.B.f");
	ok(!add(strings, 4, "a/B", "f", "()V"), "the same method once more");
	is_name(strings, 4, true, "a.B.f");
	ok(!add(strings, 5, "a/B", "f", "(I)V") && !add(strings, 6, "a/B", "f", "(I"),
	   "others of the same name");
	is_name(strings, 1, true, "a.B.f(): void");
	is_name(strings, 5, true, "a.B.f(int): void");
	is_name(strings, 6, true, "a.B.f(I");
	is_name(strings, 5, false, "a.B.f");
	is_name(strings, 3, true, "a.C.f");
	is_int(jvm_strings__name(strings, 7, true, &name), -ENOENT, "one that was never told");
	is_int(add(strings, 1, "a/D", "f", "()V"), -EBADMSG, "a number that is taken");
	set(&rec, 8, "a/B", "h", "()V");
	is_int(jvm_strings__add(strings, &rec, SIZE - 1), -EBADMSG, "a record that is too short");
	rec.name_kind = 3;
	is_int(jvm_strings__add(strings, &rec, SIZE), -EBADMSG, "a text of an unknown kind");
	rec.name_kind = 0;
	ok(!jvm_strings__add(strings, &rec, SIZE), "a text that was not readable");
	is_name(strings, 8, true, "a.B.[unreadable]");
	set(&rec, 9, "a/B", "i", "()V");
	memset(rec.file, 'x', sizeof(rec.file));
	rec.file_len = UINT16_MAX;
	rec.table_size = UINT32_MAX;
	ok(!jvm_strings__add(strings, &rec, SIZE) && !jvm_strings__name(strings, 9, true, &name) &&
		   strlen(name) == CODE_OBJECT_TEXT_BYTES + strlen("....i"),
	   "texts that were cut");
	jvm_strings__free(strings);
	jvm_strings__free(NULL);
}

int main(void)
{
	test_names();
	test_strings();
	return tap__done();
}
