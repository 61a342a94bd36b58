// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/base/priority.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/resource.h>

#define NICE -10 /* about ten times the share of a program at nice 0 */

#define NICE_HURRIED -20 /* about nine times the share of NICE */

static bool raised, hurried;

void priority__raise(void)
{
	errno = 0;
	if (!raised && !getpriority(PRIO_PROCESS, 0) && !errno)
		raised = !setpriority(PRIO_PROCESS, 0, NICE);
}

void priority__hurry(bool hurries)
{
	if (raised && hurries != hurried &&
	    !setpriority(PRIO_PROCESS, 0, hurries ? NICE_HURRIED : NICE))
		hurried = hurries;
}

void priority__restore(void)
{
	if (raised)
		raised = setpriority(PRIO_PROCESS, 0, 0);
	hurried = raised && hurried;
}
