// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/profile/frames.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/profile/function_rules.h"

static const char *const names[FRAMES_N] = {
	[FRAMES_ALL] = "all",
	[FRAMES_COLLAPSED] = "collapsed",
	[FRAMES_SCRIPT] = "script",
	[FRAMES_APP] = "app",
};

const char *frames__name(enum profile_frames frames)
{
	return names[frames];
}

enum profile_frames frames__find(const char *name)
{
	enum profile_frames frames = FRAMES_ALL;

	while (frames < FRAMES_N && strcmp(names[frames], name) != 0)
		frames++;
	return frames;
}

/* the state of a node of the profile with all frames */
struct place {
	uint32_t whole;	 /* node of the view if the stack has no frame of a runtime */
	uint32_t viewed; /* node of the view if the stack has a frame of a runtime */
	uint32_t base;	 /* node of the view below the run that the node is in */
	uint32_t length; /* length of the run up to the node; 0: the node is in no run */
	bool named;	 /* the run has a frame that matters */
	bool has;	 /* true if this frame or one rootwards, within the stack, is a runtime's */
	bool will;	 /* true if this frame or one leafwards is a runtime's */
};

struct view {
	const struct profile *all;
	struct profile *to;
	enum profile_frames frames;
	struct place *places;
	bool *shown; /* by frame: true for a function that the view shows */
	/* View "app": the frame that stands for all of a stack that has functions of runtimes, but
	 * none of them is own code. 0: such stacks are shown whole. */
	uint32_t foreign;
};

static bool is_label(const struct profile *profile, const struct profile_frame *frame)
{
	return profile->kinds[frame->kind].label;
}

bool frames__differ(const struct profile *profile)
{
	for (size_t i = 1; i < profile->n_nodes; i++)
		if (profile__is_runtime(profile, &profile->frames[profile->nodes[i].frame]))
			return true;
	return false;
}

static const struct profile_frame *frame_of(const struct view *view, uint32_t node)
{
	return &view->all->frames[view->all->nodes[node].frame];
}

/* Sets `will` of all places. Children have greater numbers than their parents. */
static void look_ahead(struct view *view)
{
	for (size_t i = view->all->n_nodes - 1; i > 0; i--) {
		const struct profile_frame *frame = frame_of(view, i);
		struct place *place = &view->places[i];

		if (is_label(view->all, frame))
			continue; /* a label separates the frames after it from those before it */
		place->will |= view->shown[view->all->nodes[i].frame];
		view->places[view->all->nodes[i].parent].will |= place->will;
	}
}

static bool goes_on(const struct view *view, uint32_t node)
{
	uint32_t parent = view->all->nodes[node].parent;
	const struct profile_frame *frame = frame_of(view, node), *outer;

	if (!parent || !view->places[parent].length)
		return false;
	outer = frame_of(view, parent);
	return outer->library == frame->library &&
	       (outer->kind == KIND_KERNEL) == (frame->kind == KIND_KERNEL);
}

/* Adds a native frame to its run, which is one node of the view. */
static int add_to_run(struct view *view, uint32_t node)
{
	uint32_t parent = view->all->nodes[node].parent, shown = view->all->nodes[node].frame;
	const struct profile_frame *frame = frame_of(view, node);
	struct place *place = &view->places[node], *outer = &view->places[parent];
	bool going = goes_on(view, node), interprets;
	int ret = 0;

	interprets = frame->role == ROLE_INTERPRETER || frame->role == ROLE_CALLER;
	place->base = going ? outer->base : outer->viewed;
	place->length = going ? outer->length + 1 : 1;
	place->named = going && outer->named;
	place->viewed = outer->viewed;
	if (!place->named &&
	    (frame->role == ROLE_SYSCALL || (going && frame_of(view, parent)->role == ROLE_CALLER &&
					     frame->role != ROLE_CALLER))) {
		place->named = true;
		ret = profile__child(view->to, place->base, shown, &place->viewed);
	} else if (!going) {
		if (interprets)
			ret = profile__block(view->to, view->to->frames[shown].library, &shown);
		ret = ret ? ret : profile__child(view->to, place->base, shown, &place->viewed);
	}
	if (!ret && place->viewed) {
		struct profile_node *to = &view->to->nodes[place->viewed];

		to->run = max_of(to->run, place->length);
	}
	return ret;
}

/* Places a node that has no shown function, neither itself nor rootwards. */
static int place_whole(struct view *view, uint32_t node, uint32_t shown)
{
	uint32_t outer = view->places[view->all->nodes[node].parent].whole;
	uint32_t *ret_whole = &view->places[node].whole;

	if (!view->foreign || !profile__is_runtime(view->all, frame_of(view, node)))
		return profile__child(view->to, outer, shown, ret_whole);
	*ret_whole = outer;
	return outer && view->to->nodes[outer].frame == view->foreign
		       ? 0
		       : profile__child(view->to, outer, view->foreign, ret_whole);
}

static int place_node(struct view *view, uint32_t node)
{
	uint32_t parent = view->all->nodes[node].parent, shown = view->all->nodes[node].frame;
	const struct profile_frame *frame = frame_of(view, node);
	struct place *place = &view->places[node], *outer = &view->places[parent];
	bool runtime = view->shown[shown], label = is_label(view->all, frame);
	int ret = 0;

	if (view->frames == FRAMES_ALL) {
		ret = profile__child(view->to, outer->whole, shown, &place->whole);
		place->viewed = place->whole;
		return ret;
	}
	if (label) {
		ret = profile__child(view->to, outer->has ? outer->viewed : outer->whole, shown,
				     &place->viewed);
		place->whole = place->viewed;
		return ret;
	}
	place->has = runtime || outer->has;
	if (!place->has)
		ret = place_whole(view, node, shown);
	if (ret || (!place->has && !place->will))
		return ret;
	if (runtime)
		return profile__child(view->to, outer->viewed, shown, &place->viewed);
	if (view->frames == FRAMES_COLLAPSED)
		return add_to_run(view, node);
	place->viewed = outer->viewed;
	return 0;
}

/* Returns the node of the view where stacks that end in @node count. */
static uint32_t end_of(const struct view *view, uint32_t node)
{
	const struct place *place = &view->places[node];

	return place->has ? place->viewed : place->whole;
}

static int copy_threads(const struct view *view)
{
	const struct profile *all = view->all;
	uint32_t number;
	int ret = 0;

	for (size_t i = 0; !ret && i < all->n_threads; i++) {
		const struct profile_thread *thread = &all->threads[i];

		ret = profile__copy_thread(view->to, thread, &number);
	}
	for (size_t i = 0; !ret && i < all->n_shares; i++) {
		struct profile_share share = all->shares[i];

		share.node = end_of(view, share.node);
		ret = profile__add_share(view->to, &share);
	}
	for (size_t i = 0; !ret && i < all->n_cells; i++) {
		struct profile_cell cell = all->cells[i];

		cell.node = end_of(view, cell.node);
		ret = profile__add_cell(view->to, &cell);
	}
	view->to->column_ns = all->column_ns;
	view->to->n_columns = all->n_columns;
	view->to->instants = all->instants;
	return ret;
}

static int view_all(struct view *view)
{
	const struct profile *all = view->all;
	int ret = 0;

	look_ahead(view);
	for (size_t i = 0; !ret && i < all->n_nodes; i++) {
		const struct profile_node *node = &all->nodes[i];
		const struct profile_value value = { node->self,    node->calls,
						     node->waiting, node->preempted,
						     node->samples, node->occurrences,
						     node->waits,   node->preemptions };

		ret = i ? place_node(view, i) : 0;
		if (!ret)
			profile__add_at(view->to, end_of(view, i), &value);
	}
	return ret ? ret : copy_threads(view);
}

/* Sets the frame for stacks without own code, if some other stack has own code. Returns 0 or
 * -ENOMEM. */
static int add_foreign(struct view *view)
{
	int kind;

	for (size_t i = 1; i < view->all->n_nodes; i++) {
		if (!view->shown[view->all->nodes[i].frame])
			continue;
		kind = profile__label_kind(view->to, "rest");
		return profile__frame(view->to, kind > 0 ? kind : KIND_NATIVE, "[without own code]",
				      NULL, 0, &view->foreign);
	}
	return 0;
}

static int make_view(const struct profile *all, enum profile_frames frames, struct profile **ret)
{
	struct view view = { .all = all, .frames = frames, .to = profile__like(all) };
	int code = -ENOMEM;

	view.places = calloc(all->n_nodes, sizeof(*view.places));
	view.shown = calloc(all->n_frames + 1, sizeof(*view.shown));
	if (!view.to || !view.places || !view.shown)
		goto out;
	for (size_t i = 0; i < all->n_frames; i++)
		view.shown[i] = frames == FRAMES_APP
					? function_rules__is_own(all, &all->frames[i])
					: function_rules__is_function(all, &all->frames[i]);
	code = frames == FRAMES_APP ? add_foreign(&view) : 0;
	code = code ? code : view_all(&view);
	if (code)
		goto out;
	*ret = view.to;
	view.to = NULL;
out:
	profile__free(view.to);
	free(view.places);
	free(view.shown);
	return code;
}

int frames__view(const struct profile *all, enum profile_frames frames, struct profile **ret)
{
	struct profile *scripts;
	int code;

	if (frames != FRAMES_APP)
		return make_view(all, frames, ret);
	code = make_view(all, FRAMES_SCRIPT, &scripts);
	if (code)
		return code;
	code = make_view(scripts, FRAMES_APP, ret);
	profile__free(scripts);
	return code;
}

int frames__script_owners(const struct profile *profile, uint32_t *owners)
{
	bool *functions = calloc(profile->n_frames + 1, sizeof(*functions));

	if (!functions)
		return -ENOMEM;
	for (size_t i = 0; i < profile->n_frames; i++)
		functions[i] = function_rules__is_function(profile, &profile->frames[i]);
	owners[0] = 0;
	for (uint32_t i = 1; i < profile->n_nodes; i++) {
		const struct profile_node *node = &profile->nodes[i];
		const struct profile_frame *frame = &profile->frames[node->frame];
		uint32_t outer = owners[node->parent];

		/* 0: no owner yet */
		owners[i] = is_label(profile, frame) ? 0 : functions[node->frame] ? i : outer;
	}
	for (uint32_t i = 1; i < profile->n_nodes; i++)
		if (!owners[i])
			owners[i] = i;
	free(functions);
	return 0;
}
