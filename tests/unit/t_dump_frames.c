// SPDX-License-Identifier: GPL-2.0-or-later
/* Frames of a dump that the kernel prints as text. */
#include "core/dump/dump_state.h"

#include <stdlib.h>

#include "tests/tap.h"

int main(void)
{
	static const char text[] = "[<0>] poll_schedule_timeout.constprop.0+0x34/0x90\n"
				   "[<0>] ext4_readdir+0x1/0x2 [ext4]\n"
				   "no frame\n"
				   "[<0>] do_exit.cold+0x1/0x2";
	static const char *const want[] = { "poll_schedule_timeout", "ext4_readdir", "do_exit" };
	struct dump_thread thread = {};

	is_int(dump_thread__add_kernel(&thread, text), 0, "the kernel's stack is read");
	is_int(thread.n_frames, 3, "it has a frame of each line that is one");
	for (size_t i = 0; i < thread.n_frames && i < 3; i++) {
		is_str(thread.frames[i].function, want[i], "by the name that the programmer wrote");
		is_int(thread.frames[i].kind, KIND_KERNEL, "of the kernel");
		free(thread.frames[i].function);
		free(thread.frames[i].file);
	}
	free(thread.frames);
	return tap__done();
}
