// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/machine_code.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/cli/shown_file.h"
#include "core/elf/disassembly.h"
#include "core/elf/symbols.h"

enum {
	FILE_BYTES = 2047 << 20,
	CODE_BYTES = 1 << 20,  /* code of one function; longer code is left out */
	TEXTS_BYTES = 1 << 20, /* texts of all functions */
	FUNCTIONS_MAX = 1000,
	WHOLE_ROWS = 1000,  /* instructions of a function that is shown in full */
	AROUND_BYTES = 192, /* in longer functions: distance from instructions with samples */
};

/* a frame with an address, with the keys of sorting */
struct place {
	uint32_t frame, image, name;
	uint64_t address, weight; /* weight: sum of all places with that name in that image */
};

/* one file */
struct image {
	struct elf_file *file; /* NULL: not opened; `why` has the reason */
	struct symbols *symbols;
	const char *why;
	bool tried;
};

struct reading {
	struct machine_code_texts *texts;
	const struct profile *profile;
	struct image *images;
	struct place *places;
	size_t n_places;
	int root_fd;
};

/* ---- selection ---- */

static int by_function(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->address != b->address ? (a->address < b->address ? -1 : 1)
					: (a->frame > b->frame) - (a->frame < b->frame);
}

static int by_weight(const void *left, const void *right)
{
	const struct place *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight < b->weight ? 1 : -1;
	return by_function(left, right);
}

/* Returns true for "f", or for "f(int)" with text after the name. */
static bool is_called(const char *name, const char *sought)
{
	size_t len = strlen(sought);

	return !strncmp(name, sought, len) && (!name[len] || name[len] == '(');
}

/* Sums the own weights of frames with an address, with those of functions inlined there. */
static int sum_up(const struct profile *profile, uint64_t *weights)
{
	uint32_t *owners = calloc(profile->n_nodes, sizeof(*owners));

	for (size_t i = 1; owners && i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];
		const struct profile_frame *frame = &profile->frames[node->frame];

		if (frame->image)
			owners[i] = i;
		else if (frame->kind == KIND_INLINED)
			owners[i] = owners[node->parent];
		if (owners[i])
			weights[profile->nodes[owners[i]].frame] += node->self;
	}
	free(owners);
	return owners ? 0 : -ENOMEM;
}

/* Finds the places, sorted by own weight, with the places of a function adjacent. */
static int find_places(struct reading *reading, const char *function)
{
	const struct profile *profile = reading->profile;
	uint64_t *weights = calloc(profile->n_frames + 1, sizeof(*weights));
	struct place *places = calloc(profile->n_frames + 1, sizeof(*places));
	size_t n = 0;
	int ret = weights && places ? sum_up(profile, weights) : -ENOMEM;

	reading->places = places;
	for (size_t i = 0; !ret && i < profile->n_frames; i++) {
		const struct profile_frame *frame = &profile->frames[i];

		if (frame->image &&
		    (!function || is_called(strtab__get(profile->strings, frame->name), function)))
			places[n++] = (struct place) { i, frame->image, frame->name, frame->address,
						       weights[i] };
	}
	if (!ret)
		qsort(places, n, sizeof(*places), by_function);
	for (size_t i = 0, end; i < n; i = end) {
		uint64_t sum = 0;

		for (end = i; end < n && places[end].image == places[i].image &&
			      places[end].name == places[i].name;)
			sum += places[end++].weight;
		for (size_t k = i; k < end; k++)
			places[k].weight = sum;
	}
	if (!ret)
		qsort(places, n, sizeof(*places), by_weight);
	reading->n_places = n;
	free(weights);
	return ret;
}

/* ---- files ---- */

static bool has_build_id(const struct elf_file *file, const char *sought)
{
	char text[2 * ELF_BUILD_ID_MAX + 1] = "";

	for (size_t i = 0; i < file->build_id_len; i++)
		sprintf(text + 2 * i, "%02x", file->build_id[i]);
	return *text && !strcmp(text, sought);
}

/* Opens a file, unless it is another version, with other code at the same places. */
static int open_image(struct reading *reading, uint32_t number)
{
	const struct profile *profile = reading->profile;
	const struct profile_image *of = &profile->images[number - 1];
	const char *path = strtab__get(profile->strings, of->path);
	const char *build_id = strtab__get(profile->strings, of->build_id);
	struct image *image = &reading->images[number];
	uint64_t size;
	int fd;

	image->tried = true;
	if (!*build_id) {
		image->why = "the file has no build ID, which would show that it is unchanged";
		return 0;
	}
	fd = *path == '/' ? shown_file__open(reading->root_fd, path, FILE_BYTES, &size) : -ENOENT;
	if (fd < 0) {
		image->why = fd == -EACCES ? "the file is not readable by all users"
					   : "the file is missing or unreadable on this machine";
		return 0;
	}
	if (elf_file__open(fd, path, &image->file, NULL)) {
		image->why = "the file is unreadable";
		return 0;
	}
	if (!has_build_id(image->file, build_id)) {
		image->why = "the file has changed since the recording";
		elf_file__free(image->file);
		image->file = NULL;
		return 0;
	}
	return symbols__new(image->file, "", &image->symbols);
}

/* ---- code ---- */

struct taking {
	struct reading *reading;
	struct output_code *code;
	struct symbols *symbols;
	uint64_t end;
	size_t cap;
	char *last; /* the last place; borrowed from a row */
};

/* Writes " <memcpy>" for a target outside of the function. */
static void add_target(struct taking *taking, uint64_t target, char *buf, size_t size)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	int n;

	*buf = '\0';
	if (!target || (target >= taking->code->start && target < taking->end))
		return;
	n = symbols__resolve(taking->symbols, target, frames, SYMBOL_INLINES_MAX);
	if (n > 0)
		snprintf(buf, size, " <%.200s>", frames[n - 1].function);
}

/* Returns "f.c:12" in *@ret if it differs from the last one, otherwise NULL. Returns 0 or
 * -ENOMEM. */
static int add_line(struct taking *taking, uint64_t address, char **ret)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX];
	int n = symbols__resolve(taking->symbols, address, frames, SYMBOL_INLINES_MAX);
	const char *slash;

	*ret = NULL;
	if (n == -ENOMEM)
		return n;
	if (n <= 0 || !frames[0].file || !frames[0].line)
		return 0;
	slash = strrchr(frames[0].file, '/');
	if (asprintf(ret, "%s:%u", slash ? slash + 1 : frames[0].file, frames[0].line) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	if (taking->last && !strcmp(taking->last, *ret)) {
		free(*ret);
		*ret = NULL;
	} else {
		taking->last = *ret;
	}
	return 0;
}

static int take(void *ctx, const struct instruction *instruction)
{
	struct taking *taking = ctx;
	struct output_code *code = taking->code;
	struct output_instruction row = { .address = instruction->address };
	char target[256];

	if (array__reserve(&code->rows, &taking->cap, code->n + 1, sizeof(row)))
		return -ENOMEM;
	add_target(taking, instruction->target, target, sizeof(target));
	if (add_line(taking, instruction->address, &row.place))
		return -ENOMEM;
	if (asprintf(&row.text, "%s%s", instruction->text, target) < 0) {
		free(row.place);
		return -ENOMEM;
	}
	code->rows[code->n++] = row;
	return 0;
}

/* Reduces a long function to the neighbourhood of its frames' places. */
static void cut_rows(struct output_code *code, const struct place *places, size_t n)
{
	size_t retained = 0, at = 0;
	bool cut = false;

	if (code->n <= WHOLE_ROWS)
		return;
	for (size_t i = 0; i < code->n; i++) {
		struct output_instruction *row = &code->rows[i];

		while (at < n && places[at].address + AROUND_BYTES < row->address)
			at++;
		if (at < n && places[at].address <= row->address + AROUND_BYTES) {
			row->cut = cut;
			cut = false;
			code->rows[retained++] = *row;
			continue;
		}
		free(row->text);
		free(row->place);
		cut = true;
	}
	code->n = retained;
}

static int disassemble(struct reading *reading, struct image *image, struct output_code *code,
		       uint64_t end)
{
	struct taking taking = {
		.reading = reading, .code = code, .symbols = image->symbols, .end = end
	};
	uint8_t *bytes = malloc(end - code->start);
	int ret = -ENOMEM;

	if (!bytes)
		return ret;
	ret = elf_file__read(image->file, code->start, bytes, end - code->start);
	if (!ret)
		ret = disassembly__run(bytes, end - code->start, code->start, take, &taking);
	else if (ret == -EFAULT) {
		code->why = "the file does not have all of the function's code";
		ret = 0;
	}
	free(bytes);
	return ret;
}

static int add_code(struct reading *reading, const struct place *place, const char *why,
		    uint64_t start, uint64_t end)
{
	struct machine_code_texts *texts = reading->texts;
	const struct profile *profile = reading->profile;
	const struct profile_image *image = &profile->images[place->image - 1];

	if (array__reserve(&texts->rows, &texts->cap, texts->n + 1, sizeof(*texts->rows)))
		return -ENOMEM;
	texts->rows[texts->n++] =
		(struct output_code) { .name = strtab__get(profile->strings, place->name),
				       .file = strtab__get(profile->strings, image->path),
				       .why = why,
				       .start = start,
				       .end = end };
	return 0;
}

/* Reads the code around the first place of a function; the places are sorted by address. Returns
 * the number of places within the code, or -ENOMEM. */
static ssize_t read_code(struct reading *reading, const struct place *places, size_t n)
{
	struct image *image = &reading->images[places->image];
	const char *why = image->why;
	uint64_t start = 0, end = 0;
	struct output_code *code;
	size_t taken = n;
	int ret = why ? 0 : symbols__range(image->symbols, places->address, &start, &end);

	if (ret == -ENOMEM)
		return ret;
	if (!why && (ret || end <= start || end - start > CODE_BYTES))
		why = ret ? "the bounds of the function are unknown" : "the function is too long";
	if (!why)
		for (taken = 0; taken < n && places[taken].address < end;)
			taken++;
	if (add_code(reading, places, why, start, end))
		return -ENOMEM;
	code = &reading->texts->rows[reading->texts->n - 1];
	if (!why && disassemble(reading, image, code, end))
		return -ENOMEM;
	cut_rows(code, places, taken);
	for (size_t i = 0; i < code->n; i++)
		reading->texts->bytes += strlen(code->rows[i].text) + 16;
	return taken;
}

int machine_code_texts__read(struct machine_code_texts *texts, const struct profile *profile,
			     const char *function)
{
	struct reading reading = { .texts = texts,
				   .profile = profile,
				   .images = calloc(profile->n_images + 1, sizeof(struct image)),
				   .root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC) };
	ssize_t taken = 0;
	int ret = -ENOMEM;

	if (reading.images)
		ret = find_places(&reading, function);
	for (size_t i = 0; !ret && i < reading.n_places; i += taken) {
		const struct place *place = &reading.places[i];
		size_t n = 1;

		if (!function && (texts->bytes >= TEXTS_BYTES || texts->n >= FUNCTIONS_MAX))
			break;
		while (i + n < reading.n_places && place[n].image == place->image &&
		       place[n].name == place->name)
			n++;
		if (output__find_code(texts->rows, texts->n, profile,
				      &profile->frames[place->frame], NULL)) {
			taken = 1;
			continue;
		}
		if (!reading.images[place->image].tried)
			ret = open_image(&reading, place->image);
		taken = ret ? 0 : read_code(&reading, place, n);
		if (taken < 0)
			ret = taken;
	}
	for (size_t i = 0; reading.images && i <= profile->n_images; i++) {
		symbols__free(reading.images[i].symbols);
		elf_file__free(reading.images[i].file);
	}
	free(reading.images);
	free(reading.places);
	close_fd(&reading.root_fd);
	return ret;
}

void machine_code_texts__done(struct machine_code_texts *texts)
{
	for (size_t i = 0; i < texts->n; i++) {
		for (size_t k = 0; k < texts->rows[i].n; k++) {
			free(texts->rows[i].rows[k].text);
			free(texts->rows[i].rows[k].place);
		}
		free(texts->rows[i].rows);
	}
	free(texts->rows);
	*texts = (struct machine_code_texts) {};
}
