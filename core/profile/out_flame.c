// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/profile/out_common.h"

/* Both forms carry the same data, style and script: the script builds the page from the data, on
 * a canvas, and takes an SVG's window over with the same page. The SVG also holds a picture, for
 * viewers that run no script. */

extern const char asset_flame_tree_js_start[], asset_flame_tree_js_end[];
extern const char asset_flame_frames_js_start[], asset_flame_frames_js_end[];
extern const char asset_flame_js_start[], asset_flame_js_end[];
extern const char asset_flame_css_start[], asset_flame_css_end[];

enum {
	/* the picture in the SVG, in its units */
	WIDTH = 1200,
	MARGIN = 10,
	ROW = 18,
	TEXT_RISE = 5, /* from a row's lower edge to its base line */
	TEXT_PAD = 3,
	TEXT_WIDTH_MIN = 22,
	CHAR_WIDTH_TENTHS = 73, /* of the 12 px monospace font in flame.css */

	FRAMES_SHARE_MIN = 1000, /* frames narrower than the graph / this are left out */
	RUNTIME_COLOURS = 6,	 /* classes k3... in flame.css; then they repeat */
};

struct flame {
	const struct profile *profile;
	struct out_tree tree;
	struct strtab *strings; /* the texts of the page */
	uint32_t *labels;	/* by frame */
	uint32_t *files, *libraries;
	uint32_t *by_rank; /* frames in the order of names, which is how the page numbers them */
};

static void flame_done(struct flame *flame)
{
	out_tree__done(&flame->tree);
	strtab__free(flame->strings);
	free(flame->labels);
	free(flame->files);
	free(flame->libraries);
	free(flame->by_rank);
}

static int flame_init(struct flame *flame, const struct profile *profile, int annotate)
{
	size_t i;
	int err;

	flame->profile = profile;
	err = out_tree__init(&flame->tree, profile);
	if (err)
		return err;
	flame->strings = strtab__new();
	flame->labels = calloc(profile->n_frames + 1, sizeof(*flame->labels));
	flame->files = calloc(profile->n_frames + 1, sizeof(*flame->files));
	flame->libraries = calloc(profile->n_frames + 1, sizeof(*flame->libraries));
	flame->by_rank = calloc(profile->n_frames + 1, sizeof(*flame->by_rank));
	if (!flame->strings || !flame->labels || !flame->files || !flame->libraries ||
	    !flame->by_rank)
		return -ENOMEM;
	for (i = 0; i < profile->n_frames && !err; i++) {
		const struct profile_frame *frame = &profile->frames[i];
		char *label = output__label(profile, frame, annotate);

		if (!label)
			return -ENOMEM;
		err = strtab__intern(flame->strings, label, &flame->labels[i]);
		if (!err)
			err = strtab__intern(flame->strings,
					     strtab__get(profile->strings, frame->file),
					     &flame->files[i]);
		if (!err)
			err = strtab__intern(flame->strings,
					     strtab__get(profile->strings, frame->library),
					     &flame->libraries[i]);
		flame->by_rank[flame->tree.ranks[i]] = i;
		free(label);
	}
	return err;
}

static size_t colour_of(const struct profile *profile, size_t kind)
{
	if (kind && kind == profile->group_kind)
		return KIND_RUNTIME + RUNTIME_COLOURS - 1;
	return kind < KIND_RUNTIME ? kind : KIND_RUNTIME + (kind - KIND_RUNTIME) % RUNTIME_COLOURS;
}

static const char *target_of(const struct profile *profile)
{
	return profile->target && *profile->target ? profile->target : "Flame graph";
}

static void put_title(const struct profile *profile, FILE *out)
{
	if (output__names_event(profile)) {
		escape__markup(out, profile->event);
		fputs(": ", out);
	}
	escape__markup(out, target_of(profile));
}

static void put_tree(const struct flame *flame, FILE *out)
{
	const struct profile *profile = flame->profile;
	uint32_t depth = 0;
	size_t i;

	for (i = 0; i < flame->tree.n_order; i++) {
		uint32_t node = flame->tree.order[i];

		fputs_unlocked(i ? ",\n" : "\n", out);
		output__number(out, i ? depth + 1 - flame->tree.depth[node] : 0);
		putc_unlocked(',', out);
		output__number(out, i ? flame->tree.ranks[profile->nodes[node].frame]
				      : profile->n_frames);
		putc_unlocked(',', out);
		output__number(out, profile->nodes[node].self);
		depth = flame->tree.depth[node];
	}
}

/* One number of each node; `at`: where in it. */
static void put_numbers(const struct flame *flame, const char *name, size_t at, FILE *out)
{
	fprintf(out, "],\n\"%s\":[", name);
	for (size_t i = 0; i < flame->tree.n_order; i++) {
		const struct profile_node *node = &flame->profile->nodes[flame->tree.order[i]];
		uint64_t number;

		memcpy(&number, (const char *)node + at, sizeof(number));
		fputs_unlocked(i ? ",\n" : "\n", out);
		output__number(out, number);
	}
}

static void put_notes(const struct profile *profile, FILE *out)
{
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t n = output__notes(profile, notes);

	fputs(",\n\"notes\":[", out);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? "," : "", out);
		escape__json(out, notes[i]);
	}
	fprintf(out, "],\n\"group\":%u", profile->group_kind);
}

/* The format is described where it is read, in flame.js and flame_tree.js. */
static void put_data(const struct flame *flame, const struct output_opts *opts, FILE *out)
{
	const struct profile *profile = flame->profile;
	char summary[OUTPUT_SUMMARY_BYTES];
	size_t i;

	output__summary(profile, summary, sizeof(summary));
	fputs("{\"target\":", out);
	escape__json(out, target_of(profile));
	fputs(",\n\"summary\":", out);
	escape__json(out, summary);
	fputs(",\n\"unit\":", out);
	escape__json(out, output__unit(profile));
	fprintf(out, ",\n\"mode\":\"%s\"", frames__name(opts->frames));
	put_notes(profile, out);
	fputs(",\n\"losses\":[", out);
	for (i = 0; i < profile->n_losses; i++) {
		fputs(i ? ",[" : "[", out);
		escape__json(out, profile->losses[i].name);
		fputs(",", out);
		output__number(out, profile->losses[i].count);
		fputs("]", out);
	}
	fputs("],\n\"kinds\":[", out);
	for (i = 0; i < profile->n_kinds; i++) {
		fputs(i ? ",[" : "[", out);
		escape__json(out, profile->kinds[i].name);
		fprintf(out, ",%zu,%d]", colour_of(profile, i), profile->kinds[i].label);
	}
	fputs("],\n\"strings\":[", out);
	for (i = 0; i < strtab__count(flame->strings); i++) {
		fputs_unlocked(i ? ",\n" : "", out);
		escape__json(out, strtab__get(flame->strings, i));
	}
	fputs("],\n\"frames\":[", out);
	for (i = 0; i < profile->n_frames; i++) {
		uint32_t number = flame->by_rank[i];
		const struct profile_frame *frame = &profile->frames[number];

		fprintf(out, "%s%u,%u,%u,%u,%u,%u", i ? ",\n" : "\n", flame->labels[number],
			flame->files[number], frame->line, frame->kind, flame->libraries[number],
			frame->role);
	}
	fputs("],\n\"nodes\":[", out);
	put_tree(flame, out);
	if (profile->counts_calls)
		put_numbers(flame, "calls", offsetof(struct profile_node, calls), out);
	if (profile__mixes(profile)) {
		put_numbers(flame, "waiting", offsetof(struct profile_node, waiting), out);
		put_numbers(flame, "preempted", offsetof(struct profile_node, preempted), out);
	}
	fputs("]}\n", out);
}

static void put_asset(FILE *out, const char *start, const char *end)
{
	fwrite(start, 1, end - start, out);
}

static void put_script(FILE *out)
{
	put_asset(out, asset_flame_tree_js_start, asset_flame_tree_js_end);
	put_asset(out, asset_flame_frames_js_start, asset_flame_frames_js_end);
	put_asset(out, asset_flame_js_start, asset_flame_js_end);
}

int output__flame_html(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct flame flame = { 0 };
	int err;

	err = flame_init(&flame, profile, opts->annotate);
	if (err)
		goto out;
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      out);
	put_title(profile, out);
	fputs("</title>\n<style>\n", out);
	put_asset(out, asset_flame_css_start, asset_flame_css_end);
	fputs("</style>\n<body>\n<noscript>This page needs its script; a flame graph written as "
	      ".svg shows a picture without.</noscript>\n"
	      "<script type=\"application/json\" id=\"profile\">\n",
	      out);
	put_data(&flame, opts, out);
	fputs("</script>\n<script>\n", out);
	put_script(out);
	fputs("</script>\n</body>\n</html>\n", out);
	err = output__finish(out);
out:
	flame_done(&flame);
	return err;
}

/* One decimal, and a point whatever the locale. */
static void put_tenths(FILE *out, uint64_t tenths)
{
	output__number(out, tenths / 10);
	putc_unlocked('.', out);
	putc_unlocked('0' + tenths % 10, out);
}

/* As many of the text's characters as fit into the width; none if it is too narrow to read. */
static void put_cut_text(FILE *out, uint64_t x_tenths, uint32_t y, uint64_t width_tenths,
			 const char *text)
{
	size_t fit, len = strlen(text);
	char cut[WIDTH + sizeof("…")];

	if (width_tenths < TEXT_WIDTH_MIN * 10)
		return;
	fit = min_of((width_tenths - TEXT_PAD * 20) / CHAR_WIDTH_TENTHS, (uint64_t)WIDTH);
	if (len > fit) {
		for (len = fit - 1; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
			len--;
		memcpy(cut, text, len);
		strcpy(cut + len, "…");
		text = cut;
	}
	fputs_unlocked("<text x=\"", out);
	put_tenths(out, x_tenths + TEXT_PAD * 10);
	fprintf(out, "\" y=\"%u\">", y);
	escape__markup(out, text);
	fputs_unlocked("</text>", out);
}

static void put_rect(FILE *out, int colour, uint64_t x_tenths, uint32_t y, uint64_t width_tenths)
{
	if (colour < 0)
		fputs_unlocked("<rect class=\"root\" x=\"", out);
	else
		fprintf(out, "<rect class=\"k%d\" x=\"", colour);
	put_tenths(out, x_tenths);
	fprintf(out, "\" y=\"%u\" height=\"%d\" width=\"", y, ROW - 1);
	put_tenths(out, width_tenths);
	fputs_unlocked("\"/>", out);
}

/* Returns where the picture goes on, downwards. */
static uint32_t put_heading(const struct profile *profile, FILE *out)
{
	const uint64_t wide = (WIDTH - 2 * MARGIN) * 10;
	uint32_t y = MARGIN + ROW;
	char text[256], notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t i, n_notes = output__notes(profile, notes);

	put_cut_text(out, MARGIN * 10, y, wide, target_of(profile));
	output__summary(profile, text, sizeof(text));
	put_cut_text(out, MARGIN * 10, y += ROW, wide, text);
	for (i = 0; i < n_notes; i++)
		put_cut_text(out, MARGIN * 10, y += ROW, wide, notes[i]);
	for (i = 0; i < profile->n_losses; i++) {
		snprintf(text, sizeof(text), "lost: %.200s: %llu", profile->losses[i].name,
			 (unsigned long long)profile->losses[i].count);
		put_cut_text(out, MARGIN * 10, y += ROW, wide, text);
	}
	for (i = 0, y += MARGIN; i < profile->n_kinds; i++) {
		uint64_t x = MARGIN + i % 9 * (WIDTH - 2 * MARGIN) / 9;

		y += i % 9 ? 0 : ROW;
		put_rect(out, colour_of(profile, i), x * 10, y - ROW + TEXT_RISE, ROW * 10);
		put_cut_text(out, (x + ROW) * 10, y, 1100, profile->kinds[i].name);
	}
	return y + MARGIN;
}

static int put_picture(const struct flame *flame, uint32_t top, FILE *out)
{
	const struct out_tree *tree = &flame->tree;
	double *start = calloc(tree->depth_max + 2, sizeof(*start)); /* by depth, in weight */
	double scale = (WIDTH - 2 * MARGIN) * 10.0 / tree->total[0];
	size_t i;

	if (!start)
		return -ENOMEM;
	for (i = 0; i < tree->n_order; i++) {
		uint32_t node = tree->order[i], depth = tree->depth[node];
		uint32_t frame = flame->profile->nodes[node].frame;
		uint32_t y = top + (tree->depth_max - depth) * ROW;
		uint64_t total = tree->total[node], x, end;

		x = MARGIN * 10 + start[depth] * scale;
		end = MARGIN * 10 + (start[depth] + total) * scale;
		start[depth + 1] = start[depth];
		start[depth] += total;
		if (total < tree->total[0] / FRAMES_SHARE_MIN)
			continue;
		put_rect(out,
			 node ? (int)colour_of(flame->profile, flame->profile->frames[frame].kind)
			      : -1,
			 x, y, end - x);
		put_cut_text(out, x, y + ROW - TEXT_RISE, end - x,
			     node ? strtab__get(flame->strings, flame->labels[frame]) : "all");
		putc_unlocked('\n', out);
	}
	free(start);
	return 0;
}

static int put_static(const struct flame *flame, FILE *out)
{
	const struct profile *profile = flame->profile;
	uint32_t legend_rows = (profile->n_kinds + 8) / 9;
	char notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t n_lines = 2 + output__notes(profile, notes) + profile->n_losses;
	uint32_t top = 3 * MARGIN + (n_lines + legend_rows) * ROW;
	uint64_t height = top + (uint64_t)(flame->tree.depth_max + 1) * ROW + MARGIN;
	int err = 0;

	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%llu\" "
		"viewBox=\"0 0 %d %llu\">\n<title>",
		WIDTH, (unsigned long long)height, WIDTH, (unsigned long long)height);
	put_title(profile, out);
	fputs("</title>\n<style><![CDATA[\n", out);
	put_asset(out, asset_flame_css_start, asset_flame_css_end);
	fputs("]]></style>\n<g id=\"picture\">\n"
	      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
	      out);
	put_heading(profile, out);
	putc('\n', out);
	if (profile->total)
		err = put_picture(flame, top, out);
	else
		put_cut_text(out, MARGIN * 10, top + ROW, WIDTH * 10,
			     profile->counts_calls ? "no calls" : "no samples");
	fputs("</g>\n", out);
	return err;
}

/* The picture shows what the page shows at first. */
static int put_view(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct profile *view = NULL;
	struct flame flame = { 0 };
	int ret;

	ret = frames__view(profile, opts->frames, &view);
	if (!ret)
		ret = flame_init(&flame, view, opts->annotate);
	if (!ret)
		ret = put_static(&flame, out);
	flame_done(&flame);
	profile__free(view);
	return ret;
}

int output__flame_svg(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct flame flame = { 0 };
	int err;

	err = flame_init(&flame, profile, opts->annotate);
	if (err)
		goto out;
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	err = put_view(profile, opts, out);
	if (err)
		goto out;
	fputs("<script type=\"application/json\" id=\"profile\">\n", out);
	put_data(&flame, opts, out);
	fputs("</script>\n<script><![CDATA[\n", out);
	put_script(out);
	fputs("]]></script>\n</svg>\n", out);
	err = output__finish(out);
out:
	flame_done(&flame);
	return err;
}
