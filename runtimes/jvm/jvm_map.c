// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_map.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtimes/jvm/jvm_attach.h"
#include "runtimes/jvm/jvm_names.h"

#define TIMEOUT_MS 5000
#define UNNAMED	   "[JVM code]"

struct pending_request {
	uint32_t pid;
	struct jvm_attach *attach;
	struct pending_request *next;
};

struct jvm_map {
	struct pending_request *pending_request; /* pending requests */
};

struct jvm_map *jvm_map__new(void)
{
	return calloc(1, sizeof(struct jvm_map));
}

static void pending_request__free(struct pending_request *pending_request)
{
	jvm_attach__free(pending_request->attach);
	free(pending_request);
}

void jvm_map__free(struct jvm_map *map)
{
	struct pending_request *pending_request;

	if (!map)
		return;
	while ((pending_request = map->pending_request)) {
		map->pending_request = pending_request->next;
		pending_request__free(pending_request);
	}
	free(map);
}

int jvm_map__ask(struct jvm_map *map, uint32_t pid, struct err *err)
{
	struct pending_request *pending_request = calloc(1, sizeof(*pending_request));
	int rc = -ENOMEM;

	if (pending_request)
		rc = jvm_attach__start(pid, "Compiler.perfmap", TIMEOUT_MS,
				       &pending_request->attach);
	if (rc) {
		free(pending_request);
		return err__set(err, rc, "jvm: cannot request the perf map of process %u: %s", pid,
				strerror(-rc));
	}
	pending_request->pid = pid;
	pending_request->next = map->pending_request;
	map->pending_request = pending_request;
	return 0;
}

int jvm_map__result(struct jvm_map *map, uint32_t pid, unsigned timeout_ms, struct err *err)
{
	struct pending_request **at = &map->pending_request, *pending_request;
	struct pollfd over;
	int rc;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	pending_request = *at;
	if (!pending_request)
		return err__set(err, -ESRCH, "jvm: no perf map was requested from process %u", pid);
	over = (struct pollfd) { .fd = jvm_attach__fd(pending_request->attach), .events = POLLIN };
	if (timeout_ms)
		poll(&over, 1, timeout_ms);
	if (!jvm_attach__is_over(pending_request->attach))
		return -EAGAIN;
	rc = jvm_attach__finish(pending_request->attach, err);
	*at = pending_request->next;
	pending_request__free(pending_request);
	return rc == -EAGAIN ? -EBUSY : rc; /* the JVM was starting; the caller may retry */
}

bool jvm_map__label(const char *symbol, char *buf, size_t size, struct runtime_label *ret)
{
	size_t n = strcspn(symbol, "("), start = n;
	char *method, *name;

	while (start && symbol[start - 1] != ' ')
		start--;
	if (!symbol[n] || start == n) { /* "StubRoutines (1)" is not a method */
		start = 0;
		n = strlen(symbol);
	}
	snprintf(buf, size, "%.*s", (int)(n - start), symbol + start);
	method = strrchr(buf, '.');
	if (start &&
	    method) { /* hidden classes have an address: "W$$Lambda$14/0x0000000800c00a00" */
		*method = '\0';
		name = jvm_name__method(buf, method + 1);
		snprintf(buf, size, "%s", name ? name : UNNAMED);
		free(name);
	}
	*ret = (struct runtime_label) { .symbol.function = buf };
	return true;
}
