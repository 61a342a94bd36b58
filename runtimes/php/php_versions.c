// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/php/php_versions.h"

#include <limits.h>
#include <stddef.h>

#include "core/base/util.h"

/* Sources, all at the version of the row: Zend/zend_globals.h (struct _zend_executor_globals),
 * Zend/zend_compile.h (struct _zend_op_array, struct _zend_internal_function),
 * Zend/zend_generators.h (struct _zend_generator). The row of 8.5 was read from the machine code of
 * a build, and compared with the headers of 8.5.7 later. The row of 8.6 is from the headers of
 * 8.6.0RC3. The fiber's offsets of 8.1 and 8.3 were read from machine code
 * (zend_fiber_switch_context). scripts/check-php-offsets compares the rows with the headers of an
 * installed PHP. */

static const struct php_version versions[] = {
	{ .minor = 0,
	  .offsets = { .current = 488,
		       .exception_opline = 880,
		       .last = 68,
		       .opcodes = 72,
		       .filename = 144,
		       .handler = 56,
		       .generator_parent = 152,
		       .generator_fake = 192 } },
	{ .minor = 1,
	  .offsets = { .current = 488,
		       .exception_opline = 880,
		       .fiber = 1664,
		       .last = 68,
		       .opcodes = 72,
		       .filename = 144,
		       .handler = 56,
		       .generator_parent = 152,
		       .generator_fake = 184 } },
	{ .minor = 2,
	  .offsets = { .current = 488,
		       .exception_opline = 880,
		       .fiber = 1672,
		       .last = 80,
		       .opcodes = 88,
		       .filename = 152,
		       .handler = 72,
		       .generator_parent = 152,
		       .generator_fake = 184 } },
	{ .minor = 3,
	  .offsets = { .current = 488,
		       .exception_opline = 880,
		       .fiber = 1656,
		       .last = 76,
		       .opcodes = 80,
		       .filename = 144,
		       .handler = 72,
		       .generator_parent = 152,
		       .generator_fake = 184 } },
	{ .minor = 4,
	  .offsets = { .current = 488,
		       .exception_opline = 952,
		       .fiber = 1744,
		       .last = 96,
		       .opcodes = 104,
		       .filename = 168,
		       .handler = 88,
		       .generator_parent = 152,
		       .generator_fake = 184 } },
	{ .minor = 5,
	  .offsets = { .current = 512,
		       .exception_opline = 976,
		       .fiber = 1768,
		       .last = 96,
		       .opcodes = 104,
		       .filename = 168,
		       .handler = 88,
		       .generator_parent = 152,
		       .generator_fake = 184 } },
	{ .minor = 6,
	  .offsets = { .current = 512,
		       .exception_opline = 1016,
		       .fiber = 1808,
		       .last = 96,
		       .opcodes = 104,
		       .filename = 168,
		       .handler = 88,
		       .generator_parent = 152,
		       .generator_fake = 184 } },
};

static unsigned int newest_shown = UINT_MAX;

void php_version__hide(unsigned int minor)
{
	newest_shown = minor;
}

const struct php_version *php_version__find(unsigned int minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].minor == minor && minor <= newest_shown)
			return &versions[i];
	return NULL;
}

const struct php_version *php_version__older(unsigned int minor)
{
	const struct php_version *newest = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].minor <= newest_shown)
			newest = &versions[i];
	return newest && minor > newest->minor ? newest : NULL;
}
