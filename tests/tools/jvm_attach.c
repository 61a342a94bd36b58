// SPDX-License-Identifier: GPL-2.0-or-later
/* jvm_attach PID COMMAND TIMEOUT_MS: makes the JVM of a process run a diagnostic command. Prints
 * "ok", or the error's name and its message. */
#include "runtimes/jvm/jvm_attach.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
	struct jvm_attach *attach = NULL;
	struct err err = {};
	int code;

	if (argc != 4)
		return 2;
	code = jvm_attach__start(strtoul(argv[1], NULL, 10), argv[2], strtoul(argv[3], NULL, 10),
				 &attach);
	if (!code)
		code = jvm_attach__finish(attach, &err);
	jvm_attach__free(attach);
	if (code)
		printf("%s %s\n", strerrorname_np(-code), err.text);
	else
		puts("ok");
	return code != 0;
}
