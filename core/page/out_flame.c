// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/page/out_flame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"

/* HTML and SVG contain the same data, style and script. The script builds the page from the data,
 * on a canvas. In an SVG it replaces the contents of the window with the same page. The SVG also
 * contains a picture, for viewers that run no script. */

/* The script's files. Each follows the files that it needs when it is read. */
/* clang-format off */
#define SCRIPTS(_) \
	_(text) _(tree) _(trie) _(frames) _(times) _(heatmap) _(chance) _(data) _(change) _(invert) _(state) _(model) \
	_(graph) _(facts) _(table) _(callers) _(code) _(source) _(bar) _(export) _(pprof) _(keys)
/* clang-format on */

#define DECLARE(name) \
	extern const char asset_flame_##name##_js_start[], asset_flame_##name##_js_end[];
SCRIPTS(DECLARE)
extern const char asset_flame_js_start[], asset_flame_js_end[];
extern const char asset_flame_css_start[], asset_flame_css_end[];

void flame__put_title(const struct profile *profile, FILE *out)
{
	if (output__names_event(profile)) {
		escape__markup(out, profile->event);
		fputs(": ", out);
	}
	escape__markup(out, flame__target(profile));
}

static void put_asset(FILE *out, const char *start, const char *end)
{
	fwrite(start, 1, end - start, out);
}

void flame__put_style(FILE *out)
{
	put_asset(out, asset_flame_css_start, asset_flame_css_end);
}

static void put_script(FILE *out)
{
#define PUT(name) put_asset(out, asset_flame_##name##_js_start, asset_flame_##name##_js_end);
	SCRIPTS(PUT)
	put_asset(out, asset_flame_js_start, asset_flame_js_end);
}

/* Writes the data of one event. @id is the attribute of the event that is shown at first, or "". */
static int put_block(const struct flame *flame, const struct output_opts *opts, const char *id,
		     FILE *out)
{
	int err;

	fprintf(out, "<script type=\"application/json\"%s data-event=\"", id);
	escape__markup(out, flame__event(flame->profile));
	fputs("\">\n", out);
	err = flame__put_data(flame, opts, out);
	fputs("</script>\n", out);
	return err;
}

/* Writes @text as JSON texts, one for each line. These contain no white space but blanks; a tab
 * becomes four. */
static int put_lines(const char *text, FILE *out)
{
	char *line = malloc(4 * strlen(text) + 1);

	if (!line)
		return -ENOMEM;
	for (;;) {
		size_t n = 0;

		for (; *text && *text != '\n'; text++)
			for (int i = *text == '\t' ? 4 : 1; i > 0; i--)
				line[n++] = *text == '\t' ? ' ' : *text;
		line[n] = '\0';
		escape__json(out, line);
		if (!*text++ || !*text)
			break;
		putc_unlocked(',', out);
	}
	free(line);
	return 0;
}

static int put_sources(const struct output_opts *opts, FILE *out)
{
	int err = 0;

	fputs("<script type=\"application/json\" id=\"sources\">\n[", out);
	for (size_t i = 0; !err && i < opts->n_sources; i++) {
		fputs(i ? ",\n[" : "[", out);
		escape__json(out, opts->sources[i].file);
		fprintf(out, ",%u,[", opts->sources[i].first);
		err = put_lines(opts->sources[i].text, out);
		fputs(opts->sources[i].is_younger ? "],1]" : "]]", out);
	}
	fputs("]</script>\n", out);
	return err;
}

static void put_codes(const struct output_opts *opts, FILE *out)
{
	fputs("<script type=\"application/json\" id=\"codes\">\n[", out);
	for (size_t i = 0; i < opts->n_codes; i++) {
		const struct output_code *code = &opts->codes[i];

		fputs(i ? ",\n[" : "[", out);
		escape__json(out, code->file);
		fputs(",", out);
		escape__json(out, code->why ? code->why : "");
		fputs(",[", out);
		for (size_t k = 0; k < code->n; k++) {
			const struct output_instruction *row = &code->rows[k];

			fputs(k ? "," : "", out);
			output__number(out, row->address);
			fprintf(out, ",%d,", row->cut);
			escape__json(out, row->place ? row->place : "");
			fputs(",", out);
			escape__json(out, row->text);
		}
		fputs("]]", out);
	}
	fputs("]</script>\n", out);
}

/* Writes all data: the event that is shown at first, the other events, and the files. */
static int put_blocks(const struct flame *flame, const struct output_opts *opts, FILE *out)
{
	int err = put_block(flame, opts, " id=\"profile\"", out);

	for (size_t i = 0; !err && i < opts->n_others; i++) {
		struct flame other = { 0 };

		err = flame__init(&other, opts->others[i], opts->annotate);
		if (!err)
			err = put_block(&other, opts, "", out);
		flame__done(&other);
	}
	if (!err && opts->n_sources)
		err = put_sources(opts, out);
	if (opts->n_codes)
		put_codes(opts, out);
	return err;
}

int output__flame_html(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct flame flame = { 0 };
	int err;

	err = flame__init(&flame, profile, opts->annotate);
	if (err)
		goto out;
	fputs(OUTPUT_HTML_BEGIN
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      out);
	flame__put_title(profile, out);
	fputs("</title>\n<style>\n", out);
	flame__put_style(out);
	fputs("</style>\n"
	      "<body>\n"
	      "<noscript>This page requires JavaScript. A flame graph written as .svg "
	      "shows a picture without it.</noscript>\n",
	      out);
	err = put_blocks(&flame, opts, out);
	fputs("<script>\n", out);
	put_script(out);
	fputs("</script>\n</body>\n</html>\n", out);
	if (!err)
		err = output__finish(out);
out:
	flame__done(&flame);
	return err;
}

/* Writes the picture of the view that the page shows at first. */
static int put_view(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct profile *view = NULL;
	struct flame flame = { 0 };
	int ret;

	ret = frames__view(profile, opts->frames, &view);
	if (!ret)
		ret = flame__init(&flame, view, opts->annotate);
	if (!ret)
		ret = flame__put_picture(&flame, out);
	flame__done(&flame);
	profile__free(view);
	return ret;
}

int output__flame_svg(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct flame flame = { 0 };
	int err;

	err = flame__init(&flame, profile, opts->annotate);
	if (err)
		goto out;
	fputs(OUTPUT_SVG_BEGIN, out);
	err = put_view(profile, opts, out);
	if (err)
		goto out;
	err = put_blocks(&flame, opts, out);
	fputs("<script><![CDATA[\n", out);
	put_script(out);
	fputs("]]></script>\n</svg>\n", out);
	if (!err)
		err = output__finish(out);
out:
	flame__done(&flame);
	return err;
}
