// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/frame_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/util.h"

#define UNKNOWN "[unknown]"

/* Maps the kinds of the file to those of the profile. A file cannot rename the first kinds, which
 * are those of profile.h. Frames of a kind without a name are shown as native ones. */
static void map_kinds(struct frame_names *names)
{
	const struct recorded *recorded = names->recorded;
	int i;

	for (i = 0; i <= KINDS_MAX; i++)
		names->kinds[i] = i < KIND_RUNTIME ? i : KIND_NATIVE;
	for (i = KIND_RUNTIME; i < KINDS_MAX; i++) {
		const char *name = recorded__text(recorded, recorded->kind_names[i]);
		const char *suffix = recorded__text(recorded, recorded->kind_suffixes[i]);
		int kind = *name ? profile__kind(names->profile, name, suffix) : -ENOENT;

		if (kind >= 0)
			names->kinds[i] = kind;
	}
}

/* Returns the image of a frame of native code, or RECORDED_NONE. */
static uint32_t image_of(const struct recorded_frame *frame)
{
	return frame && frame->kind == KIND_NATIVE ? frame->image : RECORDED_NONE;
}

/* Marks images with an interpreter's loop, which run a runtime's frames. */
static int map_interpreters(struct frame_names *names)
{
	const struct recorded *recorded = names->recorded;
	int ret = 0;

	for (size_t i = 0; !ret && i < recorded->frames.n; i++) {
		const struct recorded_frame *frame = &recorded->frames.rows[i];
		uint32_t image = image_of(frame);
		char library[PROFILE_LIBRARY_BYTES];

		if (!frame->loop || image == RECORDED_NONE || names->interprets[image])
			continue;
		names->interprets[image] = true;
		profile__library(recorded__text(recorded, recorded->images.rows[image].name),
				 library, sizeof(library));
		ret = profile__interpreter(names->profile, library);
	}
	return ret;
}

/* Returns the profile's number of an image + 1, in *@ret. */
static int number_image(struct frame_names *names, uint32_t image, uint32_t *ret)
{
	const struct recorded *recorded = names->recorded;
	const struct recorded_image *row = &recorded->images.rows[image];
	int code = names->images[image]
			   ? 0
			   : profile__add_image(names->profile, recorded__text(recorded, row->path),
						recorded__text(recorded, row->build_id),
						&names->images[image]);

	*ret = names->images[image];
	return code;
}

/* Adds one frame to @shown. @frame is the recorded frame; NULL: it is missing in the file. */
static int add_name(struct frame_names *names, struct frame_shown *shown,
		    const struct recorded_frame *frame, uint8_t kind, const char *name,
		    const char *file, uint32_t line, bool inferred)
{
	const struct recorded *recorded = names->recorded;
	struct profile_frame at = { .kind = names->kinds[kind],
				    .line = names->lines ? line : 0,
				    .inferred = inferred };
	uint32_t image = image_of(frame), shown_frame;
	char library[PROFILE_LIBRARY_BYTES] = "";

	if (image != RECORDED_NONE && kind < KIND_RUNTIME)
		profile__library(recorded__text(recorded, recorded->images.rows[image].name),
				 library, sizeof(library));
	/* Inlined code has the address of the frame that it is inlined into. */
	if (names->addresses && image != RECORDED_NONE && kind == KIND_NATIVE) {
		at.address = frame->address;
		if (number_image(names, image, &at.image))
			return -ENOMEM;
	}
	if (array__reserve(&names->list, &names->cap, names->n + 1, sizeof(*names->list)) ||
	    profile__code_at(names->profile, &at, name, file,
			     kind == KIND_KERNEL ? "kernel" : library, &shown_frame))
		return -ENOMEM;
	names->list[names->n++] = shown_frame;
	shown->n++;
	return 0;
}

/* Adds a frame that has no name, as the recorder was killed before it named the frame. */
static int add_unnamed(struct frame_names *names, struct frame_shown *shown,
		       const struct recorded_frame *frame)
{
	const struct recorded *recorded = names->recorded;
	const char *image = NULL;
	char name[300];

	if (frame->kind == KIND_KERNEL)
		image = "kernel";
	else if (frame->kind == KIND_NATIVE && frame->image != RECORDED_NONE)
		image = recorded__text(recorded, recorded->images.rows[frame->image].name);
	if (!image || !*image)
		return add_name(names, shown, frame, frame->kind, UNKNOWN, NULL, 0,
				shown->inferred);
	snprintf(name, sizeof(name), "[%.255s+0x%" PRIx64 "]", image, frame->address);
	return add_name(names, shown, frame, frame->kind, name, NULL, 0, shown->inferred);
}

static int add_location(struct frame_names *names, struct frame_shown *shown,
			const struct recorded_frame *frame,
			const struct recorded_location *location, bool inferred)
{
	const struct recorded *recorded = names->recorded;
	const char *name = "", *file = NULL;

	if (location->function != RECORDED_NONE) {
		const struct recorded_function *function =
			&recorded->functions.rows[location->function];

		name = recorded__text(recorded, function->name);
		file = recorded__text(recorded, function->file);
	}
	return add_name(names, shown, frame, location->kind, *name ? name : UNKNOWN, file,
			location->line, inferred);
}

static int make(struct frame_names *names, uint32_t frame, struct frame_shown *shown)
{
	const struct recorded *recorded = names->recorded;
	const struct recorded_frame *from;
	int ret = 0;

	shown->first = names->n;
	if (frame == RECORDED_NONE)
		return add_name(names, shown, NULL, KIND_NATIVE, UNKNOWN, NULL, 0, shown->inferred);
	from = &recorded->frames.rows[frame];
	if (!from->n_locations)
		return add_unnamed(names, shown, from);
	for (uint32_t i = 0; !ret && i < from->n_locations; i++) {
		/* The code object of a runtime's inferred frame is proven; the functions inlined
		 * into it are inferred. */
		bool is_proven = i && i + 1 == from->n_locations && from->kind >= KIND_RUNTIME;

		ret = add_location(names, shown, from,
				   &recorded->locations.rows[from->location + i],
				   shown->inferred && !is_proven);
	}
	return ret;
}

int frame_names__get(struct frame_names *names, uint32_t frame, bool inferred, const uint32_t **ret,
		     uint32_t *ret_n)
{
	size_t n = names->recorded->frames.n, place = frame == RECORDED_NONE ? n : frame;
	bool apart = inferred && names->evidence;
	struct frame_shown *shown = &names->shown[apart ? n + 1 + place : place];
	int code = 0;

	if (!shown->n) {
		shown->inferred = apart;
		code = make(names, frame, shown);
	}
	*ret = names->list + shown->first;
	*ret_n = shown->n;
	return code;
}

int frame_names__init(struct frame_names *names, const struct recorded *recorded,
		      const struct profile_filter *filter, struct profile *profile)
{
	*names = (struct frame_names) { .recorded = recorded,
					.profile = profile,
					.lines = filter->lines,
					.addresses = filter->addresses,
					.evidence = filter->evidence };
	names->shown = calloc(2 * (recorded->frames.n + 1), sizeof(*names->shown));
	names->interprets = calloc(recorded->images.n + 1, sizeof(*names->interprets));
	names->images = calloc(recorded->images.n + 1, sizeof(*names->images));
	profile->callers = filter->callers;
	profile->rules = filter->rules;
	if (!names->shown || !names->interprets || !names->images)
		return -ENOMEM;
	map_kinds(names);
	return map_interpreters(names);
}

void frame_names__done(struct frame_names *names)
{
	free(names->shown);
	free(names->interprets);
	free(names->images);
	free(names->list);
}
