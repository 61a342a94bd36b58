// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/shown_file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/files/target_file.h"

int shown_file__open(int root_fd, const char *path, uint64_t most, uint64_t *ret_size)
{
	struct target_file file = TARGET_FILE_NONE;
	struct stat st;
	int ret = target_file__find(root_fd, path, true, &file);

	if (ret)
		return ret;
	*ret_size = file.size;
	if (!file.size || file.size > most)
		ret = -EFBIG;
	else if (fstat(file.fd, &st) || (!geteuid() && !(st.st_mode & S_IROTH)))
		ret = -EACCES;
	else
		ret = target_file__open(&file);
	target_file__done(&file);
	return ret;
}
