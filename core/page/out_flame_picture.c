// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/page/out_flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"

enum {
	/* the picture in the SVG, in its units */
	WIDTH = 1200,
	MARGIN = 10,
	ROW = 18,
	TEXT_RISE = 5, /* from a row's lower edge to its base line */
	TEXT_PAD = 3,
	TEXT_WIDTH_MIN = 22,
	CHAR_WIDTH_TENTHS = 73, /* width of a character of the 12 px monospace font in flame.css */

	FRAMES_SHARE_MIN = 1000, /* frames narrower than the graph divided by this are left out */
};

/* Writes a number with one decimal, and a point in any locale. */
static void put_tenths(FILE *out, uint64_t tenths)
{
	output__number(out, tenths / 10);
	putc_unlocked('.', out);
	putc_unlocked('0' + tenths % 10, out);
}

/* Writes as many of the text's characters as fit into the width, or none if it is too narrow to
 * read. */
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

/* Writes a rectangle. An inferred frame has a dashed edge. */
static void put_rect(FILE *out, int colour, bool inferred, uint64_t x_tenths, uint32_t y,
		     uint64_t width_tenths)
{
	if (colour < 0)
		fputs_unlocked("<rect class=\"root\" x=\"", out);
	else
		fprintf(out, "<rect class=\"k%d%s\" x=\"", colour, inferred ? " inferred" : "");
	put_tenths(out, x_tenths);
	fprintf(out, "\" y=\"%u\" height=\"%d\" width=\"", y, ROW - 1);
	put_tenths(out, width_tenths);
	fputs_unlocked("\"/>", out);
}

/* Writes the heading. Returns the y coordinate at which the picture continues. */
static uint32_t put_heading(const struct profile *profile, FILE *out)
{
	const uint64_t wide = (WIDTH - 2 * MARGIN) * 10;
	uint32_t y = MARGIN + ROW;
	char text[256], notes[OUTPUT_NOTES_MAX][OUTPUT_NOTE_BYTES];
	size_t i, n_notes = output__notes(profile, notes);

	put_cut_text(out, MARGIN * 10, y, wide, flame__target(profile));
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
		if (i == KIND_INLINED)
			continue; /* their colour is that of native frames */
		put_rect(out, flame__colour(profile, i), false, x * 10, y - ROW + TEXT_RISE,
			 ROW * 10);
		put_cut_text(out, (x + ROW) * 10, y, 1100, profile->kinds[i].name);
	}
	return y + MARGIN;
}

static int put_frames(const struct flame *flame, uint32_t top, FILE *out)
{
	const struct out_tree *tree = &flame->tree;
	double *start = calloc(tree->depth_max + 2, sizeof(*start)); /* by depth, as weight */
	double scale = (WIDTH - 2 * MARGIN) * 10.0 / tree->total[0];
	size_t i;

	if (!start)
		return -ENOMEM;
	for (i = 0; i < tree->n_order; i++) {
		uint32_t node = tree->order[i], depth = tree->depth[node];
		uint32_t frame = flame->profile->nodes[node].frame;
		uint32_t y = top + depth * ROW;
		uint64_t total = tree->total[node], x, end;

		x = MARGIN * 10 + start[depth] * scale;
		end = MARGIN * 10 + (start[depth] + total) * scale;
		start[depth + 1] = start[depth];
		start[depth] += total;
		if (total < tree->total[0] / FRAMES_SHARE_MIN)
			continue;
		put_rect(out,
			 node ? (int)flame__colour(flame->profile,
						   flame->profile->frames[frame].kind)
			      : -1,
			 node && flame->profile->frames[frame].inferred, x, y, end - x);
		put_cut_text(out, x, y + ROW - TEXT_RISE, end - x,
			     node ? strtab__get(flame->strings, flame->labels[frame]) : "all");
		putc_unlocked('\n', out);
	}
	free(start);
	return 0;
}

int flame__put_picture(const struct flame *flame, FILE *out)
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
	flame__put_title(profile, out);
	fputs("</title>\n<style><![CDATA[\n", out);
	flame__put_style(out);
	fputs("]]></style>\n<g id=\"picture\">\n"
	      "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
	      out);
	put_heading(profile, out);
	putc('\n', out);
	if (profile->total)
		err = put_frames(flame, top, out);
	else
		put_cut_text(out, MARGIN * 10, top + ROW, WIDTH * 10,
			     profile->counts_calls ? "no calls" : "no samples");
	fputs("</g>\n", out);
	return err;
}
