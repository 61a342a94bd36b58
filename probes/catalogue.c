// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/catalogue.h"

extern const struct probe_catalogue probe_catalogue_python, probe_catalogue_ruby,
	probe_catalogue_jvm, probe_catalogue_php;

const struct probe_catalogue *const probe_catalogues[] = {
	&probe_catalogue_python,
	&probe_catalogue_ruby,
	&probe_catalogue_jvm,
	&probe_catalogue_php,
	NULL,
};
