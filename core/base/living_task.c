// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/living_task.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/util.h"

bool state__has_ended(char state)
{
	return state == 'Z' || state == 'X';
}

/* Returns the letter after the name, which may contain parentheses; '\0': the file does not
 * exist. */
static char read_state(const char *path)
{
	char text[512], state = '\0';
	const char *close;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	close_fd(&fd);
	if (n <= 0)
		return '\0';
	text[n] = '\0';
	close = strrchr(text, ')');
	if (!close || sscanf(close + 1, " %c", &state) != 1)
		return '\0';
	return state;
}

uint32_t living_task__of(uint32_t pid)
{
	uint32_t found = pid, tid;
	struct dirent *entry;
	char path[64], state;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	if (!state__has_ended(read_state(path)))
		return pid;
	snprintf(path, sizeof(path), "/proc/%u/task", pid);
	dir = opendir(path);
	while (dir && found == pid && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		tid = strtoul(entry->d_name, NULL, 10);
		snprintf(path, sizeof(path), "/proc/%u/task/%u/stat", pid, tid);
		state = read_state(path);
		if (state && !state__has_ended(state))
			found = tid;
	}
	if (dir)
		closedir(dir);
	return found;
}
