// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/capture/pairing.h"

#include <assert.h>
#include <stdlib.h>

#include "bpf/shared.h"
#include "core/target/place.h"

struct pairing {
	struct runtime_native natives[NATIVE_FRAMES_MAX];
};

struct pairing *pairing__new(void)
{
	return calloc(1, sizeof(struct pairing));
}

void pairing__free(struct pairing *pairing)
{
	free(pairing);
}

uint64_t native_frame__address(const struct native_frame *frame)
{
	return NATIVE_ADDRESS(frame->ip) - !(frame->ip & NATIVE_EXACT);
}

struct question { /* the sample that a runtime's hook gets, and the data for its requests */
	struct runtime_sample sample;
	struct pairing *pairing;
	const struct pairing_sample *of;
};

static struct runtime_natives gather(const struct runtime_sample *sample, bool functions)
{
	const struct question *question = (const struct question *)sample;
	const struct pairing_sample *of = question->of;
	struct runtime_native *natives = question->pairing->natives;
	struct runtime_natives ret = { .list = natives, .n = of->n_natives };

	assert(of->n_natives <= NATIVE_FRAMES_MAX);
	for (size_t i = 0; i < of->n_natives; i++) {
		uint64_t address = native_frame__address(&of->natives[i]);
		const struct place *place;

		natives[i] = (struct runtime_native) { .cfa = of->natives[i].cfa };
		if (place__at(of->process, address, of->time_ns, &place))
			continue; /* out of memory: treat the frame as unknown */
		natives[i].loop = place->loops & 1U << of->index ||
				  (place->compiler == (int)of->index &&
				   runtime__jit_frames(of->runtime) == JIT_FRAMES_LOOP);
		natives[i].compiled =
			place->kind == PLACE_COMPILED || place->kind == PLACE_ANONYMOUS;
		if (!ret.image && place->runtimes & 1U << of->index) {
			ret.image = place->image->runtimes[of->index].image;
			ret.bias = place->address - place->vaddr;
		}
		if (functions)
			natives[i].function = place__function(of->process, place->number);
	}
	return ret;
}

size_t pairing__run(struct pairing *pairing, const struct pairing_sample *sample,
		    struct runtime_pair *pairs, size_t n)
{
	const struct question question = {
		.sample = { .native_complete =
				    sample->native_complete || sample->flags & SECTION_WHOLE,
			    .cut = sample->flags & (SECTION_TRUNCATED | SECTION_BROKEN),
			    .probed = sample->flags & SECTION_PROBED,
			    .natives = gather },
		.pairing = pairing,
		.of = sample,
	};

	return runtime__has(sample->runtime, names, anchors)
		       ? sample->runtime->names->anchors(sample->session, &question.sample, pairs,
							 n)
		       : n;
}
