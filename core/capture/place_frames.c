// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/place_frames.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/profile.h"

struct place_frames {
	struct place_frames_opts opts;
	uint32_t *images; /* ids by number - 1; 0: not assigned yet */
	size_t n_images, cap_images;
};

int place_frames__new(const struct place_frames_opts *opts, struct place_frames **ret)
{
	struct place_frames *frames = calloc(1, sizeof(*frames));

	if (!frames)
		return -ENOMEM;
	frames->opts = *opts;
	*ret = frames;
	return 0;
}

void place_frames__free(struct place_frames *frames)
{
	if (!frames)
		return;
	free(frames->images);
	free(frames);
}

void place_frames__renew(struct place_frames *frames)
{
	frames->n_images = 0;
}

static int image_id(struct place_frames *frames, const struct image *image, uint32_t *ret_id,
		    struct err *err)
{
	char hex[2 * ELF_BUILD_ID_MAX + 1] = "";
	size_t n = image->number, i;
	int rc = 0;

	if (n > frames->n_images) {
		if (array__reserve(&frames->images, &frames->cap_images, n,
				   sizeof(*frames->images)))
			return err__set(err, -ENOMEM, "out of memory");
		memset(&frames->images[frames->n_images], 0,
		       (n - frames->n_images) * sizeof(*frames->images));
		frames->n_images = n;
	}
	if (!frames->images[n - 1]) {
		for (i = 0; i < image->file->build_id_len; i++)
			snprintf(hex + 2 * i, 3, "%02x", image->file->build_id[i]);
		rc = ids__image(frames->opts.ids, image->file->path, hex, &frames->images[n - 1],
				err);
	}
	*ret_id = frames->images[n - 1];
	return rc;
}

static int new_image_frame(struct place_frames *frames, const struct captured *captured,
			   const struct place *place, uint32_t *ret_id, struct err *err)
{
	struct ids_frame frame = { .kind = KIND_NATIVE,
				   .address = place->vaddr,
				   .loop = place->loops != 0 };
	int rc = image_id(frames, place->image, &frame.image, err);
	bool is_new;

	if (!rc)
		rc = ids__frame(frames->opts.ids, &frame, ret_id, &is_new, err);
	if (rc || !is_new)
		return rc;
	return naming__add_native(frames->opts.naming, *ret_id, place, captured->serial);
}

/* Returns true if code of this compiler runs its runtime's frames, as an interpreter loop does. */
static bool runs_frames(const struct place_frames *frames, const struct place *place)
{
	const struct runtime *compiler =
		place->compiler >= 0 ? frames->opts.runtimes[place->compiler] : NULL;

	return compiler && runtime__jit_frames(compiler) != JIT_FRAMES_BESIDE;
}

static int new_own_frame(struct place_frames *frames, struct captured *captured,
			 const struct place *place, struct place_frame *of, struct err *err)
{
	struct ids_frame frame = { .kind = KIND_NATIVE,
				   .process = captured->id,
				   .address = place->address,
				   .loop = runs_frames(frames, place),
				   .generation = place->generation };
	int rc = ids__frame(frames->opts.ids, &frame, &of->id, NULL, err);

	of->loop = frame.loop;
	captured->has_own_code = true;
	return rc ? rc : naming_compiled__add(frames->opts.compiled, captured, place, of, err);
}

int place_frames__get(struct place_frames *frames, struct captured *captured,
		      const struct place *place, uint32_t *ret_id, struct err *err)
{
	struct place_frame *of = captured__place(captured, place->number);
	int rc = 0;

	if (!of)
		return err__set(err, -ENOMEM, "out of memory");
	if (!of->id)
		rc = place->image ? new_image_frame(frames, captured, place, &of->id, err)
				  : new_own_frame(frames, captured, place, of, err);
	*ret_id = of->id;
	return rc;
}

int place_frames__see_runtimes(struct place_frames *frames, struct captured *captured,
			       struct err *err)
{
	struct process *process = captured->process;
	uint32_t attached = process__attached(process);
	int rc = 0;

	if (captured->attached == attached)
		return 0;
	captured->attached = attached;
	if (captured->epoch != places__epoch(process))
		return 0;
	for (size_t i = 0; !rc && captured->has_own_code && i < captured->n_places; i++) {
		struct place_frame *of = &captured->places[i];

		if (!of->id || of->loop || !runs_frames(frames, place__numbered(process, i + 1)))
			continue;
		of->loop = true;
		rc = ids__frame_is_loop(frames->opts.ids, of->id, err);
	}
	return rc;
}
