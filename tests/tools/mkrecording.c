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

struct made {
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

static void make_frames(struct made *made)
{
	struct sink_process process = { 100, 1, 5, "made", "./made up", NULL, NULL };
	static const struct sink_event event = { "cpu", SINK_UNIT_SAMPLES };
	uint32_t image, id, i;

	check(ids__event(made->ids, &event, &id, &err));
	check(recording__kind(made->recording, KIND_NATIVE, "native", "_[n]", &err));
	check(recording__kind(made->recording, KIND_RUNTIME, "made", "_[m]", &err));
	check(ids__process(made->ids, &process, &id, &err));
	check(ids__image(made->ids, "/bin/made", "", &image, &err));
	for (i = 0; i < THREADS; i++)
		check(ids__thread(made->ids, id, 100 + i, "made", &made->stacks[i].thread, &err));
	for (i = 0; i < made->functions; i++) {
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
		check(ids__frame(made->ids, &native, &made->native[i], NULL, &err));
		check(ids__frame(made->ids, &runtime, &made->runtime[i], NULL, &err));
		check(ids__locations(made->ids, made->native[i],
				     &(struct sink_location) { KIND_NATIVE, function, NULL, 0 }, 1,
				     &err));
		check(ids__locations(made->ids, made->runtime[i],
				     &(struct sink_location) { KIND_RUNTIME, function, file, i }, 1,
				     &err));
	}
}

/* Changes the stack from @from on. Functions with numbers divisible by LOOP_EVERY are loops. */
static void change(const struct made *made, struct stack *stack, uint32_t from)
{
	for (; from < made->depth; from++) {
		uint32_t function = random_below(made->functions / LOOP_EVERY) * LOOP_EVERY;

		stack->frames[from] = function + from % LOOP_EVERY;
	}
}

static struct nodes make_stack(struct made *made, struct stack *stack)
{
	struct nodes nodes = {};
	uint32_t changed = 1, i;

	while (changed < made->depth && random_below(3))
		changed++;
	change(made, stack, made->depth - changed);
	for (i = 0; i < made->depth; i++) {
		check(ids__node(made->ids, nodes.native, made->native[stack->frames[i]],
				64 * (int64_t)i, &nodes.native, &err));
		if (i % LOOP_EVERY == 0)
			check(ids__node(made->ids, nodes.runtime, made->runtime[stack->frames[i]],
					64 * (int64_t)i + 8, &nodes.runtime, &err));
	}
	return nodes;
}

static struct nodes next_stack(struct made *made, struct stack *stack)
{
	double chance = (random_below(1 << 30) + 0.5) / (1 << 30);

	if (!made->pool_max)
		return make_stack(made, stack);
	if (made->n_pool == made->pool_max)
		return made->pool[(uint32_t)(pow(made->pool_max, chance) - 1)];
	return made->pool[made->n_pool++] = make_stack(made, stack);
}

static void add_sample(struct made *made, struct stack *stack, uint64_t number)
{
	struct nodes nodes = next_stack(made, stack);
	struct sink_sample sample = { .time_ns = number * 1000000,
				      .thread = stack->thread,
				      .flags = 1,
				      .event = 1,
				      .value = 1,
				      .weight = 1,
				      .total = 1,
				      .native = nodes.native,
				      .runtime = nodes.runtime };

	check(ids__sample(made->ids, &sample, &err));
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
	struct made made = {};
	uint64_t samples, i;

	if (argc != 5 && argc != 6)
		return 2;
	made.pool_max = argc == 6 ? strtoul(argv[5], NULL, 10) : 0;
	made.pool = calloc(made.pool_max + 1, sizeof(*made.pool));
	samples = strtoull(argv[1], NULL, 10);
	made.functions = max_of(strtoul(argv[2], NULL, 10), (unsigned long)LOOP_EVERY);
	made.depth = min_of(strtoul(argv[3], NULL, 10), (unsigned long)DEPTH_MAX);
	made.native = calloc(made.functions, sizeof(*made.native));
	made.runtime = calloc(made.functions, sizeof(*made.runtime));
	if (!made.native || !made.runtime || !made.pool)
		return 1;
	check(recording__create(argv[4], false, &made.recording, &err));
	check(ids__new(recording__sink(made.recording), &made.ids, &err));
	make_frames(&made);
	for (i = 0; i < THREADS; i++) {
		made.stacks[i] = (struct stack) { .thread = made.stacks[i].thread };
		change(&made, &made.stacks[i], COMMON);
	}
	for (i = 0; i < samples; i++) {
		add_sample(&made, &made.stacks[random_below(THREADS)], i);
		if (i % PER_COMMIT == 0)
			check(recording__commit(made.recording, &err));
	}
	check(recording__close(made.recording, &err));
	printf("%.1f ms\n", cpu_ms());
	ids__free(made.ids);
	free(made.native);
	free(made.runtime);
	free(made.pool);
	return 0;
}
