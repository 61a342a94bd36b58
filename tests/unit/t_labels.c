// SPDX-License-Identifier: GPL-2.0-or-later
/* Symbols of maps in the readable form that runtimes give them. */
#include <stdio.h>
#include <string.h>

#include "core/base/util.h"
#include "runtimes/runtime.h"
#include "tests/tap.h"

extern const struct runtime runtime_jit, runtime_node, runtime_python;

/* Returns "function|file|line"; "": not a symbol of @runtime. */
static const char *label(const struct runtime *runtime, const char *symbol)
{
	static char text[4096];
	struct runtime_label label = {};
	char buf[2048];

	if (!runtime->jit->label(symbol, buf, sizeof(buf), &label))
		return "";
	snprintf(text, sizeof(text), "%s|%s|%u%s", label.symbol.function,
		 label.symbol.file ? label.symbol.file : "", label.symbol.line,
		 label.loop ? "|loop" : "");
	return text;
}

/* As V8 of Node 18 to 24 writes them, except the invented ones at the end. */
static void test_node(void)
{
	static const char *const cases[][2] = {
		{ "JS:*leaf /srv/app.js:1:14", "leaf|/srv/app.js|1" },
		{ "JS:~leaf /srv/app.js:1:14", "leaf|/srv/app.js|1" },
		{ "JS:^leaf /srv/app.js:1:14", "leaf|/srv/app.js|1" },
		{ "JS:+leaf /srv/app.js:1:14", "leaf|/srv/app.js|1" },
		{ "JS:o*leaf /srv/app.js:1:14", "leaf|/srv/app.js|1" },
		{ "JS:o+'leaf /srv/app.js:1:14", "leaf|/srv/app.js|1" },
		{ "JS:outer /srv/app.js:1:14", "outer|/srv/app.js|1" },
		{ "JS:*'leaf /srv/app.js:1:14", "leaf|/srv/app.js|1" },
		{ "LazyCompile:*leaf /srv/app.js:120:1", "leaf|/srv/app.js|120" },
		{ "Function:~leaf /srv/app.js:120:1", "leaf|/srv/app.js|120" },
		{ "Script:~ /srv/app.js:1:1", "(anonymous)|/srv/app.js|1" },
		{ "Eval:~ /srv/app.js:1:1", "(anonymous)|/srv/app.js|1" },
		{ "JS:+' /srv/app.js:2:69", "(anonymous)|/srv/app.js|2" },
		{ "JS:~get size /srv/my app/a b.js:7:3", "get size|/srv/my app/a b.js|7" },
		{ "JS:~Module._compile node:internal/modules/cjs/loader:1483:37",
		  "Module._compile|node:internal/modules/cjs/loader|1483" },
		{ "JS:*run file:///srv/mod.mjs:4:8", "run|/srv/mod.mjs|4" },
		{ "JS:*run file:///srv/my%20app/%C3%A4.mjs:4:8", "run|/srv/my app/\303\244.mjs|4" },
		{ "JS:*run file:///srv/100%:4:8", "run|/srv/100%|4" },
		{ "JS:~a evalmachine.<anonymous>:1:1", "a|evalmachine.<anonymous>|1" },
		{ "JS:~ [eval]-wrapper:6:25", "(anonymous)|[eval]-wrapper|6" },
		{ "JS:~f webpack:///./src/f.js:3:1", "f|webpack:///./src/f.js|3" },
		{ "JS:~f /srv/a.js", "f|/srv/a.js|0" },
		{ "JS:~f /srv/a.js:17", "f|/srv/a.js|17" },
		{ "JS:*f", "f||0" },
		{ "JS:*", "(anonymous)||0" },
		{ "JS:* ", "(anonymous)||0" },
		{ "JS:*f :3:4", "f||0" },
		{ "JS:*f /a:99999999999:4", "f|/a|4" },
		{ "Builtin:ArrayMap", "Builtins_ArrayMap||0" },
		{ "BytecodeHandler:LdaZero", "Builtins_LdaZeroHandler||0" },
		{ "RegExp:a:1:2 /b", "RegExp:a:1:2 /b||0" },
		{ "", "||0" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		is_str(label(&runtime_node, cases[i][0]), cases[i][1], "node: %s", cases[i][0]);
}

static void test_others(void)
{
	is_str(label(&runtime_python, "py::Queue.put:/usr/lib/python3.12/queue.py"),
	       "Queue.put|/usr/lib/python3.12/queue.py|0|loop", "python: a trampoline");
	is_str(label(&runtime_python, "py::f.<locals>.<lambda>:<string>"),
	       "f.<locals>.<lambda>|<string>|0|loop", "python: without a file");
	is_str(label(&runtime_python, "py::f"), "f||0|loop", "python: no colon");
	is_str(label(&runtime_python, "JS:*leaf /srv/app.js:1:14"), "", "python: not its own");
	is_str(label(&runtime_jit, "JIT$A::run"), "JIT$A::run||0", "jit: as it is");
	is_str(label(&runtime_jit, "JS:*'sorter file:///srv/m.mjs:11:16"), "sorter|/srv/m.mjs|11",
	       "jit: V8's, of a program that is not Node.js");
	is_str(label(&runtime_jit, "JS:^work /srv/a.js:3:1"), "work|/srv/a.js|3",
	       "jit: of another compiler of V8's");
	is_str(label(&runtime_jit, "Function:run"), "Function:run||0", "jit: without V8's mark");
}

static void test_long(void)
{
	char symbol[8192], buf[64];
	struct runtime_label ret = {};

	memset(symbol, 'x', sizeof(symbol) - 1);
	symbol[sizeof(symbol) - 1] = '\0';
	memcpy(symbol, "JS:*", 4);
	ok(runtime_node.jit->label(symbol, buf, sizeof(buf), &ret) &&
		   strlen(ret.symbol.function) < 64,
	   "node: a long name is cut");
	memcpy(symbol, "py::", 4);
	ok(runtime_python.jit->label(symbol, buf, sizeof(buf), &ret) &&
		   strlen(ret.symbol.function) == 63,
	   "python: a long name is cut");
}

int main(void)
{
	test_node();
	test_others();
	test_long();
	return tap__done();
}
