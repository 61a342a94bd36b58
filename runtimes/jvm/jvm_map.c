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

struct asked {
	uint32_t pid;
	struct jvm_attach *attach;
	struct asked *next;
};

struct jvm_map {
	struct asked *asked; /* pending requests */
};

struct jvm_map *jvm_map__new(void)
{
	return calloc(1, sizeof(struct jvm_map));
}

static void asked__free(struct asked *asked)
{
	jvm_attach__free(asked->attach);
	free(asked);
}

void jvm_map__free(struct jvm_map *map)
{
	struct asked *asked;

	if (!map)
		return;
	while ((asked = map->asked)) {
		map->asked = asked->next;
		asked__free(asked);
	}
	free(map);
}

int jvm_map__ask(struct jvm_map *map, uint32_t pid, struct err *err)
{
	struct asked *asked = calloc(1, sizeof(*asked));
	int rc = -ENOMEM;

	if (asked)
		rc = jvm_attach__start(pid, "Compiler.perfmap", TIMEOUT_MS, &asked->attach);
	if (rc) {
		free(asked);
		return err__set(err, rc, "jvm: cannot request the perf map of process %u: %s", pid,
				strerror(-rc));
	}
	asked->pid = pid;
	asked->next = map->asked;
	map->asked = asked;
	return 0;
}

int jvm_map__asked(struct jvm_map *map, uint32_t pid, unsigned timeout_ms, struct err *err)
{
	struct asked **at = &map->asked, *asked;
	struct pollfd over;
	int rc;

	while (*at && (*at)->pid != pid)
		at = &(*at)->next;
	asked = *at;
	if (!asked)
		return err__set(err, -ESRCH, "jvm: no perf map was requested from process %u", pid);
	over = (struct pollfd) { .fd = jvm_attach__fd(asked->attach), .events = POLLIN };
	if (timeout_ms)
		poll(&over, 1, timeout_ms);
	if (!jvm_attach__is_over(asked->attach))
		return -EAGAIN;
	rc = jvm_attach__finish(asked->attach, err);
	*at = asked->next;
	asked__free(asked);
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
