// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_nmethod.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/jvm/jvm_scopes.h"
#include "runtimes/jvm/jvm_stream.h"

#define NMETHOD_BYTES	 512 /* bytes of its fields, at most; 352 in JDK 17 */
#define PART_BYTES_MAX	 (4 * 1024 * 1024)
#define PLACES_BYTES_MAX 512  /* maximum distance of two described places of machine code */
#define PC_DESC_BYTES	 64   /* at most; 16 in JDK 8 to 28 */
#define INVOCATION_BCI	 (-1) /* entry of an nmethod without on-stack replacement */

struct jvm_nmethod {
	const struct jvm_vm *vm;
	struct jvm_methods *methods;
	const struct jvm_method *root;
	uint64_t address;
	uint32_t compile_id;
	uint64_t code;		 /* address of the machine code */
	uint32_t frame_complete; /* bytes of machine code before the frame is complete */
	uint32_t stubs;		 /* bytes of machine code before its stubs */
	uint32_t entry_bci;
	struct jvm_scopes scopes;
	struct metadata {
		uint64_t address; /* Method * among others */
		const struct jvm_method *method;
		bool is_resolved; /* `method` has been looked up */
	} * metadata;
	size_t n_metadata;
	size_t charged; /* bytes charged to the methods' allowance */
};

/* A copy of an nmethod, with the block header before it. */
struct image {
	const struct jvm_vm *vm;
	uint64_t address; /* address of the nmethod */
	uint64_t bytes_before, size;
	uint8_t bytes[NMETHOD_BYTES];
	bool lacks; /* a requested field is unknown, or not in the copy */
};

struct part {
	uint64_t start, end;
};

/* --- its fields --- */

static int image__read(struct image *image)
{
	uint64_t used;
	int rc = jvm_vm__size(image->vm, "nmethod", &image->size);

	image->bytes_before = jvm_vm__rec(image->vm)->offsets.heap_block;
	if (!rc)
		rc = jvm_vm__field(image->vm, "HeapBlock::Header", "_used", &used);
	if (rc)
		return rc;
	image->size += image->bytes_before;
	if (image->size > sizeof(image->bytes) || used >= image->bytes_before)
		return -EBADMSG;
	rc = jvm_vm__read(image->vm, image->address - image->bytes_before, image->bytes,
			  image->size);
	if (rc)
		return rc;
	return image->bytes[used] ? 0 : -ENOENT; /* the nmethod has been freed */
}

static uint64_t image__load(const struct image *image, uint64_t offset, size_t size)
{
	uint64_t value = 0;

	offset += image->bytes_before;
	if (offset <= image->size && size <= image->size - offset)
		memcpy(&value, image->bytes + offset, size);
	return value;
}

/* Returns the value of a field: a pointer, or a non-negative number of any size. */
static uint64_t image__field(struct image *image, const char *type, const char *field)
{
	uint64_t offset, size;

	if (jvm_vm__field(image->vm, type, field, &offset)) {
		image->lacks = true;
		return 0;
	}
	if (jvm_vm__field_size(image->vm, type, field, &size) || size > 8)
		size = 8;
	return image__load(image, offset, size);
}

static bool image__has(const struct image *image, const char *type, const char *field)
{
	uint64_t offset;

	return jvm_vm__field(image->vm, type, field, &offset) == 0;
}

/* Finds the parts until JDK 22, where all of them follow the machine code. JDK 9 to 22 have the
 * address of one part. */
static void find_parts_after(struct image *image, struct part *pcs, struct part *data,
			     struct part *metadata)
{
	if (image__has(image, "CompiledMethod", "_scopes_data_begin"))
		data->start = image__field(image, "CompiledMethod", "_scopes_data_begin");
	else
		data->start =
			image->address + image__field(image, "nmethod", "_scopes_data_offset");
	pcs->start = image->address + image__field(image, "nmethod", "_scopes_pcs_offset");
	pcs->end = image->address + image__field(image, "nmethod", "_dependencies_offset");
	data->end = pcs->start;
	metadata->start = image->address + image__field(image, "nmethod", "_metadata_offset");
	metadata->end = data->start;
}

/* Finds the parts from JDK 23 on. JDK 23 moved immutable data out of the code cache, and JDK 25
 * moved the rest. */
static void find_parts_apart(struct image *image, struct part *pcs, struct part *data,
			     struct part *metadata)
{
	uint64_t fixed = image__field(image, "nmethod", "_immutable_data");

	pcs->start = fixed + image__field(image, "nmethod", "_scopes_pcs_offset");
	data->start = fixed + image__field(image, "nmethod", "_scopes_data_offset");
	pcs->end = data->start;
	data->end = fixed + image__field(image, "nmethod", "_immutable_data_size");
	if (image__has(image, "CodeBlob", "_mutable_data")) {
		uint64_t changing = image__field(image, "CodeBlob", "_mutable_data");

		metadata->start = changing + image__field(image, "CodeBlob", "_relocation_size");
		metadata->end = changing + image__field(image, "CodeBlob", "_mutable_data_size");
	} else {
		metadata->start = image->address + image__field(image, "CodeBlob", "_data_offset") +
				  image__field(image, "nmethod", "_metadata_offset");
		metadata->end = image->address + image__field(image, "CodeBlob", "_size");
	}
}

/* --- its parts --- */

static int part__copy(const struct jvm_vm *vm, const struct part *part, uint8_t **ret,
		      size_t *ret_size)
{
	uint64_t size = part->end - part->start;
	uint8_t *bytes;
	int rc;

	if (part->end < part->start || size > PART_BYTES_MAX)
		return -EBADMSG;
	*ret = NULL;
	*ret_size = size;
	if (!size)
		return 0;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	rc = jvm_vm__read(vm, part->start, bytes, size);
	if (rc)
		free(bytes);
	else
		*ret = bytes;
	return rc;
}

static int copy_pcs(struct jvm_nmethod *nmethod, const struct part *part)
{
	struct jvm_scopes *scopes = &nmethod->scopes;
	uint64_t each, offset_at, scope_at;
	uint8_t *bytes;
	size_t size, n;
	int rc;

	if (jvm_vm__size(nmethod->vm, "PcDesc", &each) ||
	    jvm_vm__field(nmethod->vm, "PcDesc", "_pc_offset", &offset_at) ||
	    jvm_vm__field(nmethod->vm, "PcDesc", "_scope_decode_offset", &scope_at) ||
	    each > PC_DESC_BYTES || !fits_in(offset_at, 4, each) || !fits_in(scope_at, 4, each))
		return -EBADMSG;
	rc = part__copy(nmethod->vm, part, &bytes, &size);
	if (rc)
		return rc;
	n = size / each;
	scopes->pcs = calloc(n ? n : 1, sizeof(*scopes->pcs));
	for (size_t i = 0; scopes->pcs && i < n; i++) {
		memcpy(&scopes->pcs[i].offset, bytes + i * each + offset_at, 4);
		memcpy(&scopes->pcs[i].scope, bytes + i * each + scope_at, 4);
	}
	scopes->n_pcs = n;
	free(bytes);
	return scopes->pcs ? 0 : -ENOMEM;
}

static int copy_metadata(struct jvm_nmethod *nmethod, const struct part *part)
{
	uint8_t *bytes;
	size_t size, n;
	int rc = part__copy(nmethod->vm, part, &bytes, &size);

	if (rc)
		return rc;
	n = size / sizeof(uint64_t);
	nmethod->metadata = calloc(n ? n : 1, sizeof(*nmethod->metadata));
	for (size_t i = 0; nmethod->metadata && i < n; i++)
		memcpy(&nmethod->metadata[i].address, bytes + i * sizeof(uint64_t),
		       sizeof(uint64_t));
	nmethod->n_metadata = n;
	free(bytes);
	return nmethod->metadata ? 0 : -ENOMEM;
}

static int nmethod__copy(struct jvm_nmethod *nmethod, struct image *image)
{
	struct part pcs, data, metadata;
	int rc;

	if (image__has(image, "nmethod", "_immutable_data"))
		find_parts_apart(image, &pcs, &data, &metadata);
	else
		find_parts_after(image, &pcs, &data, &metadata);
	nmethod->entry_bci = image__field(image, "nmethod", "_entry_bci");
	if (image->lacks)
		return -EBADMSG;
	if (nmethod->entry_bci == (uint32_t)INVOCATION_BCI)
		nmethod->entry_bci = 0;
	rc = copy_pcs(nmethod, &pcs);
	if (!rc)
		rc = part__copy(nmethod->vm, &data, &nmethod->scopes.data, &nmethod->scopes.size);
	if (!rc)
		rc = copy_metadata(nmethod, &metadata);
	return rc;
}

static uint32_t frame_complete(const struct image *image)
{
	const struct jvm_offsets *offsets = &jvm_vm__rec(image->vm)->offsets;
	int32_t value;

	if (offsets->frame_complete_is_i16)
		value = (int16_t)image__load(image, offsets->blob_frame_complete, 2);
	else
		value = (int32_t)image__load(image, offsets->blob_frame_complete, 4);
	return max_of(value, 0);
}

/* Returns the offset of the machine code in the nmethod. */
static uint64_t code_begin(const struct image *image)
{
	const struct jvm_offsets *offsets = &jvm_vm__rec(image->vm)->offsets;

	if (offsets->code_is_offset)
		return image__load(image, offsets->blob_code, offsets->code_is_offset);
	return image__load(image, offsets->blob_code, 8) - image->address;
}

/* Returns the offset of the stubs in the machine code; UINT32_MAX: no stubs. These are exception
 * handlers and similar code without a place in the source. */
static uint32_t stubs_begin(struct image *image)
{
	uint64_t code = code_begin(image), stubs = image__field(image, "nmethod", "_stub_offset");

	return stubs > code ? stubs - code : UINT32_MAX;
}

static void drop_parts(struct jvm_nmethod *nmethod)
{
	free(nmethod->scopes.pcs);
	free(nmethod->scopes.data);
	free(nmethod->metadata);
	nmethod->scopes.pcs = NULL;
	nmethod->scopes.data = NULL;
	nmethod->metadata = NULL;
	nmethod->scopes.n_pcs = nmethod->scopes.size = nmethod->n_metadata = 0;
}

/* Charges the parts to the allowance, or drops them. Without its parts, machine code resolves to
 * its method, at no line. */
static void keep(struct jvm_nmethod *nmethod)
{
	size_t bytes = nmethod->scopes.n_pcs * sizeof(*nmethod->scopes.pcs) + nmethod->scopes.size +
		       nmethod->n_metadata * sizeof(*nmethod->metadata);

	if (allowance__keep(jvm_methods__allowance(nmethod->methods), bytes))
		nmethod->charged = bytes;
	else
		drop_parts(nmethod);
}

int jvm_nmethod__open(const struct jvm_vm *vm, uint64_t address, uint32_t compile_id,
		      struct jvm_methods *methods, struct jvm_nmethod **ret)
{
	const struct jvm_offsets *offsets = &jvm_vm__rec(vm)->offsets;
	struct image image = { .vm = vm, .address = address };
	struct jvm_nmethod *nmethod;
	uint64_t method;
	int rc = image__read(&image);

	if (rc)
		return rc;
	if (image__load(&image, offsets->nmethod_compile_id, 4) != compile_id)
		return -ENOENT;
	nmethod = calloc(1, sizeof(*nmethod));
	if (!nmethod)
		return -ENOMEM;
	nmethod->vm = vm;
	nmethod->methods = methods;
	nmethod->address = address;
	nmethod->compile_id = compile_id;
	nmethod->scopes.is_without_zero = jvm_vm__major(vm) >= JVM_STREAM_WITHOUT_ZERO;
	nmethod->frame_complete = frame_complete(&image);
	nmethod->stubs = stubs_begin(&image);
	nmethod->code = address + code_begin(&image);
	method = image__load(&image, offsets->nmethod_method, 8);
	nmethod->root = jvm_methods__get(methods, method);
	rc = nmethod->root ? nmethod__copy(nmethod, &image) : -EBADMSG;
	/* The nmethod may have been freed in between, and its memory reused for another one. */
	if (!rc)
		rc = image__read(&image);
	if (!rc && (image__load(&image, offsets->nmethod_compile_id, 4) != compile_id ||
		    image__load(&image, offsets->nmethod_method, 8) != method))
		rc = -ENOENT;
	if (rc) {
		jvm_nmethod__free(nmethod);
		return rc;
	}
	keep(nmethod);
	*ret = nmethod;
	return 0;
}

void jvm_nmethod__free(struct jvm_nmethod *nmethod)
{
	if (!nmethod)
		return;
	allowance__drop(jvm_methods__allowance(nmethod->methods), nmethod->charged);
	drop_parts(nmethod);
	free(nmethod);
}

/* --- queries --- */

const struct jvm_method *jvm_nmethod__method(const struct jvm_nmethod *nmethod)
{
	return nmethod->root;
}

static const struct jvm_method *method_at(struct jvm_nmethod *nmethod, uint32_t index)
{
	struct metadata *metadata;

	if (!index || index > nmethod->n_metadata)
		return NULL;
	metadata = &nmethod->metadata[index - 1];
	if (!metadata->is_resolved) {
		metadata->method = jvm_methods__get(nmethod->methods, metadata->address);
		metadata->is_resolved = true;
	}
	return metadata->method;
}

/* Returns true if the nmethod has not been freed, nor its memory reused for another one. */
static bool nmethod__is_there(const struct jvm_nmethod *nmethod)
{
	const struct jvm_offsets *offsets = &jvm_vm__rec(nmethod->vm)->offsets;
	struct image image = { .vm = nmethod->vm, .address = nmethod->address };

	return !image__read(&image) &&
	       image__load(&image, offsets->nmethod_compile_id, 4) == nmethod->compile_id;
}

/* Returns true if the places around the instruction at @pc_offset prove its methods. */
static bool places_prove(const struct jvm_nmethod *nmethod, uint32_t pc_offset)
{
	uint8_t code[PLACES_BYTES_MAX + INSTRUCTION_BYTES_MAX];
	uint32_t start, end;

	return jvm_scopes__agree(&nmethod->scopes, pc_offset, &start, &end) &&
	       end - start <= PLACES_BYTES_MAX &&
	       !jvm_vm__read(nmethod->vm, nmethod->code + start, code,
			     end - start + INSTRUCTION_BYTES_MAX) &&
	       nmethod__is_there(nmethod) &&
	       jvm_scopes__prove(code, pc_offset - start, end - start);
}

bool jvm_nmethod__infers_inlined(const struct jvm_nmethod *nmethod, uint32_t pc_offset, int exact,
				 bool dense)
{
	return exact ? !dense || !places_prove(nmethod, pc_offset)
		     : !jvm_scopes__describe(&nmethod->scopes, pc_offset);
}

size_t jvm_nmethod__scopes(struct jvm_nmethod *nmethod, uint32_t pc_offset, int exact,
			   struct jvm_scope ret[JVM_SCOPES_MAX])
{
	const struct jvm_scope root = { .method = nmethod->root, .bci = JVM_NO_BCI };
	struct jvm_scope_place place = {};
	uint32_t scope;
	size_t n = 0;

	ret[0] = root;
	if (!nmethod->scopes.n_pcs)
		return 1; /* the wrapper of a native method */
	if (pc_offset > nmethod->stubs)
		return 1;
	if (exact && pc_offset < nmethod->frame_complete) {
		ret[0].bci = nmethod->entry_bci;
		return 1;
	}
	scope = jvm_scopes__at(&nmethod->scopes, pc_offset, exact);
	for (; scope; scope = place.caller) {
		if (jvm_scopes__read(&nmethod->scopes, scope, &place)) {
			ret[0] = root;
			return 1;
		}
		if (n == JVM_SCOPES_MAX)
			n--;
		ret[n].method = method_at(nmethod, place.method);
		ret[n].bci = place.bci;
		n++;
	}
	return max_of(n, (size_t)1);
}
