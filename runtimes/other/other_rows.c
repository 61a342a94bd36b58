// SPDX-License-Identifier: GPL-2.0-or-later
#include "runtimes/other/other_rows.h"

#include "runtimes/common/v8_code.h"

/* Each row was compared with the program that `source` names, unless `source` names a document. */

#define JAVASCRIPT "native code is named, JavaScript functions are not"
#define V8_FLAGS   "--perf-basic-prof --interpreted-frames-native-stack"
#define V8_GIVEN   "--perf-basic-prof", "--perf-prof"

/* JavaScriptCore's functions have a frame: emitFunctionPrologue of jit/AssemblyHelpers.h. Handlers
 * of inline caches, which call C++ as well, leave the register to the function that calls them:
 * emitDataICPrologue of bytecode/InlineCacheCompiler.cpp. It reserves 1 GB for code, or 128 MB
 * (fixedExecutableMemoryPoolSize, jit/ExecutableAllocator.cpp). */
#define JSC_KEEPS	    KEEPS_POINTERS
#define JSC_GENERATED_BYTES (32ULL << 20)

/* .NET's compiler makes a frame for most methods, and leaves the register alone in the others:
 * ETW_EBP_FRAMED, rpMustCreateEBPFrame() of src/coreclr/jit. Its memory is mapped in small pieces.
 *
 * Mono's compiler omits the frame pointer where it can, and uses the register for other values
 * (mono_arch_compute_omit_fp of mini-amd64.c). The other compilers have no frame pointers either.
 */
#define NET_KEEPS	    KEEPS_POINTERS
#define NET_GENERATED_BYTES 4096

static const struct other_row rows[OTHER_KINDS_N] = {
	[OTHER_ELECTRON] = {
		.name = "Electron (V8)",
		.shown = JAVASCRIPT " (no walker for compressed pointers)",
		.map = "start it with --js-flags='" V8_FLAGS "'",
		.given = { V8_GIVEN },
		.keeps = V8_KEEPS,
		.generated_bytes = V8_GENERATED_BYTES,
		.source = "electronjs.org/docs/latest/api/command-line-switches",
	},
	[OTHER_DENO] = {
		.name = "Deno (V8)",
		.shown = JAVASCRIPT ": Deno's V8 has no constants for debuggers",
		.map = "start it with --v8-flags=--perf-basic-prof,--interpreted-frames-native-stack",
		.given = { V8_GIVEN },
		.keeps = V8_KEEPS,
		.generated_bytes = V8_GENERATED_BYTES,
		.source = "@deno/linux-x64-glibc 2.9.6",
	},
	[OTHER_V8] = {
		.name = "V8",
		.shown = JAVASCRIPT ": this V8 has no constants for debuggers",
		.map = "give V8 the options " V8_FLAGS,
		.given = { V8_GIVEN },
		.keeps = V8_KEEPS,
		.generated_bytes = V8_GENERATED_BYTES,
		.source = "the options as of Deno 2.9.6",
	},
	[OTHER_BUN] = {
		.name = "Bun (JavaScriptCore)",
		.shown = JAVASCRIPT,
		.map = "start it with BUN_JSC_useJITDump=1",
		.given = { "BUN_JSC_useJITDump=1", "BUN_JSC_useJITDump=true" },
		.missing = "interpreted functions have no names, compiled ones have",
		.keeps = JSC_KEEPS,
		.generated_bytes = JSC_GENERATED_BYTES,
		.source = "@oven/bun-linux-x64 1.4.5",
	},
	[OTHER_DOTNET] = {
		.name = ".NET",
		.shown = "native code is named, .NET methods are not",
		.map = "start it with DOTNET_PerfMapEnabled=1",
		.given = { "DOTNET_PerfMapEnabled=1", "DOTNET_PerfMapEnabled=2",
			   "DOTNET_PerfMapEnabled=3", "COMPlus_PerfMapEnabled=1" },
		.missing = "compiled methods have names; precompiled ones have none unless "
			   "DOTNET_ReadyToRun=0",
		.keeps = NET_KEEPS,
		.generated_bytes = NET_GENERATED_BYTES,
		.source = "@azure/mcp-linux-x64 2.0.5 (.NET 10.0.9); "
			  "learn.microsoft.com/dotnet/core/runtime-config/debugging-profiling",
	},
	[OTHER_MONO] = {
		.name = "Mono",
		.shown = "native code is named, .NET methods are not",
		.map = "start it with mono --jitmap",
		.given = { "--jitmap", "--jitdump" },
		.source = "mono-runtime 6.14 of Debian",
	},
	[OTHER_BEAM] = {
		.name = "Erlang (BEAM)",
		.shown = "native code is named, Erlang functions are not, and their stacks end early",
		.map = "start it with erl +JPperf true (ERL_FLAGS='+JPperf true')",
		.given = { "JPperf" }, /* erl turns "+" into "-" for beam.smp */
		.missing = "Erlang functions have names; a stack in a built-in function ends there",
		.source = "erlang-base 29.1 of Debian (erts 17.1.1)",
	},
	[OTHER_LUAJIT] = {
		.name = "LuaJIT",
		.shown = "native code is named, Lua functions are not, and stacks in compiled traces "
			 "end there",
		.map = "use a build with -DLUAJIT_USE_PERFTOOLS (luajit -jp profiles any build)",
		.source = "luajit 2.1 of Debian; lj_trace.c",
	},
	[OTHER_LUA] = {
		.name = "Lua",
		.shown = "native code is named, Lua functions are not",
		.source = "lua5.4 5.4.8, lua5.1 5.1.5 of Debian",
	},
	[OTHER_PYPY] = {
		.name = "PyPy",
		.shown = "native code is named, Python functions are not, and stacks in compiled code "
			 "end there: only CPython is walked",
		.source = "pypy3 8.0.1 of Debian",
	},
	[OTHER_OCAML] = {
		.name = "OCaml",
		.shown = "functions are named if the program has symbols; stacks of OCaml 5 end where "
			 "its own stack begins",
		.source = "ocaml 5.4.1, unison 2.53.8 of Debian",
	},
	[OTHER_OCAML_BYTECODE] = {
		.name = "OCaml bytecode",
		.shown = "native code is named, OCaml functions are not",
		.source = "ocaml-base 5.4.1 of Debian",
	},
	[OTHER_GHC] = {
		.name = "Haskell (GHC)",
		.shown = "functions are named if the program has symbols; stacks end in the innermost "
			 "Haskell function, whose callers are not on the machine's stack",
		.source = "shellcheck 0.11.0, hledger 1.52.1 of Debian (GHC 9.10.3)",
	},
	[OTHER_GUILE] = {
		.name = "Guile",
		.shown = "native code is named, Scheme functions are not, and stacks in compiled code "
			 "end there",
		.source = "guile-3.0 3.0.11 of Debian",
	},
	[OTHER_RACKET] = {
		.name = "Racket or Chez Scheme",
		.shown = "native code is named, Scheme functions are not, and stacks in compiled code "
			 "end there",
		.source = "racket 8.18 of Debian",
	},
	[OTHER_R] = {
		.name = "R",
		.shown = "native code is named, R functions are not (R's own Rprof() has them)",
		.source = "r-base-core 4.6.2 of Debian",
	},
	[OTHER_JULIA] = {
		.name = "Julia",
		.shown = "native code is named, compiled Julia functions are not",
		.map = "start it with ENABLE_JITPROFILING=1",
		.given = { "ENABLE_JITPROFILING=1" },
		.source = "docs.julialang.org/en/v1/manual/profile, External Profiling",
	},
	[OTHER_DART] = {
		.name = "Dart",
		.shown = "functions are named if the snapshot has symbols",
		.map = "start the Dart VM with --generate-perf-events-symbols",
		.given = { "--generate-perf-events-symbols", "--generate-perf-jitdump" },
		.source = "sass-embedded-linux-x64 1.108.2 (Dart 3.13.7); runtime/vm/os_linux.cc",
	},
	[OTHER_GRAAL] = {
		.name = "GraalVM native image",
		.shown = "methods have no names and stacks end in the innermost one, unless the image "
			 "was built with native-image -g",
		.source = "google-closure-compiler-linux 20261015; "
			  "graalvm.org/latest/reference-manual/native-image",
	},
	[OTHER_SBCL] = {
		.name = "SBCL",
		.shown = "native code is named, Lisp functions are not",
		.source = "sbcl 2.6.4 of Debian",
	},
};

const struct other_row *other_rows__get(enum other_kind kind)
{
	return &rows[kind];
}
