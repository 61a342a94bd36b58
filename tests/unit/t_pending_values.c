// SPDX-License-Identifier: GPL-2.0-or-later
/* Samples whose values arrive later: the data and the time at which the sink gets them. */
#include "core/capture/pending_values.h"

#include <errno.h>

#include "tests/tap.h"

static struct sink_sample seen[4];
static int n_seen;

static int take(struct sink *sink, const struct sink_sample *sample, struct err *err)
{
	(void)sink;
	(void)err;
	seen[n_seen++ % 4] = *sample;
	return 0;
}

static const struct sink_ops ops = { .sample = take };
static struct sink sink = { .ops = &ops };
static struct capture_stats stats;
static struct ids *ids;

static void offer(struct pending_values *pending, uint64_t link, uint32_t flags, uint64_t weight)
{
	struct sink_sample sample = { .event = 2,
				      .link = link,
				      .flags = flags,
				      .value = 1,
				      .weight = weight,
				      .total = weight,
				      .object = 512 };

	is_int(pending_values__sample(pending, &sample, NULL, NULL), 0, "sample %d is taken",
	       (int)link);
	stats.samples++;
	stats.event_samples[1]++;
}

static void tell(struct pending_values *pending, uint64_t link, uint64_t value)
{
	struct rec_value rec = { .type = REC_VALUE, .link = link, .value = value };

	is_int(pending_values__value(pending, &rec, NULL), 0, "value %d is taken", (int)link);
}

static void test_order(struct pending_values *pending)
{
	offer(pending, 7, SAMPLE_COMPLETE, 3);
	is_int(n_seen, 1, "what has its value is the sink's at once");
	is_int(seen[0].link, 7, "with its link");
	offer(pending, 1, SAMPLE_COMPLETE | SAMPLE_PENDING, 1);
	offer(pending, 2, SAMPLE_PENDING, 10);
	offer(pending, 3, SAMPLE_PENDING, 1);
	is_int(n_seen, 1, "what has none yet is not");
	is_int(pending_values__unfinished(pending), 3, "three are to come");
	tell(pending, 2, 500);
	is_int(n_seen, 2, "then its value comes");
	ok(seen[1].value == 500 && seen[1].weight == 10 && seen[1].total == 5000,
	   "its own, and as the sum that of each that it stands for");
	is_int(seen[1].object, 512, "the rest is as it was");
	is_int(seen[1].link, 0, "but for the link");
	tell(pending, 1, 900);
	is_int(seen[2].value, 900, "the first comes last");
	is_int(seen[2].flags, SAMPLE_COMPLETE, "and is pending no more");
}

static void test_dropped(struct pending_values *pending)
{
	tell(pending, 3, 0);
	is_int(n_seen, 3, "what is not wanted is not the sink's");
	is_int(stats.samples, 3, "and is not counted");
	is_int(stats.event_samples[1], 3, "nor with its event");
	tell(pending, 3, 10);
	tell(pending, 99, 10);
	is_int(n_seen, 3, "what is not known is left out");
	is_int(pending_values__unfinished(pending), 0, "none is to come");
}

static void test_bound(struct pending_values *pending)
{
	struct sink_sample sample = {
		.event = 1, .flags = SAMPLE_PENDING, .weight = 2, .object = 512
	};
	struct rest_rec rest = {};
	int failed = 0;

	for (sample.link = 1; sample.link <= PENDING_MAX + 5; sample.link++)
		failed += !!pending_values__sample(pending, &sample, NULL, NULL);
	is_int(failed, 0, "more than there is room for");
	is_int(pending_values__unfinished(pending), PENDING_MAX + 5, "all of them are unfinished");
	tell(pending, 5, 10);
	is_int(n_seen, 3, "the oldest were given up");
	pending_values__give_back(pending, 1, false, &rest);
	ok(rest.weight == 10 && rest.total == 5120, "and belong to the rest: %d of %d bytes",
	   (int)rest.weight, (int)rest.total);
	pending_values__give_back(pending, 1, false, &rest);
	is_int(rest.weight, 10, "once");
	pending_values__give_back(pending, 2, true, &rest);
	is_int(rest.weight, 10, "of their event alone");
	tell(pending, 6, 10);
	is_int(n_seen, 4, "the others were not");
	is_int(pending_values__unfinished(pending), PENDING_MAX + 4, "and are finished one by one");
	rest = (struct rest_rec) {};
	pending_values__give_back(pending, 1, true, &rest);
	is_int(rest.weight, 2 * (PENDING_MAX - 1), "at the end all that are pending belong to it");
}

int main(void)
{
	struct pending_values *pending;

	if (ids__new(&sink, &ids, NULL))
		return 1;
	pending = pending_values__new(&ids, &stats);
	if (!pending)
		return 1;
	test_order(pending);
	test_dropped(pending);
	test_bound(pending);
	pending_values__free(pending);
	pending_values__free(NULL);
	ids__free(ids);
	return tap__done();
}
