// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/out/out_otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/escape.h"
#include "core/base/util.h"
#include "core/out/out_tracks.h"

/* The messages of github.com/open-telemetry/opentelemetry-proto, profiles/v1development at 1.10. A
 * request for a collector has the same bytes as ProfilesData of a file. The tables of the
 * dictionary have no equal entries, and none that no sample needs. Entry 0 of each is empty. */
enum {
	REQUEST_RESOURCE_PROFILES = 1,
	REQUEST_DICTIONARY = 2,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	RESOURCE_ATTRIBUTES = 1,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILES = 2,
	SCOPE_NAME = 1,

	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_TIME_UNIX_NANO = 3, /* fixed64 */
	PROFILE_DURATION_NANO = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	PROFILE_ID = 7,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTES = 2, /* packed */
	SAMPLE_VALUES = 4,     /* packed */
};

/* the profiles of one process */
struct resource {
	uint32_t pid;
	char *process, *container, *command, *service;
	struct protobuf profiles; /* as fields of ScopeProfiles */
};

struct writing {
	struct otlp otlp;
	struct resource *resources;
	size_t n_resources, cap_resources;
	uint32_t n_profiles;
};

/* ---- samples ---- */

/* A sample. Samples with equal stack and attributes are added up. */
struct sample {
	uint32_t stack, attributes[2]; /* attribute 0: none */
	uint64_t value;
};

static uint64_t value_of(const struct out_tracks *tracks, size_t part,
			 const struct pprof_value *value)
{
	return value->source == PPROF_OCCURRENCES
		       ? min_of(tracks->parts[part].value.occurrences, (uint64_t)INT64_MAX)
		       : out_tracks__value(tracks, part);
}

/* Makes the samples of parts @first to before @end. @value is one of the profile's values. */
static int make_samples(struct otlp *otlp, struct out_tracks *tracks, size_t first, size_t end,
			const struct pprof_value *value, struct sample *samples, size_t *ret_n)
{
	uint32_t *locations = calloc(tracks->tree.depth_max + 1, sizeof(*locations));
	struct strtab *keys = strtab__new();
	int code = locations && keys ? 0 : -ENOMEM;

	*ret_n = 0;
	for (size_t i = first; !code && i < end; i++) {
		const struct profile_thread *thread = out_tracks__thread(tracks, i);
		struct sample sample = { .value = value_of(tracks, i, value) };
		const uint32_t *frames;
		uint32_t at;
		char key[64];
		size_t n;

		if (!sample.value)
			continue;
		frames = out_tracks__stack(tracks, i, &n);
		code = otlp__stack(otlp, tracks->profile, frames, n, locations, &sample.stack);
		if (!code && thread && thread->tid)
			code = otlp__attribute(otlp, "thread.id", NULL, thread->tid,
					       &sample.attributes[0]);
		if (!code && thread && thread->name && *thread->name)
			code = otlp__attribute(otlp, "thread.name", thread->name, 0,
					       &sample.attributes[1]);
		snprintf(key, sizeof(key), "%u %u %u", sample.stack, sample.attributes[0],
			 sample.attributes[1]);
		if (!code && strtab__intern(keys, key, &at))
			code = -ENOMEM;
		if (code)
			break;
		if (at > *ret_n)
			samples[(*ret_n)++] = sample;
		else if (__builtin_add_overflow(samples[at - 1].value, sample.value,
						&samples[at - 1].value) ||
			 samples[at - 1].value > INT64_MAX)
			samples[at - 1].value = INT64_MAX;
	}
	strtab__free(keys);
	free(locations);
	return code;
}

static void put_sample(struct otlp *otlp, const struct sample *sample, struct protobuf *profile)
{
	protobuf__number(&otlp->part, SAMPLE_STACK, sample->stack);
	for (size_t i = 0; i < ARRAY_SIZE(sample->attributes); i++)
		if (sample->attributes[i])
			protobuf__varint(&otlp->list, sample->attributes[i]);
	if (otlp->list.len)
		protobuf__submessage(&otlp->part, SAMPLE_ATTRIBUTES, &otlp->list);
	protobuf__varint(&otlp->list, sample->value);
	protobuf__submessage(&otlp->part, SAMPLE_VALUES, &otlp->list);
	protobuf__submessage(profile, PROFILE_SAMPLE, &otlp->part);
}

static int put_value_type(struct otlp *otlp, int field, const struct pprof_value *value,
			  struct protobuf *profile)
{
	uint32_t type, unit;
	int code = otlp__string(otlp, value->type, &type);

	if (!code)
		code = otlp__string(otlp, value->unit, &unit);
	if (code)
		return code;
	protobuf__number(&otlp->part, VALUE_TYPE_TYPE, type);
	protobuf__number(&otlp->part, VALUE_TYPE_UNIT, unit);
	protobuf__submessage(profile, field, &otlp->part);
	return 0;
}

/* Writes the id of a profile. Profiles of one request differ in the last bytes of their ids. */
static void put_id(struct writing *writing, const struct output_origin *origin,
		   struct protobuf *profile)
{
	uint32_t number = writing->n_profiles++;
	uint8_t id[sizeof(origin->id)];

	memcpy(id, origin->id, sizeof(id));
	for (size_t i = 0; i < sizeof(number); i++)
		id[sizeof(id) - 1 - i] ^= number >> 8 * i;
	protobuf__text(profile, PROFILE_ID, id, sizeof(id));
}

/* Writes a profile: one kind of values of one event of one process. */
static int put_profile(struct writing *writing, struct out_tracks *tracks, size_t first, size_t end,
		       const struct pprof_value *value, struct resource *resource)
{
	struct otlp *otlp = &writing->otlp;
	const struct output_origin *origin = otlp->opts->origin;
	struct sample *samples = calloc(end - first + 1, sizeof(*samples));
	struct protobuf profile = {};
	size_t n = 0;
	int code = samples ? make_samples(otlp, tracks, first, end, value, samples, &n) : -ENOMEM;

	if (!n)
		goto out;
	if (!code)
		code = put_value_type(otlp, PROFILE_SAMPLE_TYPE, value, &profile);
	for (size_t i = 0; !code && i < n; i++)
		put_sample(otlp, &samples[i], &profile);
	if (origin)
		protobuf__fixed64(&profile, PROFILE_TIME_UNIX_NANO, origin->time_ns);
	protobuf__number(&profile, PROFILE_DURATION_NANO,
			 origin ? (uint64_t)origin->duration_ns
				: pprof_values__nanos(tracks->profile->duration_s * 1e9));
	if (!code && tracks->period_ns) {
		code = put_value_type(otlp, PROFILE_PERIOD_TYPE, &tracks->value, &profile);
		protobuf__number(&profile, PROFILE_PERIOD, tracks->period_ns);
	}
	if (origin)
		put_id(writing, origin, &profile);
	protobuf__submessage(&resource->profiles, SCOPE_PROFILES_PROFILES, &profile);
out:
	protobuf__done(&profile);
	free(samples);
	return code;
}

static struct resource *find_resource(struct writing *writing, const struct profile_thread *thread)
{
	const char *process = thread && thread->process ? thread->process : "";
	uint32_t pid = thread ? thread->pid : 0;
	struct resource *resource = writing->resources;

	for (; resource < writing->resources + writing->n_resources; resource++)
		if (resource->pid == pid && !strcmp(resource->process, process))
			return resource;
	if (array__reserve(&writing->resources, &writing->cap_resources, writing->n_resources + 1,
			   sizeof(*writing->resources)))
		return NULL;
	resource = &writing->resources[writing->n_resources];
	*resource = (struct resource) { .pid = pid,
					.process = strdup(process),
					.container = strdup(thread ? thread->container : ""),
					.command = strdup(thread ? thread->command : ""),
					.service = strdup(thread ? thread->service : "") };
	writing->n_resources++;
	if (!resource->process || !resource->container || !resource->command || !resource->service)
		return NULL;
	return resource;
}

/* Writes the profiles of an event. A profile of the format has one kind of values, so that numbers
 * of occurrences are another profile. */
static int put_profiles(struct writing *writing, struct out_tracks *tracks, size_t first,
			size_t end, struct resource *resource)
{
	struct pprof_value values[PPROF_VALUES_MAX];
	size_t n = pprof_values__of(tracks->profile, tracks->period_ns, values);
	int code = 0;

	for (size_t i = 0; !code && i < n; i++)
		if (i == n - 1 || values[i].source == PPROF_OCCURRENCES)
			code = put_profile(writing, tracks, first, end, &values[i], resource);
	return code;
}

static int put_event(struct writing *writing, const struct profile *profile)
{
	struct out_tracks tracks;
	size_t at = 0, end;
	int code = out_tracks__init_counted(&tracks, profile);

	if (!code)
		code = otlp__enter(&writing->otlp, profile);
	for (; !code && at < tracks.n_parts; at = end) {
		const struct profile_thread *of = out_tracks__thread(&tracks, at);
		struct resource *resource = find_resource(writing, of);

		for (end = at; end < tracks.n_parts; end = out_tracks__end(&tracks, end)) {
			const struct profile_thread *thread = out_tracks__thread(&tracks, end);

			if (thread != of && (thread->pid != of->pid ||
					     strcmp(thread->process ? thread->process : "",
						    of->process ? of->process : "") != 0))
				break;
		}
		code = resource ? put_profiles(writing, &tracks, at, end, resource) : -ENOMEM;
	}
	out_tracks__done(&tracks);
	return code;
}

/* ---- the request ---- */

static void put_attribute(struct protobuf *resource, const char *key, const char *text,
			  uint64_t number)
{
	struct protobuf attribute = {};

	protobuf__text(&attribute, KEY_VALUE_KEY, key, strlen(key));
	otlp__value(&attribute, KEY_VALUE_VALUE, text, number);
	protobuf__submessage(resource, RESOURCE_ATTRIBUTES, &attribute);
	protobuf__done(&attribute);
}

static int put_printable(struct protobuf *resource, const char *key, const char *text)
{
	char *copy = strdup(text);

	if (!copy)
		return -ENOMEM;
	escape__printable(copy);
	put_attribute(resource, key, copy, 0);
	free(copy);
	return 0;
}

/* Writes the service: as the user names it, as the process published it, or the process's name. */
static int put_origin(const struct output_origin *origin, const struct resource *from,
		      struct protobuf *resource)
{
	const char *published = *from->service ? from->service : from->process;
	const char *service = origin && origin->service ? origin->service : published;
	int code = *service ? put_printable(resource, "service.name", service) : 0;

	if (!code && origin && *origin->host)
		code = put_printable(resource, "host.name", origin->host);
	return code;
}

static int put_resource(const struct writing *writing, struct resource *resource,
			struct protobuf *request)
{
	struct protobuf of = {}, scope = {}, profiles = {}, whole = {};
	int code = put_origin(writing->otlp.opts->origin, resource, &of);

	if (!code && *resource->process)
		code = put_printable(&of, "process.executable.name", resource->process);
	if (!code && *resource->command)
		code = put_printable(&of, "process.command_line", resource->command);
	if (!code && *resource->container)
		code = put_printable(&of, "container.id", resource->container);
	if (resource->pid)
		put_attribute(&of, "process.pid", NULL, resource->pid);
	protobuf__text(&scope, SCOPE_NAME, "braid", strlen("braid"));
	protobuf__submessage(&profiles, SCOPE_PROFILES_SCOPE, &scope);
	protobuf__append(&profiles, &resource->profiles);
	protobuf__submessage(&whole, RESOURCE_PROFILES_RESOURCE, &of);
	protobuf__submessage(&whole, RESOURCE_PROFILES_SCOPE_PROFILES, &profiles);
	protobuf__submessage(request, REQUEST_RESOURCE_PROFILES, &whole);
	protobuf__done(&of);
	protobuf__done(&scope);
	protobuf__done(&profiles);
	protobuf__done(&whole);
	return code;
}

static int write_all(struct writing *writing, FILE *out)
{
	struct protobuf request = {};
	int code = 0;

	for (size_t i = 0; !code && i < writing->n_resources; i++)
		code = put_resource(writing, &writing->resources[i], &request);
	otlp__dictionary(&writing->otlp, REQUEST_DICTIONARY, &request);
	if (request.failed)
		code = -ENOMEM;
	if (!code)
		fwrite(request.data, 1, request.len, out);
	protobuf__done(&request);
	return code ? code : output__finish(out);
}

int output__otlp(const struct profile *profile, const struct output_opts *opts, FILE *out)
{
	struct writing writing = {};
	int code = otlp__init(&writing.otlp, opts);

	if (!code)
		code = put_event(&writing, profile);
	for (size_t i = 0; !code && i < opts->n_others; i++)
		code = put_event(&writing, opts->others[i]);
	if (!code)
		code = write_all(&writing, out);
	for (size_t i = 0; i < writing.n_resources; i++) {
		free(writing.resources[i].process);
		free(writing.resources[i].container);
		free(writing.resources[i].command);
		free(writing.resources[i].service);
		protobuf__done(&writing.resources[i].profiles);
	}
	free(writing.resources);
	otlp__done(&writing.otlp);
	return code;
}
