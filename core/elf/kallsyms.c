// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/elf/kallsyms.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

/* Limit of the file. A kernel with all its modules has about 10 MB. */
#define KALLSYMS_BYTES_MAX (256ULL << 20)
/* Limit of the size of the last symbol, in bytes. */
#define LAST_SYMBOL_BYTES  4096

struct entry {
	uint64_t address;
	uint32_t name, module; /* offsets into text; module 0: none */
	char type;	       /* as in nm; data symbols are stored as ends of the code */
};

struct kallsyms {
	char *text; /* the file, lines cut into strings */
	struct entry *entries;
	size_t n, cap;
};

/* Reads the whole file. *@ret is owned by the caller and has a final NUL. Returns 0 or a negative
 * errno. */
static int read_all(int fd, char **ret, size_t *ret_len)
{
	size_t len = 0, cap = 0;
	char *text = NULL;
	ssize_t got = 1;

	while (got) {
		if (array__reserve(&text, &cap, len + (1 << 16), 1) != 0) {
			free(text);
			return -ENOMEM;
		}
		got = read(fd, text + len, cap - len - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 || len > KALLSYMS_BYTES_MAX) {
			free(text);
			return got < 0 ? -errno : -EFBIG;
		}
		len += got;
	}
	text[len] = '\0';
	*ret = text;
	*ret_len = len;
	return 0;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parses a line, "ffffffffc0200000 t name\t[module]", and cuts it into strings. Returns false for
 * any other line. */
static bool parse_line(char *text, char *line, struct entry *ret)
{
	uint64_t address = 0;
	char *at = line, *module;

	for (; hex_digit(*at) >= 0; at++)
		address = address << 4 | hex_digit(*at);
	if (at == line || at - line > 16 || at[0] != ' ' || !at[1] || at[2] != ' ' || !at[3])
		return false;
	*ret = (struct entry) { .address = address, .type = at[1], .name = at + 3 - text };
	at = strchr(at + 3, '\t');
	if (!at)
		return true;
	*at++ = '\0';
	module = *at == '[' ? at + 1 : at;
	module[strcspn(module, "]")] = '\0';
	ret->module = module - text;
	return true;
}

static int parse(struct kallsyms *kallsyms, size_t len)
{
	char *end, *line = kallsyms->text;
	struct entry entry;

	for (; line < kallsyms->text + len; line = end + 1) {
		end = memchr(line, '\n', kallsyms->text + len - line);
		if (!end)
			end = kallsyms->text + len;
		*end = '\0';
		if (!parse_line(kallsyms->text, line, &entry))
			continue;
		if (array__reserve(&kallsyms->entries, &kallsyms->cap, kallsyms->n + 1,
				   sizeof(*kallsyms->entries)) != 0)
			return -ENOMEM;
		kallsyms->entries[kallsyms->n++] = entry;
	}
	return 0;
}

static bool is_text(const struct entry *entry)
{
	return strchr("tTwW", entry->type) != NULL;
}

/* Sorts by address. The best name of an address is last: code, global, first in the file. */
static int by_address(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (is_text(x) != is_text(y))
		return is_text(x) ? 1 : -1;
	if ((x->type == 'T') != (y->type == 'T'))
		return x->type == 'T' ? 1 : -1;
	return x->name > y->name ? -1 : 1;
}

static bool all_hidden(const struct kallsyms *kallsyms)
{
	for (size_t i = 0; i < kallsyms->n; i++) {
		if (kallsyms->entries[i].address)
			return false;
	}
	return kallsyms->n > 0;
}

int kallsyms__load(const char *path, struct kallsyms **ret, struct err *err)
{
	struct kallsyms *kallsyms = calloc(1, sizeof(*kallsyms));
	int fd = -1, rc = kallsyms ? 0 : -ENOMEM;
	size_t len = 0;

	if (!rc) {
		fd = open(path, O_RDONLY | O_CLOEXEC);
		rc = fd < 0 ? -errno : read_all(fd, &kallsyms->text, &len);
	}
	if (!rc)
		rc = parse(kallsyms, len);
	if (rc) {
		err__set(err, rc, "%s: %s", path, strerror(-rc));
		goto out;
	}
	if (all_hidden(kallsyms)) {
		rc = err__set(err, -EPERM,
			      "%s: kernel addresses are hidden: this needs CAP_SYSLOG, and the "
			      "sysctl kernel.kptr_restrict at 0 or 1",
			      path);
		goto out;
	}
	if (kallsyms->n)
		qsort(kallsyms->entries, kallsyms->n, sizeof(*kallsyms->entries), by_address);
	*ret = kallsyms;
	kallsyms = NULL;
out:
	close_fd(&fd);
	kallsyms__free(kallsyms);
	return rc;
}

void kallsyms__free(struct kallsyms *kallsyms)
{
	if (!kallsyms)
		return;
	free(kallsyms->text);
	free(kallsyms->entries);
	free(kallsyms);
}

const char *kallsyms__find(const struct kallsyms *kallsyms, uint64_t address,
			   const char **ret_module)
{
	size_t low = 0, high = kallsyms->n; /* entries below @low start at or before @address */
	const struct entry *found;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (kallsyms->entries[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	found = &kallsyms->entries[low - 1];
	if (!is_text(found))
		return NULL;
	if (low == kallsyms->n && address - found->address >= LAST_SYMBOL_BYTES)
		return NULL;
	if (ret_module)
		*ret_module = found->module ? kallsyms->text + found->module : NULL;
	return kallsyms->text + found->name;
}

uint64_t kallsyms__address(const struct kallsyms *kallsyms, const char *name)
{
	for (size_t i = 0; i < kallsyms->n; i++)
		if (!kallsyms->entries[i].module &&
		    !strcmp(kallsyms->text + kallsyms->entries[i].name, name))
			return kallsyms->entries[i].address;
	return 0;
}
