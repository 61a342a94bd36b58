// SPDX-License-Identifier: GPL-2.0-or-later
/* Times of the requests for a process's map, with a runtime that only records them and a simulated
 * clock. */
#include "core/capture/map_asking.h"

#include <errno.h>

#include "tests/tap.h"

static int requests_n, answered_n, ask_result, answer;
static unsigned waited_ms;

static int ask_map(struct runtime_session *session, uint32_t pid, struct err *err)
{
	(void)session;
	requests_n++;
	return ask_result ? err__set(err, ask_result, "process %u: no", pid) : 0;
}

static int map_result(struct runtime_session *session, uint32_t pid, unsigned timeout_ms,
		      struct err *err)
{
	(void)session;
	answered_n++;
	waited_ms = timeout_ms;
	return answer ? err__set(err, answer, "process %u: failed", pid) : 0;
}

static const struct runtime_jit jit = { .ask_map = ask_map, .map_result = map_result };
static const struct runtime runtime = { .name = "noted", .jit = &jit };
static struct map_asking asking;
static struct map_request state;
static struct err err;

#define SECONDS(n) ((n)*1000000000ULL)

static void begin(void)
{
	asking = (struct map_asking) {};
	state = (struct map_request) { .runtime = &runtime, .pid = 4711, .now_ns = SECONDS(1000) };
	requests_n = answered_n = ask_result = answer = 0;
	err.text[0] = '\0';
}

static int step(uint64_t after_ns)
{
	state.now_ns += after_ns;
	return map_asking__step(&asking, &state, &err);
}

/* Returns the seconds between this request and the next one if code without a name continues to
 * appear and the answer names @named of it. */
static unsigned pause_s(size_t named)
{
	int before = requests_n;
	unsigned s;

	for (s = 0; s < 1000 && requests_n == before; s++) {
		state.unknown++;
		state.unknown_ever++;
		step(SECONDS(1));
	}
	step(0);
	state.named_ever += named;
	return s;
}

static void test_first(void)
{
	begin();
	is_int(step(0), 0, "at first it is asked, whatever there is");
	is_int(requests_n, 1, "once");
	answer = -EAGAIN;
	is_int(step(SECONDS(1)), 0, "no answer yet");
	is_int(requests_n, 1, "is no reason to ask again");
	answer = 0;
	is_int(step(SECONDS(1)), 1, "the map is there");
	is_int(answered_n, 2, "that was all that was answered");
	is_int(step(SECONDS(100)), 0, "without new code");
	is_int(requests_n, 1, "there is nothing to ask");
}

static void test_pauses(void)
{
	unsigned useful[3], useless[8];
	size_t i;

	begin();
	step(0), step(0);
	for (i = 0; i < 3; i++)
		useful[i] = pause_s(1);
	ok(useful[1] == 4 && useful[2] == 4, "some seconds between requests that help: %u, %u",
	   useful[1], useful[2]);
	for (i = 0; i < 8; i++)
		useless[i] = pause_s(0);
	ok(useless[2] > useless[1] && useless[3] > useless[2],
	   "longer ones if they do not: %u, %u, %u", useless[1], useless[2], useless[3]);
	ok(useless[7] == useless[6] && useless[7] == 61, "a minute at most: %u", useless[7]);
	pause_s(1);
	is_int(pause_s(1), 4, "and short ones again once it helps");
}

static void test_failures(void)
{
	begin();
	ask_result = -ENOTSUP;
	is_int(step(0), -ENOTSUP, "it cannot be asked");
	is_str(err.text, "process 4711: no", "that is told");
	state.unknown = state.unknown_ever = 5;
	err.text[0] = '\0';
	is_int(step(SECONDS(100)), 0, "and it is not tried again");
	is_int(requests_n, 1, "never");
	state.last = true;
	step(0);
	is_int(requests_n, 1, "not even at the end");

	begin();
	answer = -ETIMEDOUT;
	step(0);
	is_int(step(0), -ETIMEDOUT, "no answer");
	is_str(err.text, "process 4711: failed", "is told");
	state.unknown = state.unknown_ever = 1;
	step(SECONDS(10)), step(0);
	is_int(requests_n, 1, "after a failure it is left alone for a while");
	step(SECONDS(100));
	is_int(requests_n, 2, "then it is asked again");
	is_int(step(0), -ETIMEDOUT, "another failure");
	is_str(err.text, "", "is not told again");
}

static void test_last(void)
{
	begin();
	step(0), step(0);
	state.last = true;
	step(0);
	is_int(requests_n, 1, "at the end: if all code has a name, it is not asked");
	state.unknown = state.unknown_ever = 3;
	step(0);
	is_int(requests_n, 2, "else it is, however short the time since");
	state.wait_ms = 1234;
	is_int(step(0), 1, "and its answer");
	is_int(waited_ms, 1234, "is waited for");
}

int main(void)
{
	test_first();
	test_pauses();
	test_failures();
	test_last();
	return tap__done();
}
