// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>

#include "core/base/util.h"
#include "core/elf/elf_file.h"
#include "runtimes/python/python_tables.h"
#include "tests/tap.h"
#include "tests/unit/pythons.h"
#include "tests/unit/workdir.h"

/* A module written in C, and data that differs from its tables in one field. */
static const char source[] =
	"typedef void *P; typedef long L;\n"
	"extern P PyModuleDef_Init(P), PyType_Type, imported(void);\n"
	"#define F(n) static __attribute__((noipa)) P n(P x) { return (P)((L)x + __LINE__); }\n"
	"F(f_plain)\nF(f_both)\nF(f_old)\nF(f_get)\nF(f_set)\nF(f_exec)\nF(f_free)\nF(f_slot)\n"
	"F(f_new)\nF(f_wrong)\nF(f_many)\nF(f_repr)\nF(f_len)\nF(f_static)\nF(f_send)\n"
	"struct m { const char *n; P f; int g; const char *d; };\n"
	"struct gs { const char *n; P g, s; const char *d; P c; };\n"
	"struct sl { int i; P v; };\n"
	"struct sp { const char *n; int b, i; unsigned f; struct sl *s; };\n"
	"struct md { L r; P t, i, x, c; const char *n, *d; L s; P m, l, tr, cl, fr; };\n"
	"struct ty { L r; P t; L s; const char *n; L bs, is; P dealloc; L vo; P ga, sa, as, repr,"
	" num, seq, map, hash, call, str, gao, sao, buf; L fl; const char *doc; P tr, cl, rc; L wo;"
	" P it, ne, met, mem, gs, base, dict, dg, ds; L dof; P in, al, ne2, fr, gc, ba, mro, ca,"
	" su, we, del; L ver; P fin, vec; };\n"
	"static struct m methods[] = { { \"plain\", f_plain, 8, \"doc\" },\n"
	"	{ \"both\", f_both, 0x282, 0 }, { \"many1\", f_many, 1, 0 },\n"
	"	{ \"theirs\", imported, 4, 0 }, { 0 } };\n"
	"static struct m of_type[] = { { \"both\", f_both, 0x11, 0 }, { \"many2\", f_many, 1, 0 "
	"},\n"
	"	{ \"many3\", f_many, 1, 0 }, { \"many4\", f_many, 1, 0 }, { 0 } };\n"
	"static struct gs getset[] = { { \"attr\", f_get, f_set, 0, 0 }, { 0 } };\n"
	"static struct sl slots[] = { { 65, f_new }, { 64, of_type }, { 73, getset },\n"
	"	{ 7, f_slot }, { 56, \"doc\" }, { 0 } };\n"
	"struct sp spec = { \"made.Up\", 32, 0, 1 << 10, slots };\n"
	"static struct sl module_slots[] = { { 2, f_exec }, { 3, (P)1 }, { 0 } };\n"
	"struct md module = { .r = 1, .n = \"made\", .d = \"doc\", .m = methods,\n"
	"	.l = module_slots, .fr = f_free };\n"
	"static P sequence[10] = { f_len }, members[5], none[4];\n"
	"struct ty type = { .r = 1, .t = &PyType_Type, .n = \"made.Static\", .bs = 16,\n"
	"	.dealloc = f_static, .repr = f_repr, .seq = sequence, .fl = 1, .mem = members, "
	".met = none };\n"
	/* PyGetSetDef has no flags. One bad entry, or a missing end, makes all entries invalid. */
	"static struct m old[] = { { \"old\", f_old, 0, 0 }, { 0 } };\n"
	"static struct m broken[] = { { \"good\", f_wrong, 1, 0 }, { \"bad name\", f_wrong, 1, 0 "
	"},\n"
	"	{ 0 } };\n"
	"static struct m no_code[] = { { \"data\", f_wrong, 1, 0 }, { \"x\", old, 1, 0 }, { 0 } "
	"};\n"
	"struct md wrong[] = { { .r = 1, .n = \"wrong\", .m = old }, { .r = 1, .n = \"wrong\",\n"
	"	.m = broken }, { .r = 1, .n = \"wrong\", .m = no_code },\n"
	"	{ .r = 2, .n = \"wrong\", .fr = f_wrong }, { .r = 1, .n = \"wrong\", .x = &spec,\n"
	"	.fr = f_wrong }, { .r = 1, .n = \"wrong\", .s = -2, .fr = f_wrong } };\n"
	"static struct sl bad_slots[] = { { 65, f_wrong }, { 91, 0 }, { 0 } };\n"
	"static struct sl endless[] = { { 65, f_wrong }, { 0, f_wrong } };\n"
	"struct sp bad[] = { { \"w.A\", 32, 0, 0, bad_slots }, { \"w.B\", 32, 0, 0, endless },\n"
	"	{ \"w.C\", -1, 0, 0, slots } };\n"
	"P PyInit_made(void) { return PyModuleDef_Init(f_send(&module)); }\n";

static struct function_names *read_tables(const char *path, int fd)
{
	struct function_names *names;
	struct elf_file *file;
	struct err err = {};

	if (elf_file__open(fd, path, &file, &err) || function_names__new(&names)) {
		printf("Bail out! %s: %s\n", path, err.text);
		exit(1);
	}
	if (python_tables__read(file, names))
		exit(1);
	elf_file__free(file);
	return names;
}

static void test_synthetic(const char *options)
{
	static const struct {
		const char *function, *want;
	} cases[] = {
		{ "f_plain", "made.plain" },
		{ "f_both", "made.Up.both/made.both" },
		{ "f_get", "made.Up.attr.__get__" },
		{ "f_set", "made.Up.attr.__set__" },
		{ "f_new", "made.Up.__new__" },
		{ "f_slot", "made.Up.nb_add" },
		{ "f_exec", "made.m_exec" },
		{ "f_free", "made.m_free" },
		{ "f_static", "made.Static.tp_dealloc" },
		{ "f_repr", "made.Static.__repr__" },
		{ "f_len", "made.Static.__len__" },
		{ "f_many", NULL },
		{ "f_old", NULL },
		{ "f_wrong", NULL },
		{ "f_send", NULL },
	};
	struct function_names *names;
	char line[256], symbol[64];
	uint64_t vaddr;
	size_t n = 0;
	FILE *pipe;

	workdir__write("made.c", source);
	workdir__run("gcc -shared -fPIC -O1 %s made.c -o made.so && strip -o stripped.so made.so",
		     options);
	names = read_tables("stripped.so", workdir__open("stripped.so"));
	pipe = workdir__pipe("nm made.so");
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%" SCNx64 " t %63s", &vaddr, symbol) != 2)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			const char *got = function_names__find(names, vaddr);
			bool either = cases[i].want && strchr(cases[i].want, '/');

			if (strcmp(symbol, cases[i].function) != 0)
				continue;
			n++;
			if (either && got && !strcmp(got, "made.both/made.Up.both"))
				got = cases[i].want; /* in their order in the file */
			is_str(got, cases[i].want, "made up, %s: %s", options, symbol);
		}
	}
	pclose(pipe);
	is_int(n, ARRAY_SIZE(cases), "all functions");
	function_names__free(names);
}

/* Prints the interpreter's own data: the PyMethodDef of each of its built-in functions and methods.
 */
static const char oracle[] =
	"import ctypes, sys\n"
	"class Def(ctypes.Structure):\n"
	"    _fields_ = [('name', ctypes.c_char_p), ('meth', ctypes.c_void_p)]\n"
	"maps = []\n"
	"def load():\n"
	"    for line in open('/proc/self/maps'):\n"
	"        part = line.split()\n"
	"        if len(part) > 5 and 'x' in part[1]:\n"
	"            a, b = (int(x, 16) for x in part[0].split('-'))\n"
	"            maps.append((a, b, int(part[2], 16), part[5]))\n"
	"def tell(of, name, address):\n"
	"    for a, b, offset, path in maps:\n"
	"        if a <= address < b:\n"
	"            print('%x' % (address - a + offset), of + '.' + name, path)\n"
	"word = lambda at: ctypes.c_void_p.from_address(at).value\n"
	"import time, math, itertools, collections, functools, io, array, _struct, _json, zlib, "
	"select\n"
	"load()\n"
	"function = type(len)\n"
	"for module in list(sys.modules.values()):\n"
	"    for name, value in list(vars(module).items()):\n"
	"        if type(value) is function and value.__self__ is module:\n"
	"            d = Def.from_address(word(id(value) + 16))\n"
	"            tell(module.__name__.lstrip('_'), d.name.decode(), d.meth)\n"
	"        if isinstance(value, type):\n"
	"            for method in vars(value).values():\n"
	"                if type(method) is type(list.append):\n"
	"                    d = Def.from_address(word(id(method) + 40))\n"
	"                    tell(method.__objclass__.__name__, d.name.decode(), d.meth)\n";

/* Returns true if the last two parts of module.Type.method or Type.method equal @want. Some modules
 * in C have their public name in their definitions: io for _io. */
static bool ends_with(const char *text, size_t n, const char *want)
{
	size_t len = strlen(want);

	return n >= len && !memcmp(text + n - len, want, len) &&
	       (n == len || strchr("._", text[n - len - 1]));
}

static bool has_name(const char *text, const char *want)
{
	for (;; text++) {
		size_t n = strcspn(text, "/");

		if (ends_with(text, n, want))
			return true;
		text += n;
		if (!*text)
			return false;
	}
}

/* Compares each result with the symbol of the file at the address, if the address has exactly one
 * name. */
static void test_interpreter(const char *python)
{
	char line[1024], name[256], path[512], last[512] = "";
	struct function_names *names = NULL;
	int n = 0, wrong = 0, missing = 0;
	struct elf_file *file = NULL;
	uint64_t offset, vaddr;
	FILE *pipe;

	workdir__write("oracle.py", oracle);
	pipe = workdir__pipe("'%s' oracle.py | sort -k3,3", python);
	while (fgets(line, sizeof(line), pipe)) {
		const char *got;

		if (sscanf(line, "%" SCNx64 " %255s %511s", &offset, name, path) != 3)
			continue;
		if (strcmp(path, last) != 0) {
			int fd = open(path, O_RDONLY | O_CLOEXEC);

			function_names__free(names);
			elf_file__free(file);
			names = read_tables(path, dup(fd));
			if (elf_file__open(fd, path, &file, NULL))
				exit(1);
			strcpy(last, path);
		}
		if (!elf_file__offset_to_vaddr(file, offset, &vaddr))
			continue;
		n++;
		got = function_names__find(names, vaddr);
		if (!got)
			missing++;
		else if (!has_name(got, name) && wrong++ < 10)
			tap__diag("%s: %" PRIx64 ": got %s, want %s", path, vaddr, got, name);
	}
	pclose(pipe);
	function_names__free(names);
	elf_file__free(file);
	if (!n) {
		tap__skip("it has no ctypes", "%s", python);
		return;
	}
	tap__diag("%s: %d functions and methods, %d without a name in its tables", python, n,
		  missing);
	ok(n > 1000 && !wrong && missing < n / 20, "%s: %d functions and methods, all as it says",
	   python, n);
}

int main(void)
{
	struct pythons pythons;

	workdir__make();
	test_synthetic("");
	test_synthetic("-Wl,-z,pack-relative-relocs");
	pythons__find(&pythons);
	for (size_t i = 0; i < pythons.n; i++)
		test_interpreter(pythons.list[i].command);
	return tap__done();
}
