// SPDX-License-Identifier: GPL-2.0-or-later
/* mkrecording SAMPLES FUNCTIONS DEPTH FILE [STACKS]: writes a made-up recording, the same at each
 * run, and prints the CPU time of that in ms. Stacks change by a few inner frames from one sample
 * of a thread to the next; every fourth native frame is an interpreter's loop. STACKS limits the
 * number of different stacks. The n-th stack is then as frequent as 1/n (Zipf), as in real
 * programs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "core/base/util.h"
#include "core/capture/ids.h"
#include "core/profile/profile.h"
#include "core/store/recording.h"

#define THREADS	   4
#define DEPTH_MAX  1000
#define COMMON	   5 /* outermost frames that all threads share */
#define LOOP_EVERY 4
#define PER_COMMIT 1000

struct stack {
	uint32_t frames[DEPTH_MAX]; /* functions of native frames, outermost first */
	uint32_t thread;
};

struct synthetic {
	struct recording *recording;
	struct ids *ids;
	uint32_t functions, depth;
	uint32_t *native, *runtime; /* frames, by function */
	struct stack stacks[THREADS];
	struct nodes {
		uint32_t native, runtime;
	} * pool; /* existing stacks, with STACKS */
	uint32_t n_pool, pool_max;
};

static uint64_t seed = 1;
static struct err err;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (seed >> 33) % n;
}

static void check(int code)
{
	if (!code)
		return;
	fprintf(stderr, "mkrecording: %s\n", err.text);
	exit(1);
}

static void make_frames(struct synthetic *synthetic)
{
	struct sink_process process = { 100, 1, 5, "made", "./made up", NULL, NULL };
	static const struct sink_event event = { "cpu", SINK_UNIT_SAMPLES };
	uint32_t image, id, i;

	check(ids__event(synthetic->ids, &event, &id, &err));
	check(recording__kind(synthetic->recording, KIND_NATIVE, "native", "_[n]", &err));
	check(recording__kind(synthetic->recording, KIND_RUNTIME, "made", "_[m]", &err));
	check(ids__process(synthetic->ids, &process, &id, &err));
	check(ids__image(synthetic->ids, "/bin/made", "", &image, &err));
	for (i = 0; i < THREADS; i++)
		check(ids__thread(synthetic->ids, id, 100 + i, "made", &synthetic->stacks[i].thread,
				  &err));
	for (i = 0; i < synthetic->functions; i++) {
		struct ids_frame native = { .kind = KIND_NATIVE,
					    .image = image,
					    .address = 64 * i,
					    .loop = i % LOOP_EVERY == 0 };
		struct ids_frame runtime = { .kind = KIND_RUNTIME,
					     .process = id,
					     .address = i + 1 };
		char function[64], file[64];

		snprintf(function, sizeof(function), "namespace_%u::function_%u", i % 50, i);
		snprintf(file, sizeof(file), "/srv/made/source_%u.x", i % 300);
		check(ids__frame(synthetic->ids, &native, &synthetic->native[i], NULL, &err));
		check(ids__frame(synthetic->ids, &runtime, &synthetic->runtime[i], NULL, &err));
		check(ids__locations(synthetic->ids, synthetic->native[i],
				     &(struct sink_location) { KIND_NATIVE, function, NULL, 0 }, 1,
				     &err));
		check(ids__locations(synthetic->ids, synthetic->runtime[i],
				     &(struct sink_location) { KIND_RUNTIME, function, file, i }, 1,
				     &err));
	}
}

/* Changes the stack from @from on. Functions with numbers divisible by LOOP_EVERY are loops. */
static void change(const struct synthetic *synthetic, struct stack *stack, uint32_t from)
{
	for (; from < synthetic->depth; from++) {
		uint32_t function = random_below(synthetic->functions / LOOP_EVERY) * LOOP_EVERY;

		stack->frames[from] = function + from % LOOP_EVERY;
	}
}

static struct nodes make_stack(struct synthetic *synthetic, struct stack *stack)
{
	struct nodes nodes = {};
	uint32_t changed = 1, i;

	while (changed < synthetic->depth && random_below(3))
		changed++;
	change(synthetic, stack, synthetic->depth - changed);
	for (i = 0; i < synthetic->depth; i++) {
		check(ids__node(synthetic->ids, nodes.native, synthetic->native[stack->frames[i]],
				64 * (int64_t)i, &nodes.native, &err));
		if (i % LOOP_EVERY == 0)
			check(ids__node(synthetic->ids, nodes.runtime,
					synthetic->runtime[stack->frames[i]], 64 * (int64_t)i + 8,
					&nodes.runtime, &err));
	}
	return nodes;
}

static struct nodes next_stack(struct synthetic *synthetic, struct stack *stack)
{
	double chance = (random_below(1 << 30) + 0.5) / (1 << 30);

	if (!synthetic->pool_max)
		return make_stack(synthetic, stack);
	if (synthetic->n_pool == synthetic->pool_max)
		return synthetic->pool[(uint32_t)(pow(synthetic->pool_max, chance) - 1)];
	return synthetic->pool[synthetic->n_pool++] = make_stack(synthetic, stack);
}

static void add_sample(struct synthetic *synthetic, struct stack *stack, uint64_t number)
{
	struct nodes nodes = next_stack(synthetic, stack);
	struct sink_sample sample = { .time_ns = number * 1000000,
				      .thread = stack->thread,
				      .flags = 1,
				      .event = 1,
				      .value = 1,
				      .weight = 1,
				      .total = 1,
				      .native = nodes.native,
				      .runtime = nodes.runtime };

	check(ids__sample(synthetic->ids, &sample, &err));
}

static double cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
}

int main(int argc, char **argv)
{
	struct synthetic synthetic = {};
	uint64_t samples, i;

	if (argc != 5 && argc != 6)
		return 2;
	synthetic.pool_max = argc == 6 ? strtoul(argv[5], NULL, 10) : 0;
	synthetic.pool = calloc(synthetic.pool_max + 1, sizeof(*synthetic.pool));
	samples = strtoull(argv[1], NULL, 10);
	synthetic.functions = max_of(strtoul(argv[2], NULL, 10), (unsigned long)LOOP_EVERY);
	synthetic.depth = min_of(strtoul(argv[3], NULL, 10), (unsigned long)DEPTH_MAX);
	synthetic.native = calloc(synthetic.functions, sizeof(*synthetic.native));
	synthetic.runtime = calloc(synthetic.functions, sizeof(*synthetic.runtime));
	if (!synthetic.native || !synthetic.runtime || !synthetic.pool)
		return 1;
	check(recording__create(argv[4], false, &synthetic.recording, &err));
	check(ids__new(recording__sink(synthetic.recording), &synthetic.ids, &err));
	make_frames(&synthetic);
	for (i = 0; i < THREADS; i++) {
		synthetic.stacks[i] = (struct stack) { .thread = synthetic.stacks[i].thread };
		change(&synthetic, &synthetic.stacks[i], COMMON);
	}
	for (i = 0; i < samples; i++) {
		add_sample(&synthetic, &synthetic.stacks[random_below(THREADS)], i);
		if (i % PER_COMMIT == 0)
			check(recording__commit(synthetic.recording, &err));
	}
	check(recording__close(synthetic.recording, &err));
	printf("%.1f ms\n", cpu_ms());
	ids__free(synthetic.ids);
	free(synthetic.native);
	free(synthetic.runtime);
	free(synthetic.pool);
	return 0;
}
