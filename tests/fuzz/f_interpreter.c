// SPDX-License-Identifier: GPL-2.0-or-later
#include "probes/probe_image.h"
#include "runtimes/python/python_build.h"
#include "runtimes/ruby/ruby_build.h"
#include "tests/fuzz/fuzz.h"

static bool read_python(const struct elf_file *file)
{
	struct runtime_range loops[PYTHON_LOOPS_MAX];
	uint64_t vaddr, runtime = 0, size = 0;
	struct x86_tls tls;
	uint32_t hex = 0;

	python_build__version(file, &hex);
	elf_file__find_symbol(file, "_PyRuntime", &runtime, &size);
	python_build__key(file, runtime, size, runtime, &vaddr);
	python_build__tls(file, &tls);
	return python_build__loops(file, loops) && hex >> 16 == 0x030b;
}

static bool read_ruby(const struct elf_file *file)
{
	struct runtime_range loops[RUBY_LOOPS_MAX];
	struct ruby_number number = {};
	struct ruby_state state;
	uint64_t vaddr;

	if (!ruby_build__is_ruby(file) || ruby_build__version(file, &number) != 0)
		ruby_build__other(file);
	ruby_build__state(file, &number, &state);
	ruby_build__symbols(file, &vaddr);
	return ruby_build__loops(file, loops) && number.major == 3;
}

/* Reads the symbols and the machine code of an ELF file that claims to be an interpreter. */
bool target__run(const uint8_t *data, size_t size)
{
	const struct probe_walker walker = {};
	struct probe_image *image = NULL;
	struct elf_file *file = NULL;
	bool known;

	if (elf_file__open_memory(data, size, "fuzz", &file, NULL) != 0)
		return false;
	known = read_python(file);
	known |= read_ruby(file);
	if (probe_image__new(file, &walker, false, &image, NULL) == 0)
		probe_image__evaluate(image);
	probe_image__free(image);
	return known;
}

void target__seeds(void)
{
	fuzz__seed_elf("-fPIC -shared",
		       "const unsigned long Py_Version = 0x030b02f0;\n"
		       "struct { char pad[64]; int key_is_there; unsigned key; } _PyRuntime;\n"
		       "void *PyThread_tss_get(void *);\n"
		       "void *PyGILState_GetThisThreadState(void)\n"
		       "{ return PyThread_tss_get(&_PyRuntime.key_is_there); }\n"
		       "void *_PyEval_EvalFrameDefault(void *a, int b)\n"
		       "{ return b ? a : PyThread_tss_get(a); }\n");
	fuzz__seed_elf("-fPIC -shared",
		       "const char ruby_version[] = \"3.1.2\", ruby_description[] = \"ruby\";\n"
		       "__thread void *ruby_current_ec;\n"
		       "int ruby_init(void) { return 0; }\n"
		       "void *rb_current_ec(void) { return ruby_current_ec; }\n"
		       "void *rb_vm_exec(void *a, int b) { return b ? a : rb_current_ec(); }\n");
}
