// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/cli.h"

#include "core/base/escape.h"
#include "core/cli/doctor.h"

/* Prints the runtimes that are recognized without a walker. */
static void print_recognized(const struct runtime *runtime)
{
	char text[2 * RUNTIME_REASON_BYTES];
	const char *name;

	for (size_t i = 0; (name = runtime->recognizes(i, text, sizeof(text))); i++)
		printf("%25s -> %s: %s\n", "", name, text);
}

int cmd_doctor(int argc, char **argv, const struct runtime *const *runtimes)
{
	static const struct argp argp = {
		.doc = "Check what braid can do on this machine, and show a remedy for each "
		       "limit. Exits with 1 if recording is not possible.\vExample:\n"
		       "  sudo braid doctor",
	};
	char detail[600];
	int i, code, status = EXIT_OK;
	size_t n;

	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	for (n = 0; n < doctor_checks_n; n++) {
		const struct doctor_check *check = &doctor_checks[n];

		detail[0] = '\0';
		code = check->run(detail, sizeof(detail));
		escape__line(stdout, "%-8s %-16s %s",
			     !code	     ? "ok"
			     : check->needed ? "MISSING"
					     : "limited",
			     check->name, detail);
		if (code)
			escape__line(stdout, "%25s -> %s", "", check->remedy);
		if (code && check->needed)
			status = EXIT_FAILED;
	}
	for (i = 0; runtimes[i]; i++) {
		printf("%-8s %-16s %s\n", "runtime", runtimes[i]->name, runtimes[i]->versions);
		if (runtimes[i]->recognizes)
			print_recognized(runtimes[i]);
	}
	puts(status ? "recording is not possible here" : "recording is possible here");
	return status;
}
