// SPDX-License-Identifier: GPL-2.0-or-later
#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "core/events/event.h"

/* The lists of values in the kernel half (bpf/values.h). */

int event__put_values(struct event *event, const struct value_list *list, uint64_t *ret_cookie,
		      struct err *err)
{
	int fd = kernel_half__map_fd(event->half, "value_lists");
	uint32_t key = event->number, form;
	struct value_list present;

	*ret_cookie = 0;
	if (!list->n)
		return 0;
	for (form = 0; form < event->n_forms; form++, key += VALUE_LISTS_STEP)
		if (!bpf_map_lookup_elem(fd, &key, &present) &&
		    !memcmp(&present, list, sizeof(present)))
			break;
	if (form == VALUE_FORMS_MAX)
		return err__set(err, -E2BIG,
				"cannot record the values of %s: its arguments are in more than %d "
				"different places. Name fewer values",
				event->spec.name, VALUE_FORMS_MAX);
	if (form == event->n_forms && bpf_map_update_elem(fd, &key, list, BPF_ANY))
		return err__set(err, -errno, "cannot set the values of %s: %s", event->spec.name,
				strerror(errno));
	if (form == event->n_forms)
		event->n_forms++;
	*ret_cookie = (uint64_t)key << COOKIE_VALUES_SHIFT;
	return 0;
}

int event__put_spec_values(struct event *event, const struct event_spec *at, uint64_t *ret_cookie,
			   struct err *err)
{
	struct value_list list;

	event_values__list(&at->values, &list);
	return event__put_values(event, &list, ret_cookie, err);
}
