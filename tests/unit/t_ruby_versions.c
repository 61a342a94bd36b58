// SPDX-License-Identifier: GPL-2.0-or-later
/* Tests ruby_version__find(): the row for each version. tests/unit/ruby_offsets.t tests the values
 * of the rows. */
#include <limits.h>

#include "runtimes/ruby/ruby_versions.h"
#include "tests/tap.h"

static void is_row(unsigned int major, unsigned int minor, unsigned int teeny,
		   unsigned int vm_objspace)
{
	const struct ruby_version *version = ruby_version__find(major, minor, teeny);

	is_int(version ? version->offsets.vm_objspace : 0, vm_objspace, "%u.%u.%u", major, minor,
	       teeny);
}

static void test_known(void)
{
	is_row(2, 7, 0, 1152);
	is_row(2, 7, 8, 1152);
	is_row(3, 0, 0, 1088);
	is_row(3, 3, 8, 1304);
	is_row(3, 4, 5, 1296);
	is_row(3, 4, 99, 1296);
	is_row(3, 4, UINT_MAX, 1296);
	is_row(4, 0, 1, 1248);
	is_row(4, 1, 0, 1368);
}

static void test_boundaries(void)
{
	is_row(3, 1, 0, 1104);
	is_row(3, 1, 3, 1104);
	is_row(3, 1, 4, 1112);
	is_row(3, 1, 7, 1112);
	is_row(3, 2, 0, 1128);
	is_row(3, 2, 2, 1128);
	is_row(3, 2, 3, 1136);
	is_row(3, 2, 4, 1144);
	is_row(3, 2, 99, 1144);
}

static void test_unknown(void)
{
	is_row(0, 0, 0, 0);
	is_row(1, 9, 3, 0);
	is_row(2, 6, 10, 0);
	is_row(3, 5, 0, 0);
	is_row(4, 2, 0, 0);
	is_row(UINT_MAX, UINT_MAX, UINT_MAX, 0);
}

/* The walker requires these properties of a row. */
static void test_rows(void)
{
	for (unsigned int minor = 0; minor <= 4; minor++) {
		const struct ruby_version *version = ruby_version__find(3, minor, 0);
		const struct ruby_offsets *at = &version->offsets;
		int sources = !!at->class_iv_table + !!at->class_path + !!at->class_ivs;

		is_int(sources, 1, "3.%u has class names in one place", minor);
		is_int(at->cfp_size % 8, 0, "... and frames of whole words");
		is_int(at->thread_native, 0, "... and its state in thread-local storage");
	}
	ok(ruby_version__find(2, 7, 0)->offsets.thread_native > 0, "2.7 has not");
}

int main(void)
{
	test_known();
	test_boundaries();
	test_unknown();
	test_rows();
	return tap__done();
}
