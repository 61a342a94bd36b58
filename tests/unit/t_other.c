// SPDX-License-Identifier: GPL-2.0-or-later
/* Runtimes without a walker: files that are recognized by their contents alone, the sentence about
 * each, and names of their compiled code. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/other/other_label.h"
#include "runtimes/other/other_rows.h"
#include "runtimes/other/other_rules.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

extern const struct runtime runtime_other;

/* Returns the name of the runtime that a library of @source is recognized as; "": not recognized.
 */
static const char *recognize(const char *source, const char *options)
{
	struct elf_file *file;
	enum other_kind kind;
	struct err err = {};
	char path[128];

	workdir__write("lib.c", source);
	workdir__run("cc -shared -fPIC -s %s -o '%s/lib.so' '%s/lib.c'", options, workdir, workdir);
	snprintf(path, sizeof(path), "%s/lib.so", workdir);
	if (elf_file__open(open(path, O_RDONLY | O_CLOEXEC), path, &file, &err))
		return "(cannot be opened)";
	kind = other_rules__find(file);
	is_int(runtime_other.files->detect(file), kind != OTHER_NONE,
	       "%s: detected if there is a row",
	       kind == OTHER_NONE ? "none" : other_rows__get(kind)->name);
	elf_file__free(file);
	return kind == OTHER_NONE ? "" : other_rows__get(kind)->name;
}

static const char *of_symbol(const char *symbol)
{
	char source[128];

	snprintf(source, sizeof(source), "int %s(void) { return 1; }\n", symbol);
	return recognize(source, "");
}

static void test_symbols(void)
{
	static const char *const cases[][2] = {
		{ "Dart_Initialize", "Dart" },
		{ "DotNetRuntimeInfo", ".NET" },
		{ "PyPy_AddPendingCall", "PyPy" },
		{ "Rf_initEmbeddedR", "R" },
		{ "Sscheme_init", "Racket or Chez Scheme" },
		{ "_kDartIsolateSnapshotInstructions", "Dart" },
		{ "_kDartSnapshotText", "Dart" },
		{ "caml_main", "OCaml bytecode" },
		{ "caml_program", "OCaml" },
		{ "coreclr_initialize", ".NET" },
		{ "erl_drv_busy_msgq_limits", "Erlang (BEAM)" },
		{ "graal_create_isolate", "GraalVM native image" },
		{ "hs_main", "Haskell (GHC)" },
		{ "jl_init", "Julia" },
		{ "lisp_startup_options", "SBCL" },
		{ "luaJIT_setmode", "LuaJIT" },
		{ "lua_newstate", "Lua" },
		{ "mono_jit_init", "Mono" },
		{ "scm_init_guile", "Guile" },
		{ "lua_newstate_", "" },
		{ "a", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_str(of_symbol(cases[i][0]), cases[i][1], "%s", cases[i][0]);
	is_str(recognize("int lua_newstate(void) { return 1; } int luaJIT_setmode(void) "
			 "{ return 2; }",
			 ""),
	       "LuaJIT", "LuaJIT has Lua's functions, too");
	is_str(recognize("int caml_main(void) { return 1; } int caml_program(void) { return 2; }",
			 ""),
	       "OCaml", "machine code of OCaml has the runtime of bytecode, too");
	is_str(recognize("int lua_newstate(void); int f(void) { return lua_newstate(); }", ""), "",
	       "a library that only calls Lua");
	is_str(recognize("static int lua_newstate(void) { return 1; } "
			 "int (*f)(void) = lua_newstate;",
			 ""),
	       "", "a function of that name for itself only");
	is_str(recognize("const char f[] = \"lua_newstate mono_jit_init\";", ""), "",
	       "the names in a text");
}

#define NODE_API "int napi_create_function(void) { return 1; }\n"

static void test_contents(void)
{
	static const char *const segments[] = { "", "-Wl,-z,noseparate-code" };

	is_str(recognize("int x __attribute__((section(\".svm_heap\"))) = 1;", ""),
	       "GraalVM native image", "by a section");
	is_str(recognize("int x __attribute__((section(\".bun\"))) = 1;", ""),
	       "Bun (JavaScriptCore)", "the section with Bun's code");
	is_str(recognize(NODE_API "const char v[] = \"interpreted-frames-native-stack\";", ""),
	       "V8", "another program with V8");
	is_str(recognize(NODE_API "const char v[] = \"interpreted-frames-native-stack\";"
				  "const char d[] = \"DENO_DIR\";",
			 ""),
	       "Deno (V8)", "Deno, whatever the file is called");
	is_str(recognize(NODE_API "const char v[] = \"interpreted-frames-native-stack\";"
				  "const char d[] = \"ELECTRON_RUN_AS_NODE\";",
			 ""),
	       "Electron (V8)", "Electron");
	is_str(recognize(NODE_API "const char d[] = \"DENO_DIR\";", ""), "",
	       "a program with addons for Node.js, and without V8");
	is_str(recognize(NODE_API "int v8dbg_APIObjectType; const char v[] = "
				  "\"interpreted-frames-native-stack\";",
			 ""),
	       "", "Node.js itself");
	is_str(recognize("const char v[] = \"interpreted-frames-native-stack DENO_DIR\";", ""), "",
	       "texts without the symbols");
	workdir__write("bun.map", "BUN_1.2 { global: napi_create_function; };\n");
	is_str(recognize(NODE_API, "-Wl,--version-script=bun.map"), "Bun (JavaScriptCore)",
	       "Bun without that section");
	for (size_t i = 0; i < ARRAY_SIZE(segments); i++)
		is_str(recognize("#include <pthread.h>\n#include <time.h>\n"
				 "const char v[] = \"    (GHC version %s for %s)\";\n"
				 "int f(clockid_t *c) { return clock_getcpuclockid(1, c); }",
				 segments[i]),
		       "Haskell (GHC)", "a stripped Haskell program, with '%s'", segments[i]);
	is_str(recognize("const char v[] = \"    (GHC version %s for %s)\";\n", ""), "",
	       "only the text of one");
	is_str(recognize("#include <pthread.h>\n#include <time.h>\n"
			 "const char v[] = \"(GHC version \", w[] = \"%s for %s)\";\n"
			 "int f(clockid_t *c) { return clock_getcpuclockid(1, c); }",
			 ""),
	       "", "a program with these rules, such as braid");
	is_str(recognize("const char v[] = \"    (GHC version %s for %s)\";\n"
			 "int clock_getcpuclockid(void) { return 1; }",
			 ""),
	       "", "a library that has the function, as libc");
}

static bool ends_whole(const char *text)
{
	size_t len = strlen(text);

	return len > 10 && len < RUNTIME_REASON_BYTES - 1 && text[len - 1] != '.' &&
	       text[len - 1] != ' ';
}

static void test_rows(void)
{
	char text[2 * RUNTIME_REASON_BYTES];
	const char *name;
	size_t i;

	for (i = 0; (name = runtime_other.recognizes(i, text, sizeof(text))); i++) {
		const struct other_row *row = other_rows__get(i);

		ok(*name && strlen(name) < RUNTIME_VERSION_BYTES && row->source && *row->source &&
			   ends_whole(text),
		   "%s: a name, a source, and a sentence that fits: %s", name, text);
		ok(!row->given[0] || row->map, "%s: an option that is looked for is named", name);
	}
	is_int(i, OTHER_KINDS_N, "all have a row");
}

/* Returns "function|file|line"; "": not a symbol of the runtime. */
static const char *label(const char *symbol)
{
	static char text[4096];
	struct runtime_label ret = {};
	char buf[2048];

	if (!other_label__make(symbol, buf, sizeof(buf), &ret))
		return "";
	snprintf(text, sizeof(text), "%s|%s|%u", ret.symbol.function,
		 ret.symbol.file ? ret.symbol.file : "", ret.symbol.line);
	return text;
}

/* As the programs that other_rows.c names wrote them. Julia's and LuaJIT's are after their sources,
 * and the last ones are invented. */
static void test_labels(void)
{
	static const char *const cases[][2] = {
		{ "$k:outer/1", "k:outer/1||0" },
		{ "$k:outer/1-CodeInfoPrologue", "k:outer/1||0" },
		{ "$k:'-outer/1-lc$^0/1-0-'/1", "k:'-outer/1-lc$^0/1-0-'/1||0" },
		{ "k:'-outer/1-lc$^0/1-0-'/1", "k:'-outer/1-lc$^0/1-0-'/1||0" },
		{ "k:leaf/2-CodeInfoPrologue", "k:leaf/2||0" },
		{ "$global::call_light_bif_shared", "global::call_light_bif_shared||0" },
		{ "JSC-FTL: outer#Ao0d7p", "outer||0" },
		{ "JSC-DFG: /srv/burn.js#AhHxQ1", "(module)|/srv/burn.js|0" },
		{ "JSC-Baseline: #AhHxQ1", "(anonymous)||0" },
		{ "JSC-Thunk: charCodeAt", "" },
		{ "TRACE_12::/srv/k.lua:34", "TRACE 12|/srv/k.lua|34" },
		{ "instance void [System.CommandLine] System.CommandLine.Argument`1[System.Int32]"
		  "::set_Default(class [System.Private.CoreLib]System.Func`2<!0>)[QuickJitted]",
		  "System.CommandLine.Argument`1[System.Int32].set_Default||0" },
		{ "instance class [System.Private.CoreLib]System.Collections.Generic.List`1<!0> "
		  "[System.Linq] System.Linq.Enumerable+IEnumerableWhereIterator`1[System.__Canon]"
		  "::ToList()[OptimizedTier1OSR]",
		  "System.Linq.Enumerable+IEnumerableWhereIterator`1[System.__Canon].ToList||0" },
		{ "instance void [System.Private.CoreLib] System.Text.Encoding::.ctor(int32)"
		  "[QuickJitted]",
		  "System.Text.Encoding..ctor||0" },
		{ "stub ReportStubBlock<VSD_ResolveStub>", "[VSD_ResolveStub]||0" },
		{ "K:Leaf (int)", "K.Leaf||0" },
		{ "(wrapper runtime-invoke) object:runtime_invoke_void (object,intptr)",
		  "(wrapper runtime-invoke) object.runtime_invoke_void||0" },
		{ "System.IO.UnexceptionalStreamReader:.ctor (System.IO.Stream)",
		  "System.IO.UnexceptionalStreamReader..ctor||0" },
		{ "julia_leaf_1234", "leaf||0" },
		{ "japi1_#leaf#12_567", "#leaf#12||0" },
		{ "JS:o*outer file:///srv/burn.js:3:1", "outer|/srv/burn.js|3" },
		{ "JS:o* file:///srv/burn.js:1:1", "(anonymous)|/srv/burn.js|1" },
		{ "Builtin:GeneratorPrototypeNext", "Builtins_GeneratorPrototypeNext||0" },
		{ "julia_", "" },
		{ "julia_x_1a", "" },
		{ "$", "" },
		{ "a:b", "" },
		{ "a:b/", "" },
		{ "::", "" },
		{ "x] ", "" },
		{ "stub ", "" },
		{ "stub >", "" },
		{ "JSC-FTL: ", "" },
		{ " ()", "" },
		{ ": ()", "" },
		{ "(null)", "" },
		{ "", "" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_str(label(cases[i][0]), cases[i][1], "'%s'", cases[i][0]);
}

int main(void)
{
	workdir__make();
	test_symbols();
	test_contents();
	test_rows();
	test_labels();
	return tap__done();
}
