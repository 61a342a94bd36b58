// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/map_asking.h"

#include <errno.h>

#include "core/base/util.h"

static int failed(struct map_asking *asking, int rc, struct err *err)
{
	asking->refused |= rc == -ENOTSUP;
	if (asking->reported)
		err->text[0] = '\0';
	asking->reported = true;
	return rc;
}

/* Evaluates whether the answer to the last request named code, after the map was read. */
static void evaluate(struct map_asking *asking, const struct map_request *request)
{
	bool helped = request->named_ever > asking->named_ever;

	asking->answered = false;
	asking->pause_ns = helped || !asking->pause_ns
				   ? MAP_ASK_PAUSE_MIN_NS
				   : min_of(2 * asking->pause_ns, MAP_ASK_PAUSE_MAX_NS);
	asking->next_ns = request->now_ns + asking->pause_ns;
}

static int take_answer(struct map_asking *asking, const struct map_request *request,
		       struct err *err)
{
	int rc = request->runtime->jit->map_result(request->session, request->pid, request->wait_ms,
						   err);

	if (rc == -EAGAIN)
		return 0;
	asking->under_way = false;
	asking->answered = true;
	asking->named_ever = request->named_ever;
	return rc ? failed(asking, rc, err) : 1;
}

int map_asking__step(struct map_asking *asking, const struct map_request *request, struct err *err)
{
	bool new_ones = request->unknown && request->unknown_ever > asking->unknown_ever;
	int rc;

	if (asking->under_way)
		return take_answer(asking, request, err);
	if (asking->answered)
		evaluate(asking, request);
	if (asking->refused || (asking->requested && !new_ones) ||
	    (request->last && !request->unknown) ||
	    (!request->last && request->now_ns < asking->next_ns))
		return 0;
	asking->requested = true;
	asking->unknown_ever = request->unknown_ever;
	rc = request->runtime->jit->ask_map(request->session, request->pid, err);
	if (!rc) {
		asking->under_way = true;
		return 0;
	}
	asking->answered = true; /* as an answer that gave no names */
	asking->named_ever = request->named_ever;
	return failed(asking, rc, err);
}
