// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/out_flame.h"

#include "core/base/escape.h"

/* Both forms carry the same data, style and script: the script builds the page from the data, on
 * a canvas, and takes an SVG's window over with the same page. The SVG also holds a picture, for
 * viewers that run no script. */

/* The script's files, each after those that it needs when it is read. */
/* clang-format off */
#define SCRIPTS(_) \
	_(text) _(tree) _(trie) _(frames) _(times) _(data) _(change) _(invert) _(state) _(model) \
	_(graph) _(facts) _(table) _(callers) _(source) _(bar) _(export) _(keys)
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

/* The data of one event. */
static void put_block(const struct flame *flame, const struct output_opts *opts, FILE *out)
{
	fputs("<script type=\"application/json\" id=\"profile\" data-event=\"", out);
	escape__markup(out, flame__event(flame->profile));
	fputs("\">\n", out);
	flame__put_data(flame, opts, out);
	fputs("</script>\n", out);
}

int output__flame_html(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct flame flame = { 0 };
	int err;

	err = flame__init(&flame, profile, opts->annotate);
	if (err)
		goto out;
	fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
	      "script-src 'unsafe-inline'; style-src 'unsafe-inline'\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      out);
	flame__put_title(profile, out);
	fputs("</title>\n<style>\n", out);
	flame__put_style(out);
	fputs("</style>\n<body>\n<noscript>This page needs its script; a flame graph written as "
	      ".svg shows a picture without.</noscript>\n",
	      out);
	put_block(&flame, opts, out);
	fputs("<script>\n", out);
	put_script(out);
	fputs("</script>\n</body>\n</html>\n", out);
	err = output__finish(out);
out:
	flame__done(&flame);
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
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n", out);
	err = put_view(profile, opts, out);
	if (err)
		goto out;
	put_block(&flame, opts, out);
	fputs("<script><![CDATA[\n", out);
	put_script(out);
	fputs("]]></script>\n</svg>\n", out);
	err = output__finish(out);
out:
	flame__done(&flame);
	return err;
}
