// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_common.h"

#define BAR_WIDTH 40

/* Returns the smallest value of a bucket. For the bucket after the last one it is UINT64_MAX. */
static uint64_t least(unsigned bucket)
{
	if (bucket >= PROFILE_BUCKETS)
		return UINT64_MAX;
	return bucket ? 1ULL << (bucket - 1) : 0;
}

/* Returns the bucket in which the sum of occurrences reaches @per_mille of 1000. */
static unsigned find_share(const struct profile_histogram *histogram, unsigned per_mille)
{
	/* double: a sum may be near the limit of the integers */
	double target = histogram->occurrences * (per_mille / 1000.0), sum = 0;
	unsigned bucket = 0, last = 0;

	for (; bucket < PROFILE_BUCKETS; bucket++) {
		if (!histogram->buckets[bucket])
			continue;
		sum += histogram->buckets[bucket];
		last = bucket;
		if (sum >= target)
			break;
	}
	return last;
}

/* Writes a number of the histogram. */
static void put_value(const struct profile *profile, uint64_t value, char *to, size_t size)
{
	if (profile->histogram_of)
		snprintf(to, size, "%" PRIu64, value);
	else
		output__weight(profile, value, to, size);
}

static void put_shares(const struct profile *profile, const struct profile_histogram *histogram,
		       FILE *out)
{
	static const struct {
		const char *name;
		unsigned per_mille;
	} shares[] = { { "p50", 500 }, { "p90", 900 }, { "p99", 990 } };
	char text[32];

	put_value(profile, histogram->value / histogram->occurrences, text, sizeof(text));
	fprintf(out, "mean %s", text);
	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		put_value(profile, least(find_share(histogram, shares[i].per_mille) + 1), text,
			  sizeof(text));
		fprintf(out, ", %s < %s", shares[i].name, text);
	}
	fputs("\n", out);
}

static void put_bucket(const struct profile *profile, const struct profile_histogram *histogram,
		       unsigned bucket, uint64_t most, FILE *out)
{
	uint64_t count = histogram->buckets[bucket];
	int width = (double)count / most * BAR_WIDTH + 0.5;
	char from[32], to[32], bar[BAR_WIDTH + 1] = "";

	if (count)
		memset(bar, '#', max_of(width, 1));
	put_value(profile, least(bucket), from, sizeof(from));
	put_value(profile, least(bucket + 1), to, sizeof(to));
	fprintf(out, "%10s .. %10s %10" PRIu64 "  |%-*s|\n", from, to, count, BAR_WIDTH, bar);
}

/* Writes the stack as in the folded form. */
static int put_stack(const struct profile *profile, uint32_t node, FILE *out)
{
	size_t n = 0, cap = 0;
	uint32_t *chain = NULL;
	int ret = 0;

	for (; node && !ret; node = profile->nodes[node].parent) {
		ret = array__reserve(&chain, &cap, n + 1, sizeof(*chain));
		if (!ret)
			chain[n++] = profile->nodes[node].frame;
	}
	while (n && !ret) {
		char *label = output__label(profile, &profile->frames[chain[--n]], 0);

		if (!label)
			ret = -ENOMEM;
		else
			escape__printable(label);
		fprintf(out, "%s%s", label ? label : "", n ? ";" : "\n");
		free(label);
	}
	free(chain);
	return ret;
}

static int put_heading(const struct profile *profile, const struct profile_histogram *histogram,
		       FILE *out)
{
	const char *name = histogram->node ? "this stack" : histogram->name;
	char value[32];
	int ret = 0;

	fputs("\n", out);
	if (histogram->node)
		ret = put_stack(profile, histogram->node, out);
	put_value(profile, histogram->value, value, sizeof(value));
	if (*name)
		escape__line(out, "%s: %s in %" PRIu64 " occurrences", name, value,
			     histogram->occurrences);
	return ret;
}

static void put_histogram(const struct profile *profile, const struct profile_histogram *histogram,
			  FILE *out)
{
	unsigned first = PROFILE_BUCKETS, last = 0;
	uint64_t most = 1;

	for (unsigned i = 0; i < PROFILE_BUCKETS; i++) {
		if (!histogram->buckets[i])
			continue;
		first = min_of(first, i);
		last = i;
		most = max_of(most, histogram->buckets[i]);
	}
	if (histogram->below)
		fprintf(out, "below 0: %" PRIu64 " occurrences, not part of the following\n",
			histogram->below);
	if (!histogram->occurrences)
		return;
	put_shares(profile, histogram, out);
	for (unsigned i = first; i <= last; i++)
		put_bucket(profile, histogram, i, most, out);
}

static int compare_values(const void *a, const void *b)
{
	const struct profile_histogram *x = *(const struct profile_histogram *const *)a;
	const struct profile_histogram *y = *(const struct profile_histogram *const *)b;

	if (x->value != y->value)
		return x->value > y->value ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void put_missing(const struct profile *profile, const struct profile_histogram *all,
			FILE *out)
{
	uint64_t missing =
		profile->occurrences - min_of(profile->occurrences, all->occurrences + all->below);

	if (missing && profile->histogram_of)
		fprintf(out, "without %s: %" PRIu64 " occurrences\n", profile->histogram_of,
			missing);
	else if (missing)
		fprintf(out, "without a value, because the end was not seen: %" PRIu64 "\n",
			missing);
}

int output__histogram(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	size_t i, n = profile->n_histograms;
	const struct profile_histogram **sorted = calloc(n + 1, sizeof(struct profile_histogram *));

	int ret = 0;

	if (!sorted)
		return -ENOMEM;
	output__heading(profile, out);
	for (i = 0; i < n; i++)
		sorted[i] = &profile->histograms[i];
	if (n > 1)
		qsort(sorted + 1, n - 1, sizeof(*sorted), compare_values);
	for (i = 0; !ret && i < n && (!opts->rows || i <= opts->rows); i++) {
		ret = put_heading(profile, sorted[i], out);
		put_histogram(profile, sorted[i], out);
		if (!i)
			put_missing(profile, sorted[i], out);
	}
	if (i < n)
		fprintf(out, "\n(%zu more)\n", n - i);
	free(sorted);
	return ret ? ret : output__finish(out);
}
