// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/perl/perl_versions.h"

#include <limits.h>
#include <stddef.h>

#include "core/base/util.h"

/* Sources, all at the version of the row: intrpvar.h (struct interpreter), cop.h (PERL_SI,
 * PERL_CONTEXT, CXp_TRYBLOCK, later CXp_EVALBLOCK, CXp_TRY), sv.h (struct xpvcv), hv.h (struct
 * xpvhv_aux, from 5.36 on in struct xpvhv_with_aux), opnames.h (OP_ENTERSUB, OP_NEXTSTATE,
 * OP_SORT). scripts/check-perl-offsets compares the rows with the headers of an installed
 * perl. */

#define COMMON .code_stash = 32, .evals_block = 0x40, .aux_name = 0, .aux_name_count = 28

#define COMMON_FROM_5_32 COMMON, .si_type = 44, .context = 104, .context_sub = 64

#define OPS_TO_5_36 \
	.op_entersub = 184, .op_nextstate = 195, .op_sort = 167, .op_leave = { 185, 205, 348, 346 }
#define OPS_FROM_5_38 \
	.op_entersub = 187, .op_nextstate = 198, .op_sort = 170, .op_leave = { 188, 208, 351, 349 }
#define OPS_FROM_5_42 \
	.op_entersub = 191, .op_nextstate = 202, .op_sort = 171, .op_leave = { 192, 212, 355, 353 }

#define INTERPRETER_TO_5_32   .defstash = 208, .curcop = 224, .curstackinfo = 240, .comppad = 304
#define INTERPRETER_FROM_5_34 .defstash = 192, .curcop = 208, .curstackinfo = 224, .comppad = 288

static const struct perl_version versions[] = {
	{ .minor = 30,
	  .offsets = { COMMON, .si_type = 40, .context = 96, .context_sub = 56, OPS_TO_5_36 },
	  INTERPRETER_TO_5_32,
	  .phase = 2508,
	  .size = 3280 },
	{ .minor = 32,
	  .verified = true,
	  .offsets = { COMMON_FROM_5_32, OPS_TO_5_36 },
	  INTERPRETER_TO_5_32,
	  .phase = 2532,
	  .size = 3792 },
	{ .minor = 34,
	  .offsets = { COMMON_FROM_5_32, OPS_TO_5_36, .evals_try = 0x80 },
	  INTERPRETER_FROM_5_34,
	  .phase = 2512,
	  .size = 3760 },
	{ .minor = 36,
	  .verified = true,
	  .offsets = { COMMON_FROM_5_32, OPS_TO_5_36, .evals_try = 0x80, .aux = 32 },
	  INTERPRETER_FROM_5_34,
	  .phase = 2512,
	  .size = 3768 },
	{ .minor = 38,
	  .offsets = { COMMON_FROM_5_32, OPS_FROM_5_38, .evals_try = 0x80, .aux = 32 },
	  INTERPRETER_FROM_5_34,
	  .phase = 2336,
	  .size = 3896 },
	{ .minor = 40,
	  .verified = true,
	  .offsets = { COMMON_FROM_5_32, OPS_FROM_5_38, .evals_try = 0x80, .aux = 32 },
	  INTERPRETER_FROM_5_34,
	  .phase = 2216,
	  .size = 3768 },
	{ .minor = 42,
	  .verified = true,
	  .offsets = { COMMON_FROM_5_32, OPS_FROM_5_42, .evals_try = 0x80, .aux = 32 },
	  INTERPRETER_FROM_5_34,
	  .phase = 2216,
	  .size = 3768 },
	{ .minor = 44,
	  .verified = true,
	  .offsets = { COMMON_FROM_5_32, OPS_FROM_5_42, .evals_try = 0x80, .aux = 32 },
	  INTERPRETER_FROM_5_34,
	  .phase = 2216,
	  .size = 3776 },
};

static unsigned int newest_shown = UINT_MAX;

void perl_version__hide(unsigned int minor)
{
	newest_shown = minor;
}

const struct perl_version *perl_version__find(unsigned int minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].minor == minor && minor <= newest_shown)
			return &versions[i];
	return NULL;
}

const struct perl_version *perl_version__older(unsigned int minor)
{
	const struct perl_version *newest = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(versions); i++)
		if (versions[i].minor <= newest_shown)
			newest = &versions[i];
	return newest && minor > newest->minor ? newest : NULL;
}
