// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_flags.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"

#define FLAGS_MAX  8192 /* HotSpot has 500 to 1500 */
#define FLAG_BYTES 256	/* limit for one JVMFlag */
#define NAME_BYTES 64

/* JVMFlag, runtime/flags/jvmFlag.hpp; Flag, runtime/globals.hpp, in JDK 8 */
struct layout {
	uint64_t table, n; /* JVMFlag::flags, numFlags */
	uint64_t size, name, addr;
};

static int read_layout(const struct jvm_vm *vm, struct layout *ret)
{
	const char *type = "JVMFlag";
	uint64_t flags, n;
	int rc;

	if (jvm_vm__static(vm, type, "flags", &flags))
		type = "Flag";
	rc = jvm_vm__static(vm, type, "flags", &flags);
	rc = rc ? rc : jvm_vm__static(vm, type, "numFlags", &n);
	rc = rc ? rc : jvm_vm__size(vm, type, &ret->size);
	rc = rc ? rc : jvm_vm__field(vm, type, "_name", &ret->name);
	rc = rc ? rc : jvm_vm__field(vm, type, "_addr", &ret->addr);
	rc = rc ? rc : jvm_vm__read(vm, flags, &ret->table, sizeof(ret->table));
	rc = rc ? rc : jvm_vm__read(vm, n, &ret->n, sizeof(ret->n));
	if (rc)
		return rc;
	if (ret->n > FLAGS_MAX || ret->size > FLAG_BYTES ||
	    !fits_in(ret->name, sizeof(uint64_t), ret->size) ||
	    !fits_in(ret->addr, sizeof(uint64_t), ret->size))
		return -EBADMSG;
	return 0;
}

/* Finds the address of the flag's value. */
static int find(const struct jvm_vm *vm, const struct layout *layout, const char *table,
		const char *name, uint64_t *ret_address)
{
	char text[NAME_BYTES];
	uint64_t address;

	for (uint64_t i = 0; i < layout->n; i++) {
		const char *flag = table + i * layout->size;

		memcpy(&address, flag + layout->name, sizeof(address));
		jvm_vm__text(vm, address, text, sizeof(text));
		if (strcmp(text, name) != 0)
			continue;
		memcpy(ret_address, flag + layout->addr, sizeof(*ret_address));
		return 0;
	}
	return -ENOENT;
}

int jvm_flags__bool(const struct jvm_vm *vm, const char *name, bool *ret)
{
	struct layout layout;
	int rc = read_layout(vm, &layout);
	uint64_t address;
	uint8_t value;
	char *table;

	if (rc)
		return rc;
	table = malloc(layout.n * layout.size + 1);
	if (!table)
		return -ENOMEM;
	rc = jvm_vm__read(vm, layout.table, table, layout.n * layout.size);
	rc = rc ? rc : find(vm, &layout, table, name, &address);
	rc = rc ? rc : jvm_vm__read(vm, address, &value, sizeof(value));
	free(table);
	if (!rc)
		*ret = value;
	return rc;
}
