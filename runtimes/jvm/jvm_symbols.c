// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_symbols.h"

#include <errno.h>

#include "bpf/shared.h"
#include "core/base/util.h"
#include "runtimes/common/code_object_text.h"

#define SYMBOL_BYTES 1024 /* limit for a name; longer ones are truncated */
#define TAG_UTF8     1	  /* JVM_CONSTANT_Utf8 */
#define WORD_BYTES   8

int jvm_symbols__find(const struct jvm_vm *vm, struct jvm_symbols *ret)
{
	*ret = (struct jvm_symbols) { .vm = vm };
	if (jvm_vm__field(vm, "ConstantPool", "_tags", &ret->tags) ||
	    jvm_vm__field(vm, "ConstantPool", "_length", &ret->pool_length) ||
	    jvm_vm__size(vm, "ConstantPool", &ret->pool_bytes) ||
	    jvm_vm__field(vm, "Array<u1>", "_data", &ret->tags_data) ||
	    jvm_vm__field(vm, "Symbol", "_length", &ret->length) ||
	    (jvm_vm__field(vm, "Symbol", "_body", &ret->body) &&
	     jvm_vm__field(vm, "Symbol", "_body[0]", &ret->body)))
		return -ENOTSUP;
	return 0;
}

int jvm_symbols__text(const struct jvm_symbols *symbols, uint64_t symbol, char **ret)
{
	char body[SYMBOL_BYTES];
	uint16_t length;
	int rc = jvm_vm__read(symbols->vm, symbol + symbols->length, &length, sizeof(length));

	if (!rc && !length)
		rc = -EBADMSG;
	if (!rc)
		rc = jvm_vm__read(symbols->vm, symbol + symbols->body, body,
				  min_of(length, sizeof(body)));
	if (rc)
		return rc;
	*ret = code_object_text__dup(body, sizeof(body), CODE_OBJECT_TEXT_UTF8, length);
	return *ret ? 0 : -ENOMEM;
}

int jvm_symbols__constant(const struct jvm_symbols *symbols, uint64_t pool, uint32_t index,
			  char **ret)
{
	const struct jvm_vm *vm = symbols->vm;
	uint64_t tags, symbol;
	uint32_t length;
	uint8_t tag;
	int rc = jvm_vm__read(vm, pool + symbols->pool_length, &length, sizeof(length));

	if (!rc && (!index || index >= length))
		rc = -EBADMSG;
	if (!rc)
		rc = jvm_vm__read(vm, pool + symbols->tags, &tags, sizeof(tags));
	if (!rc)
		rc = jvm_vm__read(vm, tags + symbols->tags_data + index, &tag, sizeof(tag));
	if (!rc && tag != TAG_UTF8)
		rc = -EBADMSG;
	if (!rc)
		rc = jvm_vm__read(vm, pool + symbols->pool_bytes + index * WORD_BYTES, &symbol,
				  sizeof(symbol));
	return rc ? rc : jvm_symbols__text(symbols, symbol, ret);
}
