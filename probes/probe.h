/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_PROBE_H
#define BRAID_PROBE_H

struct runtime;

/* The interface of probes/ for main.c: the command, as the commands of core/cli/cli.h. */
int cmd_probes(int argc, char **argv, const struct runtime *const *runtimes);

#endif
