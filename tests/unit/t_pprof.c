// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <limits.h>

#include "core/base/util.h"
#include "core/out/output.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

/* The output of output__pprof(), read back by tests/tools/read_pprof.py, which is based on the
 * published format only, and by protobuf's own tool where it is installed. */

static const struct output_opts plain = { 0 };

/* The part of pprof's proto/profile.proto that defines the encoding of fields. */
static const char schema[] =
	"syntax = \"proto3\";\n"
	"message Profile { repeated Type sample_type = 1; repeated Sample sample = 2;\n"
	"  repeated Mapping mapping = 3; repeated Location location = 4;\n"
	"  repeated Function function = 5; repeated string string_table = 6;\n"
	"  int64 duration_nanos = 10; Type period_type = 11; int64 period = 12;\n"
	"  repeated int64 comment = 13; }\n"
	"message Type { int64 type = 1; int64 unit = 2; }\n"
	"message Sample { repeated uint64 location_id = 1; repeated int64 value = 2;\n"
	"  repeated Label label = 3; }\n"
	"message Label { int64 key = 1; int64 str = 2; }\n"
	"message Mapping { uint64 id = 1; bool has_functions = 7; bool has_filenames = 8;\n"
	"  bool has_line_numbers = 9; bool has_inline_frames = 10; }\n"
	"message Location { uint64 id = 1; uint64 mapping_id = 2; repeated Line line = 4; }\n"
	"message Line { uint64 function_id = 1; int64 line = 2; }\n"
	"message Function { uint64 id = 1; int64 name = 2; int64 filename = 4; }\n";

static uint32_t frame_of(struct profile *profile, uint8_t kind, const char *name, const char *file,
			 uint32_t line)
{
	uint32_t frame = 0;

	profile__frame(profile, kind, name, file, line, &frame);
	return frame;
}

static void write_file(const struct profile *profile, const struct output_opts *opts,
		       const char *name)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	out = fopen(path, "w");
	is_int(output__pprof(profile, opts, out), 0, "%s is written", name);
	fclose(out);
}

/* Returns the whole contents of the file, owned by the caller. */
static char *read_back(const char *name)
{
	char cwd[PATH_MAX];
	size_t len;
	char *text;

	if (!getcwd(cwd, sizeof(cwd)))
		exit(1);
	ok(workdir__try("python3 '%s/tests/tools/read_pprof.py' %s > text", cwd, name),
	   "%s is as specified", name);
	text = (char *)workdir__read("text", &len);
	text[len] = '\0';
	return text;
}

static void check_text(const struct profile *profile, const struct output_opts *opts,
		       const char *name, const char *want)
{
	char *text;

	write_file(profile, opts, name);
	text = read_back(name);
	is_str(text, want, "%s", name);
	free(text);
}

/* The file is unchanged when protobuf's tool decodes and encodes it. */
static void check_protoc(const char *name)
{
	if (!workdir__try("command -v protoc > /dev/null")) {
		tap__skip("no protoc", "%s: protobuf reads it", name);
		return;
	}
	workdir__write("profile.proto", schema);
	ok(workdir__try("gzip -dc < %s > plain && protoc --decode=Profile profile.proto < plain > "
			"decoded && protoc --encode=Profile profile.proto < decoded | cmp - plain",
			name),
	   "%s: protobuf reads it", name);
}

/* Makes a profile with inlined functions: alone, in a chain, in a recursion, and below a frame that
 * is not native. It also has an annotated name, bytes that are not text, and an empty stack. */
static struct profile *make_profile(void)
{
	struct profile *profile = profile__new();
	int python = profile__kind(profile, "python", "_[py]");
	uint32_t start = frame_of(profile, KIND_NATIVE, "main", "/src/main.c", 7);
	uint32_t outer = frame_of(profile, KIND_INLINED, "outer", "/src/in.h", 30);
	uint32_t inner = frame_of(profile, KIND_INLINED, "inner", "/src/in.h", 40);
	uint32_t script = frame_of(profile, python, "<run>", "/app/run.py", 3);
	uint32_t kernel = frame_of(profile, KIND_KERNEL, "read\x1b\xff", NULL, 0);

	profile->target = strdup("pid 7 (app)");
	profile->duration_s = 2.5;
	profile__add(profile, (uint32_t[]) { start, outer, inner, kernel }, 4, 4);
	profile__add(profile, (uint32_t[]) { start, outer, inner }, 3, 3);
	profile__add(profile, (uint32_t[]) { start, outer }, 2, 2);
	profile__add(profile, (uint32_t[]) { start }, 1, 1);
	profile__add(profile, (uint32_t[]) { start, start, inner }, 3, 5);
	profile__add(profile, (uint32_t[]) { start, script, inner }, 3, 6);
	profile__add(profile, (uint32_t[]) { inner }, 1, 7);
	profile__add(profile, (uint32_t[]) { start, kernel, script }, 3, 0);
	profile__add(profile, NULL, 0, 8);
	profile__add_loss(profile, "ring buffer full", 3);
	return profile;
}

static void check_samples(void)
{
	struct profile *profile = make_profile();

	check_text(profile, &plain, "no-frequency.pb.gz",
		   "types samples/count\n"
		   "duration 2500000000\n"
		   "comment pid 7 (app)\n"
		   "comment lost: ring buffer full: 3\n"
		   "stack 1 main (main.c:7)\n"
		   "stack 2 main (main.c:7)>outer (in.h:30)\n"
		   "stack 3 main (main.c:7)>outer (in.h:30)>inner (in.h:40)\n"
		   "stack 4 main (main.c:7)>outer (in.h:30)>inner (in.h:40);read??\n"
		   "stack 5 main (main.c:7);main (main.c:7)>inner (in.h:40)\n"
		   "stack 6 main (main.c:7);<run> (run.py:3);inner (in.h:40)\n"
		   "stack 7 inner (in.h:40)\n"
		   "stack 8 [no stack]\n");
	profile->frequency_hz = 100;
	check_text(
		profile, &(struct output_opts) { .annotate = 1 }, "annotated.pb.gz",
		"types samples/count cpu/nanoseconds\n"
		"period 10000000 cpu/nanoseconds\n"
		"duration 2500000000\n"
		"comment pid 7 (app)\n"
		"comment lost: ring buffer full: 3\n"
		"stack 1 10000000 main_[n] (main.c:7)\n"
		"stack 2 20000000 main_[n] (main.c:7)>outer_[i] (in.h:30)\n"
		"stack 3 30000000 main_[n] (main.c:7)>outer_[i] (in.h:30)>inner_[i] (in.h:40)\n"
		"stack 4 40000000 main_[n] (main.c:7)>outer_[i] (in.h:30)>inner_[i] (in.h:40);"
		"read??_[k]\n"
		"stack 5 50000000 main_[n] (main.c:7);main_[n] (main.c:7)>inner_[i] (in.h:40)\n"
		"stack 6 60000000 main_[n] (main.c:7);<run>_[py] (run.py:3);inner_[i] (in.h:40)\n"
		"stack 7 70000000 inner_[i] (in.h:40)\n"
		"stack 8 80000000 [no stack]\n");
	check_protoc("annotated.pb.gz");
	profile__free(profile);
}

static void check_times(void)
{
	struct profile *profile = profile__new();
	uint32_t f = frame_of(profile, KIND_NATIVE, "f", NULL, 0);
	uint32_t g = frame_of(profile, KIND_NATIVE, "g", NULL, 0);

	profile->unit = PROFILE_NANOSECONDS;
	profile->counts_calls = true;
	profile__add_calls(profile, &f, 1, 1230000, 21891);
	profile__add_calls(profile, (uint32_t[]) { f, g }, 2, 0, 5);
	profile__add_calls(profile, (uint32_t[]) { f, f }, 2, 9, 0);
	profile__add_calls(profile, (uint32_t[]) { g }, 1, UINT64_MAX, UINT64_MAX);
	check_text(profile, &plain, "times.pb.gz",
		   "types calls/count time/nanoseconds\n"
		   "stack 0 9 f;f\n"
		   "stack 21891 1230000 f\n"
		   "stack 5 0 f;g\n"
		   "stack 9223372036854775807 9223372036854775807 g\n");
	check_protoc("times.pb.gz");
	profile__free(profile);
}

/* For other events, a stack has one value, in the event's unit. */
static void check_events(void)
{
	static const struct {
		const char *unit, *type;
	} cases[] = { { "ns", "nanoseconds" },
		      { "bytes", "bytes" },
		      { "count", "count" },
		      { "furlongs", "furlongs" } };
	struct profile *profile = profile__new();
	uint32_t f = frame_of(profile, KIND_NATIVE, "f", NULL, 0);
	char want[200];

	profile__add(profile, &f, 1, 1ULL << 63);
	profile__add(profile, NULL, 0, 5);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		profile__measures(profile, "block:x", cases[i].unit);
		snprintf(want, sizeof(want),
			 "types block:x/%s\n"
			 "period 1 block:x/%s\n"
			 "stack 5 [no stack]\n"
			 "stack 9223372036854775807 f\n",
			 cases[i].type, cases[i].type);
		check_text(profile, &plain, "event.pb.gz", want);
		check_protoc("event.pb.gz");
	}
	profile->frequency_hz = 100;
	profile__measures(profile, "other-clock", "samples");
	check_text(profile, &plain, "clock.pb.gz",
		   "types samples/count other-clock/nanoseconds\n"
		   "period 10000000 other-clock/nanoseconds\n"
		   "stack 5 50000000 [no stack]\n"
		   "stack 9223372036854775807 9223372036854775807 f\n");
	profile__free(profile);
}

/* If waiting time is recorded, a stack has a sample for each state. */
static void check_states(void)
{
	struct profile *profile = profile__new();
	uint32_t f = frame_of(profile, KIND_NATIVE, "f", NULL, 0);
	struct profile_value value = { .weight = 100, .waiting = 70, .preempted = 10 };

	profile__measures(profile, "wall", "ns");
	profile__add_value(profile, &f, 1, &value, NULL);
	profile__add_value(profile, NULL, 0, &(struct profile_value) { .weight = 5 }, NULL);
	profile->idle.weight = 15;
	profile->idle.whole = 120;
	profile->idle.threads = 1;
	check_text(profile, &plain, "states.pb.gz",
		   "types wall/nanoseconds\n"
		   "period 1 wall/nanoseconds\n"
		   "comment on CPU 25 ns, waiting 70 ns, preempted 10 ns\n"
		   "comment hidden as idle: 15 ns of 120 ns in 1 thread (--idle show)\n"
		   "stack 10 f {state=preempted}\n"
		   "stack 20 f {state=running}\n"
		   "stack 5 [no stack] {state=running}\n"
		   "stack 70 f {state=waiting}\n");
	check_protoc("states.pb.gz");
	profile__free(profile);
}

static void check_empty(void)
{
	struct profile *profile = profile__new();

	check_text(profile, &plain, "empty.pb.gz", "types samples/count\n");
	profile__free(profile);
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the stacks of a text that read_pprof.py printed, in the folded form. */
static char *fold(char *text)
{
	char **lines = NULL, *line, *rest, *folded = NULL, *at;
	size_t n = 0, cap = 0, size, i;
	FILE *out = open_memstream(&folded, &size);

	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		unsigned long long samples;
		int stack;

		if (sscanf(line, "stack %llu %*u %n", &samples, &stack) != 1)
			continue;
		for (at = strchr(line, '>'); at; at = strchr(at, '>'))
			*at = ';';
		if (array__reserve(&lines, &cap, n + 1, sizeof(*lines)) ||
		    asprintf(&lines[n++], "%s %llu\n", line + stack, samples) < 0)
			exit(1);
	}
	qsort(lines, n, sizeof(*lines), compare_lines);
	for (i = 0; i < n; i++) {
		fputs(lines[i], out);
		free(lines[i]);
	}
	free(lines);
	fclose(out);
	return folded;
}

/* Writes enough random stacks for several blocks of output and compares them with the folded form.
 */
static void check_random(void)
{
	enum { NAMES = 300, STACKS = 8000, DEPTH = 40 };
	struct profile *profile = profile__new();
	uint32_t frames[NAMES], stack[DEPTH], i, k;
	char name[64], *text, *folded, *want;
	size_t size;
	FILE *out;

	srand(5);
	profile->frequency_hz = 99;
	for (i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "function%u", i);
		frames[i] = frame_of(profile, rand() % KIND_RUNTIME, name, i % 3 ? "/a/b.c" : NULL,
				     i % 3 ? 1 + rand() : 0);
	}
	for (k = 0; k < STACKS; k++) {
		uint32_t n = 1 + rand() % DEPTH;

		for (i = 0; i < n; i++)
			stack[i] = frames[rand() % (i < DEPTH / 2 ? 3 : NAMES)];
		profile__add(profile, stack, n, rand() % 3 * (1 + rand() % 1000));
	}
	write_file(profile, &plain, "random.pb.gz");
	text = read_back("random.pb.gz");
	folded = fold(text);
	out = open_memstream(&want, &size);
	output__folded(profile, &plain, out);
	fclose(out);
	ok(size > 100000 && !strcmp(folded, want), "random stacks: what the folded form says");
	check_protoc("random.pb.gz");
	free(text);
	free(folded);
	free(want);
	profile__free(profile);
}

/* The same stacks in another order give the same bytes. */
static void check_order(void)
{
	struct profile *profile;
	uint32_t frames[26], i, k;
	char name[2] = "";

	for (k = 0; k < 2; k++) {
		profile = profile__new();
		for (i = 0; i < ARRAY_SIZE(frames); i++) {
			name[0] = k ? 'z' - i : 'a' + i;
			frames[i] = frame_of(profile, KIND_NATIVE, name, NULL, 0);
			profile__add(profile, (uint32_t[]) { frames[i], frames[i] }, 2, *name);
		}
		write_file(profile, &plain, k ? "backwards.pb.gz" : "forwards.pb.gz");
		profile__free(profile);
	}
	ok(workdir__try("cmp backwards.pb.gz forwards.pb.gz"), "order does not matter");
}

/* A chain of inlined functions that ends at every length, and a full disk. */
static void check_extremes(void)
{
	enum { DEPTH = 1000 };
	struct profile *profile = profile__new();
	uint32_t stack[DEPTH], i;
	char *text;
	FILE *full;

	for (i = 0; i < DEPTH; i++) {
		stack[i] = frame_of(profile, i ? KIND_INLINED : KIND_NATIVE, "f", NULL, i + 1);
		profile__add(profile, stack, i + 1, UINT64_MAX / 2);
	}
	profile->frequency_hz = 1e-300;
	profile->duration_s = 1e300;
	write_file(profile, &plain, "inlined.pb.gz");
	text = read_back("inlined.pb.gz");
	ok(strstr(text, "duration 9223372036854775807"), "a duration without bounds");
	ok(strstr(text, "stack 9223372036854775807 9223372036854775807 f"), "and such weights");
	free(text);
	full = fopen("/dev/full", "w");
	is_int(output__pprof(profile, &plain, full), -ENOSPC, "a full disk is told");
	fclose(full);
	profile__free(profile);
}

int main(void)
{
	workdir__make();
	check_samples();
	check_times();
	check_events();
	check_states();
	check_empty();
	check_random();
	check_order();
	check_extremes();
	return tap__done();
}
