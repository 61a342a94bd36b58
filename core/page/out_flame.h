/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_OUT_FLAME_H
#define BRAID_OUT_FLAME_H

#include <stdio.h>

#include "core/out/out_common.h"
#include "core/out/output.h"

/* The state that the parts of the page's writer share: the profile with the texts of the page. */

struct flame {
	const struct profile *profile;
	struct out_tree tree;
	struct strtab *strings; /* the texts of the page */
	uint32_t *labels;	/* by frame */
	uint32_t *names;	/* by frame, without lines */
	uint32_t *files, *libraries;
	uint32_t *by_rank; /* frames in the order of names, by which the page numbers them */
};

/* Initializes @flame. Returns 0 or -ENOMEM; the caller calls flame__done() in any case. */
int flame__init(struct flame *flame, const struct profile *profile, int annotate);
void flame__done(struct flame *flame);

/* Returns the number of the class in flame.css with a kind's colour: k0, k1, ... Inlined frames
 * have the colour of native frames. */
size_t flame__colour(const struct profile *profile, size_t kind);

const char *flame__target(const struct profile *profile);
const char *flame__event(const struct profile *profile);

/* Writes the data as JSON. Returns 0 or -ENOMEM. */
int flame__put_data(const struct flame *flame, const struct output_opts *opts, FILE *out);

/* Writes the picture for viewers of an SVG that run no script, from the `<svg>` tag on, with title
 * and style. Returns 0 or -ENOMEM. */
int flame__put_picture(const struct flame *flame, FILE *out);

/* Writes the text of <title>. */
void flame__put_title(const struct profile *profile, FILE *out);

void flame__put_style(FILE *out);

#endif
