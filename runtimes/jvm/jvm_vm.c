// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/jvm/jvm_vm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/target/procfs.h"
#include "runtimes/jvm/jvm_blobs.h"
#include "runtimes/jvm/jvm_interpreter.h"
#include "runtimes/jvm/jvm_stubs.h"
#include "runtimes/jvm/jvm_tables.h"

#define VERSION_BYTES	 64
#define SEGMENT_LOG2_MAX 16	      /* 7 by default: CodeCacheSegmentSize */
#define HEAP_BYTES_MAX	 (1ULL << 32) /* ReservedCodeCacheSize is 2 GiB at most */
#define NAME_BLOCKS_MAX	 256	      /* limit for one heap; searched for an nmethod */
#define BLOB_LIMIT	 (JVM_SMALL_BLOB_BYTES - 8)
#define NMETHOD_LIMIT	 (JVM_BLOB_BYTES - 8)
#define TEXT_BLOCK_BYTES 64 /* divides a page */
#define OWNER_IS_ID	 24 /* the first JDK in which a monitor's owner is not an address */
#define HOTSPOT_OF_JDK_8 25 /* the major version that its HotSpot gives itself */

struct jvm_vm {
	uint32_t pid;
	struct jvm_tables *tables;
	struct jvm_proc_rec rec;
	char version[VERSION_BYTES];
	uint32_t major;
	struct jvm_stubs *stubs;
};

/* --- look-ups --- */

uint32_t jvm_vm__pid(const struct jvm_vm *vm)
{
	return vm->pid;
}

const struct jvm_proc_rec *jvm_vm__rec(const struct jvm_vm *vm)
{
	return &vm->rec;
}

const char *jvm_vm__version(const struct jvm_vm *vm)
{
	return vm->version;
}

uint32_t jvm_vm__major(const struct jvm_vm *vm)
{
	return vm->major;
}

static int find_field(const struct jvm_vm *vm, const char *type, const char *name, bool is_static,
		      uint64_t *ret)
{
	const struct jvm_field *field = jvm_tables__field(vm->tables, type, name);

	if (!field || field->is_static != is_static)
		return -ENOENT;
	*ret = field->at;
	return 0;
}

int jvm_vm__field(const struct jvm_vm *vm, const char *type, const char *field,
		  uint64_t *ret_offset)
{
	return find_field(vm, type, field, false, ret_offset);
}

int jvm_vm__static(const struct jvm_vm *vm, const char *type, const char *field,
		   uint64_t *ret_address)
{
	return find_field(vm, type, field, true, ret_address);
}

const char *jvm_vm__field_kind(const struct jvm_vm *vm, const char *type, const char *field)
{
	const struct jvm_field *found = jvm_tables__field(vm->tables, type, field);

	return found ? found->kind : NULL;
}

int jvm_vm__field_size(const struct jvm_vm *vm, const char *type, const char *field,
		       uint64_t *ret_size)
{
	const char *kind = jvm_vm__field_kind(vm, type, field);

	return kind ? jvm_tables__size(vm->tables, kind, ret_size) : -ENOENT;
}

int jvm_vm__size(const struct jvm_vm *vm, const char *type, uint64_t *ret_size)
{
	return jvm_tables__size(vm->tables, type, ret_size);
}

int jvm_vm__constant(const struct jvm_vm *vm, const char *name, int64_t *ret)
{
	return jvm_tables__constant(vm->tables, name, ret);
}

int jvm_vm__read(const struct jvm_vm *vm, uint64_t address, void *buf, size_t size)
{
	errno = EFAULT;
	if (procfs__read_memory(vm->pid, address, buf, size))
		return 0;
	return errno == ESRCH ? -ESRCH : -EFAULT;
}

void jvm_vm__text(const struct jvm_vm *vm, uint64_t address, char *buf, size_t size)
{
	size_t done = 0, part;

	while (done < size - 1 && address) {
		/* The next page may be unreadable. */
		part = min_of(size - 1 - done,
			      TEXT_BLOCK_BYTES - (address + done) % TEXT_BLOCK_BYTES);
		if (jvm_vm__read(vm, address + done, buf + done, part)) {
			done = 0;
			break;
		}
		if (memchr(buf + done, 0, part))
			return;
		done += part;
	}
	buf[done] = 0;
}

const char *jvm_vm__stub(const struct jvm_vm *vm, uint64_t pc)
{
	return jvm_stubs__find(vm->stubs, vm, pc);
}

/* --- record for the kernel half --- */

struct filler {
	struct jvm_vm *vm;
	const struct elf_file *file;
	struct err *err;
};

static int filler__lacks(struct filler *filler, const char *type, const char *field)
{
	return err__set(filler->err, -ENOTSUP, "%s does not describe %s%s%s", filler->file->path,
			type, field ? "::" : "", field ? field : "");
}

static int filler__field(struct filler *filler, const char *type, const char *field, uint64_t *ret)
{
	return jvm_vm__field(filler->vm, type, field, ret) ? filler__lacks(filler, type, field) : 0;
}

/* Reads an integer or address of at most 8 bytes from the object at `object`. */
static int filler__load(struct filler *filler, uint64_t object, const char *type, const char *field,
			uint64_t *ret)
{
	uint64_t offset, size;
	int rc = filler__field(filler, type, field, &offset);

	if (rc)
		return rc;
	if (jvm_vm__field_size(filler->vm, type, field, &size))
		size = 8; /* a pointer */
	*ret = 0;
	return size > 8 ? -EBADMSG : jvm_vm__read(filler->vm, object + offset, ret, size);
}

static int filler__static(struct filler *filler, const char *type, const char *field, uint64_t *ret)
{
	uint64_t address;

	if (jvm_vm__static(filler->vm, type, field, &address))
		return filler__lacks(filler, type, field);
	return jvm_vm__read(filler->vm, address, ret, sizeof(*ret));
}

static int fill_offsets(struct filler *filler)
{
	struct jvm_offsets *offsets = &filler->vm->rec.offsets;
	const struct {
		const char *type, *field;
		uint16_t *to;
		size_t limit;
	} fields[] = {
		{ "CodeBlob", "_name", &offsets->blob_name, BLOB_LIMIT },
		{ "CodeBlob", "_frame_size", &offsets->blob_frame_size, BLOB_LIMIT },
		{ "CodeBlob", "_frame_complete_offset", &offsets->blob_frame_complete, BLOB_LIMIT },
		{ "nmethod", "_compile_id", &offsets->nmethod_compile_id, NMETHOD_LIMIT },
		{ "Method", "_constMethod", &offsets->method_const_method, UINT16_MAX },
		{ "ConstMethod", "_code_size", &offsets->const_method_code_size, UINT16_MAX },
	};
	const struct {
		const char *type;
		uint16_t *to;
	} sizes[] = {
		{ "HeapBlock", &offsets->heap_block },
		{ "ConstMethod", &offsets->const_method_bytes },
	};
	uint64_t value;
	int rc;

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		rc = filler__field(filler, fields[i].type, fields[i].field, &value);
		if (rc)
			return rc;
		if (value > fields[i].limit)
			return err__set(filler->err, -ENOTSUP,
					"%s: the offset of %s::%s is too large", filler->file->path,
					fields[i].type, fields[i].field);
		*fields[i].to = value;
	}
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		if (jvm_vm__size(filler->vm, sizes[i].type, &value))
			return filler__lacks(filler, sizes[i].type, NULL);
		if (value > UINT16_MAX)
			return -EBADMSG;
		*sizes[i].to = value;
	}
	return 0;
}

/* Fills in the offsets of fields that changed their kind or class. JDK 23 replaced addresses by
 * offsets, and merged CompiledMethod into nmethod. */
static int fill_changed_offsets(struct filler *filler)
{
	struct jvm_offsets *offsets = &filler->vm->rec.offsets;
	struct jvm_vm *vm = filler->vm;
	uint64_t method, code, size;
	int rc;

	if (jvm_vm__field_size(vm, "CodeBlob", "_frame_complete_offset", &size))
		return filler__lacks(filler, "the size of CodeBlob", "_frame_complete_offset");
	offsets->frame_complete_is_i16 = size == 2;
	if (jvm_vm__field(vm, "CompiledMethod", "_method", &method)) {
		rc = filler__field(filler, "nmethod", "_method", &method);
		if (rc)
			return rc;
	}
	size = 0;
	if (jvm_vm__field(vm, "CodeBlob", "_code_begin", &code)) {
		rc = filler__field(filler, "CodeBlob", "_code_offset", &code);
		if (rc)
			return rc;
		if (jvm_vm__field_size(vm, "CodeBlob", "_code_offset", &size))
			return filler__lacks(filler, "the size of CodeBlob", "_code_offset");
		if (size != 2 && size != 4)
			return -EBADMSG;
	}
	if (method > NMETHOD_LIMIT || code > BLOB_LIMIT)
		return -EBADMSG;
	offsets->nmethod_method = method;
	offsets->blob_code = code;
	offsets->code_is_offset = size;
	return 0;
}

static int fill_heap(struct filler *filler, uint64_t heap, struct jvm_heap *ret)
{
	uint64_t memory, segmap, log2_size;
	int rc = filler__field(filler, "CodeHeap", "_memory", &memory);

	if (!rc)
		rc = filler__field(filler, "CodeHeap", "_segmap", &segmap);
	if (!rc)
		rc = filler__load(filler, heap, "CodeHeap", "_log2_segment_size", &log2_size);
	if (!rc)
		rc = filler__load(filler, heap + memory, "VirtualSpace", "_low_boundary",
				  (uint64_t *)&ret->low);
	if (!rc)
		rc = filler__load(filler, heap + memory, "VirtualSpace", "_high_boundary",
				  (uint64_t *)&ret->high);
	if (!rc)
		rc = filler__load(filler, heap + segmap, "VirtualSpace", "_low_boundary",
				  (uint64_t *)&ret->segmap);
	if (rc)
		return rc;
	if (!ret->low)
		return -EAGAIN;
	if (ret->high <= ret->low || ret->high - ret->low > HEAP_BYTES_MAX || !ret->segmap ||
	    log2_size > SEGMENT_LOG2_MAX || log2_size < 3)
		return -EBADMSG;
	ret->segment_log2 = log2_size;
	return 0;
}

/* Fills in the only heap of JDK 8. Returns -ENOENT for other versions. */
static int fill_only_heap(struct filler *filler)
{
	struct jvm_proc_rec *rec = &filler->vm->rec;
	uint64_t at, heap;
	int rc;

	if (jvm_vm__static(filler->vm, "CodeCache", "_heap", &at))
		return -ENOENT;
	rc = jvm_vm__read(filler->vm, at, &heap, sizeof(heap));
	if (rc || !heap)
		return rc ? rc : -EAGAIN;
	rec->n_heaps = 1;
	return fill_heap(filler, heap, &rec->heaps[0]);
}

static int fill_heaps(struct filler *filler)
{
	uint64_t array, n, data, heaps[JVM_HEAPS_MAX];
	struct jvm_proc_rec *rec = &filler->vm->rec;
	const char *base = "GrowableArrayBase";
	uint64_t unused;
	int rc = fill_only_heap(filler);

	if (rc != -ENOENT)
		return rc;
	rc = filler__static(filler, "CodeCache", "_heaps", &array);
	if (rc)
		return rc;
	if (jvm_vm__field(filler->vm, base, "_len", &unused))
		base = "GenericGrowableArray"; /* until JDK 15 */
	if (!array)
		return -EAGAIN;
	rc = filler__load(filler, array, base, "_len", &n);
	if (!rc)
		rc = filler__load(filler, array, "GrowableArray<int>", "_data", &data);
	if (rc)
		return rc;
	if (!n || !data)
		return -EAGAIN;
	if (n > JVM_HEAPS_MAX)
		return err__set(filler->err, -ENOTSUP, "a code cache of %llu segments",
				(unsigned long long)n);
	rc = jvm_vm__read(filler->vm, data, heaps, n * sizeof(*heaps));
	for (size_t i = 0; !rc && i < n; i++)
		rc = fill_heap(filler, heaps[i], &rec->heaps[i]);
	rec->n_heaps = n;
	return rc;
}

static int fill_interpreter(struct filler *filler)
{
	struct jvm_proc_rec *rec = &filler->vm->rec;
	uint64_t code, start, size;
	int rc = filler__static(filler, "AbstractInterpreter", "_code", &code);

	if (rc)
		return rc;
	if (!code)
		return -EAGAIN;
	rc = filler__load(filler, code, "StubQueue", "_stub_buffer", &start);
	if (!rc)
		rc = filler__load(filler, code, "StubQueue", "_buffer_limit", &size);
	if (rc)
		return rc;
	if (!start || !size)
		return -EAGAIN;
	for (size_t i = 0; i < rec->n_heaps; i++) {
		const struct jvm_heap *heap = &rec->heaps[i];

		if (start < heap->low || start >= heap->high)
			continue;
		if (size > heap->high - start)
			break;
		rec->interpreter_start = start;
		rec->interpreter_end = start + size;
		return 0;
	}
	return -EBADMSG;
}

/* Without the call stub, the frames around those of a virtual thread are not found. */
static void fill_call_stub(struct jvm_vm *vm)
{
	uint64_t at;

	if (jvm_vm__static(vm, "StubRoutines", "_call_stub_return_address", &at) ||
	    jvm_vm__read(vm, at, &vm->rec.call_stub_return, sizeof(vm->rec.call_stub_return)))
		vm->rec.call_stub_return = 0;
}

/* Without this offset, a blob that throws may be assumed to have a frame while it has none. */
static void fill_exceptions(struct jvm_vm *vm)
{
	uint64_t at;

	if (!jvm_vm__field(vm, "JavaThread", "_exception_pc", &at) && at <= UINT16_MAX)
		vm->rec.exception_pc = at;
}

/* Without these offsets, monitors that threads wait for are not reported. From JDK 24 on, _owner
 * is the id of a Java thread. */
static void fill_monitors(struct jvm_vm *vm)
{
	struct jvm_monitor_offsets *ret = &vm->rec.monitors;
	const char *thread = "JavaThread";
	const struct jvm_field *owner = jvm_tables__field(vm->tables, "ObjectMonitor", "_owner");
	uint64_t pending, osthread, thread_id;

	if (jvm_vm__field(vm, thread, "_current_pending_monitor", &pending))
		thread = "Thread"; /* until JDK 16 */
	if (jvm_vm__field(vm, thread, "_current_pending_monitor", &pending) || pending > UINT16_MAX)
		return;
	ret->pending_monitor = pending;
	if (jvm_vm__field(vm, "JavaThread", "_osthread", &osthread) &&
	    jvm_vm__field(vm, "Thread", "_osthread", &osthread))
		return;
	if (!owner || owner->is_static || vm->major >= OWNER_IS_ID ||
	    jvm_vm__field(vm, "OSThread", "_thread_id", &thread_id) || owner->at > UINT16_MAX ||
	    osthread > UINT16_MAX || thread_id > UINT16_MAX)
		return;
	ret->owner = owner->at;
	ret->osthread = osthread;
	ret->thread_id = thread_id;
	ret->with_owner = 1;
}

static int see_name(const struct jvm_blob *blob, void *arg)
{
	struct jvm_proc_rec *rec = arg;

	if (strcmp(blob->name, "nmethod") == 0)
		rec->nmethod_name = blob->name_address;
	else if (strcmp(blob->name, "native nmethod") == 0)
		rec->native_nmethod_name = blob->name_address;
	return rec->nmethod_name && rec->native_nmethod_name;
}

/* Until JDK 8, HotSpot had its own version; the one of JDK 8 is 25. */
static int fill_major(struct filler *filler)
{
	struct jvm_vm *vm = filler->vm;
	uint64_t unused;

	if (jvm_vm__static(vm, "CodeCache", "_heap", &unused))
		return 0;
	if (vm->major != HOTSPOT_OF_JDK_8)
		return err__set(filler->err, -ENOTSUP, "HotSpot %u is not supported (JDK 8 has 25)",
				vm->major);
	vm->major = 8;
	return 0;
}

/* "17.0.15+6-Debian-1deb12u1" -> "17.0.15+6" */
static int fill_version(struct filler *filler)
{
	static const char TYPE[] = "Abstract_VM_Version";
	struct jvm_vm *vm = filler->vm;
	uint64_t major, text;
	char *end;
	int rc;

	if (jvm_vm__static(vm, TYPE, "_vm_major_version", &major))
		return filler__lacks(filler, TYPE, "_vm_major_version");
	rc = jvm_vm__read(vm, major, &vm->major, sizeof(vm->major));
	if (rc || filler__static(filler, TYPE, "_s_vm_release", &text))
		return rc;
	jvm_vm__text(vm, text, vm->version, sizeof(vm->version));
	end = strchr(vm->version, '+');
	if (end)
		end[1 + strspn(end + 1, "0123456789")] = 0;
	return fill_major(filler);
}

/* Fills in the layout of interpreted frames. Called after fill_version(), since the version
 * decides if no machine code is readable. */
static int fill_interpreted_frames(struct filler *filler)
{
	int rc = jvm_interpreter__find(filler->vm, &filler->vm->rec.bcp_words);

	return rc == -ENOTSUP
		       ? err__set(filler->err, rc,
				  "the interpreter of JDK %u makes frames of an unknown layout",
				  filler->vm->major)
		       : rc;
}

#define QUEUE_REST_MAX 256 /* bytes after the interpreter's last piece, by alignment */

/* Returns true if the interpreter is complete. The first Java thread is published before, from JDK
 * 21 on, but runs no Java code until then (Threads::create_vm). HotSpot generates the interpreter
 * in a larger buffer, and frees the rest of the buffer at the end
 * (StubQueue::deallocate_unused_tail). */
static bool is_generated(struct filler *filler)
{
	const struct jvm_proc_rec *rec = &filler->vm->rec;
	uint64_t code, end;

	return !filler__static(filler, "AbstractInterpreter", "_code", &code) && code &&
	       !filler__load(filler, code, "StubQueue", "_queue_end", &end) && end &&
	       rec->interpreter_end - rec->interpreter_start - end <= QUEUE_REST_MAX;
}

/* Reads the number of Java threads. */
static int count_threads(struct filler *filler, int32_t *ret)
{
	static const char TYPE[] = "Threads", FIELD[] = "_number_of_threads";
	uint64_t address;

	if (jvm_vm__static(filler->vm, TYPE, FIELD, &address))
		return filler__lacks(filler, TYPE, FIELD);
	return jvm_vm__read(filler->vm, address, ret, sizeof(*ret));
}

static int fill_rec(struct filler *filler)
{
	struct jvm_vm *vm = filler->vm;
	int32_t n;
	int rc = count_threads(filler, &n);

	if (rc || n < 1)
		return rc ? rc : -EAGAIN;
	rc = fill_heaps(filler);
	if (!rc)
		rc = fill_interpreter(filler);
	if (!rc && n == 1 && !is_generated(filler))
		rc = -EAGAIN;
	if (!rc)
		rc = fill_offsets(filler);
	if (!rc)
		rc = fill_changed_offsets(filler);
	if (!rc)
		rc = fill_version(filler);
	if (!rc)
		rc = fill_interpreted_frames(filler);
	if (rc)
		return rc;
	fill_call_stub(vm);
	fill_exceptions(vm);
	fill_monitors(vm);
	/* There may be no nmethod yet; the kernel half then reads the text of the names. */
	for (size_t i = 0; i < vm->rec.n_heaps; i++)
		jvm_blobs__each(vm, i, NAME_BLOCKS_MAX, see_name, &vm->rec);
	return 0;
}

int jvm_vm__open(uint32_t pid, uint64_t bias, const struct elf_file *file, struct jvm_vm **ret,
		 struct err *err)
{
	struct jvm_vm *vm = calloc(1, sizeof(*vm));
	struct filler filler = { .vm = vm, .file = file, .err = err };
	int rc;

	if (!vm)
		return -ENOMEM;
	vm->pid = pid;
	rc = jvm_tables__read(pid, bias, file, &vm->tables, err);
	if (rc)
		goto out;
	rc = fill_rec(&filler);
	if (!rc)
		rc = jvm_stubs__new(file, bias, vm->tables, &vm->stubs);
	if (rc == -EBADMSG || rc == -EFAULT)
		err__set(err, rc, "process %u: the code cache of its JVM is malformed", pid);
out:
	if (rc)
		jvm_vm__free(vm);
	else
		*ret = vm;
	return rc;
}

void jvm_vm__free(struct jvm_vm *vm)
{
	if (!vm)
		return;
	jvm_stubs__free(vm->stubs);
	jvm_tables__free(vm->tables);
	free(vm);
}
