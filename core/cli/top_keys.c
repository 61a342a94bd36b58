// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/top.h"

#include <string.h>

#include "core/base/util.h"

static int sort_by(struct top *top, enum output_sort sort)
{
	top->sort = sort;
	return top__arrange(top);
}

static int sort_by_next(struct top *top)
{
	static const enum output_sort all[] = { OUTPUT_SORT_SCRIPT, OUTPUT_SORT_SELF,
						OUTPUT_SORT_TOTAL, OUTPUT_SORT_NAME };
	enum output_sort sort = top->sort;
	size_t i = 0;

	if (top->by == TOP_THREADS)
		return sort_by(top,
			       sort == OUTPUT_SORT_NAME ? OUTPUT_SORT_DEFAULT : OUTPUT_SORT_NAME);
	if (sort == OUTPUT_SORT_DEFAULT)
		sort = top->rows.scripts ? OUTPUT_SORT_SCRIPT : OUTPUT_SORT_SELF;
	while (all[i] != sort)
		i++;
	return sort_by(top, all[(i + 1) % ARRAY_SIZE(all)]);
}

static int search_again(struct top *top)
{
	top->first = top->cursor = 0;
	return top__arrange(top);
}

/* Handles a key in a search. A character may have several bytes, of which the first is not a
 * continuation. */
static int search_key(struct top *top, int key)
{
	size_t len = strlen(top->search);

	switch (key) {
	case TOP_KEY_ESCAPE:
		*top->search = '\0';
		/* fall through */
	case TOP_KEY_ENTER:
		top->mode = TOP_TABLE;
		break;
	case TOP_KEY_BACKSPACE:
		while (len > 0 && (top->search[len - 1] & 0xc0) == 0x80)
			len--;
		top->search[len ? len - 1 : 0] = '\0';
		break;
	default:
		if (key >= ' ' && key < 0x100 && key != 0x7f && len + 1 < sizeof(top->search)) {
			top->search[len] = key;
			top->search[len + 1] = '\0';
		}
	}
	return search_again(top);
}

static void move(struct top *top, int key)
{
	size_t page = max_of(top->n_visible, (size_t)1), n = top->rows.n;

	if (key == TOP_KEY_UP)
		top->cursor -= top->cursor ? 1 : 0;
	else if (key == TOP_KEY_DOWN)
		top->cursor++;
	else if (key == TOP_KEY_PAGE_UP)
		top->cursor -= min_of(top->cursor, page);
	else if (key == TOP_KEY_PAGE_DOWN)
		top->cursor += page;
	else
		top->cursor = key == TOP_KEY_HOME ? 0 : n;
}

void top__scroll(struct top *top)
{
	size_t n = top->rows.n, page = max_of(top->n_visible, (size_t)1);

	if (top->rows_max)
		n = min_of(n, top->rows_max);
	top->cursor = n ? min_of(top->cursor, n - 1) : 0;
	if (top->cursor < top->first)
		top->first = top->cursor;
	if (top->cursor >= top->first + page)
		top->first = top->cursor - page + 1;
	top->first = min_of(top->first, n > page ? n - page : 0);
}

static int table_key(struct top *top, int key)
{
	static const enum output_sort sorts[] = { OUTPUT_SORT_SCRIPT, OUTPUT_SORT_SELF,
						  OUTPUT_SORT_TOTAL, OUTPUT_SORT_NAME };

	switch (key) {
	case 'q':
		top->quits = true;
		break;
	case '?':
	case 'h':
		top->mode = TOP_HELP;
		break;
	case '/':
		top->mode = TOP_SEARCH;
		break;
	case TOP_KEY_ESCAPE:
		*top->search = '\0';
		return search_again(top);
	case 'p':
	case ' ':
		top->paused = !top->paused;
		break;
	case '\t':
		top->by = top->by == TOP_THREADS ? TOP_FUNCTIONS : TOP_THREADS;
		return search_again(top);
	case 'f':
		top->frames = (top->frames + 1) % FRAMES_N;
		return search_again(top);
	case 's':
		return sort_by_next(top);
	case '1':
	case '2':
	case '3':
	case '4':
		return sort_by(top, sorts[key - '1']);
	default:
		move(top, key);
	}
	return 0;
}

int top__key(struct top *top, int key)
{
	top->changed = true;
	*top->note = '\0'; /* the user has read it */
	if (key == TOP_KEY_RESIZE)
		return 0;
	if (top->mode == TOP_SEARCH)
		return search_key(top, key);
	if (top->mode == TOP_HELP) {
		top->mode = TOP_TABLE;
		return 0;
	}
	return table_key(top, key);
}
