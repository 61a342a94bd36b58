// SPDX-License-Identifier: GPL-2.0-or-later
#include <string.h>

#include "core/jit_private.h"
#include "core/profile.h"

void jit__tell(const struct jit_frames *jit, struct process *process, int i, const char *source,
	       const char *reason)
{
	if (jit->opts.on_source)
		jit->opts.on_source(jit->opts.ctx, process, jit->opts.runtimes[i], "", source,
				    reason);
}

uint32_t jit__hash(const char *name)
{
	uint32_t hash = 2166136261; /* FNV-1a */

	while (*name)
		hash = (hash ^ (uint8_t)*name++) * 16777619;
	return hash ? hash : 1;
}

int jit__name_slot(struct jit_frames *jit, struct process *process, struct jit_slot *slot,
		   const struct recording_frame *frame, struct err *err)
{
	struct jit_code *code = process->jit;
	struct recording_location location;
	struct runtime_label labelled;
	struct code_symbol symbol;
	char buf[CODE_NAME_BYTES + CODE_PATH_BYTES];
	int i, rc = 0;

	if (!code_maps__symbol(code->maps, &slot->place, slot->address,
			       jit_labels__skew(&jit->labels, process), &symbol))
		return 0;
	i = jit_labels__label(&jit->labels, process, &symbol, buf, sizeof(buf), &labelled);
	if (i < 0)
		return 0;
	location = (struct recording_location) { KIND_RUNTIME + i, labelled.symbol.function,
						 labelled.symbol.file, labelled.symbol.line };
	rc = recording__locations(jit->opts.recording, slot->frame, &location, 1, err);
	if (!rc && labelled.loop && !slot->loop) {
		slot->loop = true;
		rc = recording__frame_is_loop(jit->opts.recording, slot->frame, frame, err);
	}
	if (!rc && !code->told && !jit->opts.runtimes[i]->detect) {
		jit__tell(jit, process, i, "map", "");
		code->told = true;
	}
	slot->name_hash = jit__hash(symbol.name);
	jit->stats.places += !slot->counted; /* a map says that it is */
	slot->counted = true;
	jit->stats.named += !rc;
	return rc ? rc : 1;
}

int jit__name_by_place(struct jit_frames *jit, const struct mapped *mapped,
		       const struct runtime *compiles, const struct jit_slot *slot)
{
	uint64_t start = mapped ? mapped->start : 0;

	if (compiles)
		return naming__add_jit(jit->opts.naming, slot->frame, compiles->jit);
	return naming__add_anonymous(jit->opts.naming, slot->frame, mapped ? mapped->path : "",
				     slot->address - start);
}

bool jit__name_image_code(void *ctx, uint32_t pid, uint64_t address, struct recording_location *ret,
			  char buf[NAMING_TEXT_BYTES])
{
	struct jit_frames *jit = ctx;
	struct process *process = tracker__find(jit->opts.tracker, pid);
	struct runtime_label label;
	struct code_symbol symbol;
	struct code_place place;
	int i;

	if (!process || !process->jit || !process->jit->maps ||
	    !code_maps__find(process->jit->maps, address, UINT64_MAX, &place) ||
	    !code_maps__symbol(process->jit->maps, &place, address, 0, &symbol))
		return false;
	i = jit_labels__label(&jit->labels, process, &symbol, buf, NAMING_TEXT_BYTES, &label);
	if (i < 0)
		return false;
	if (label.symbol.function == symbol.name)
		label.symbol.function = strcpy(buf, symbol.name);
	*ret = (struct recording_location) { KIND_RUNTIME + i, label.symbol.function, NULL, 0 };
	return true;
}
