// SPDX-License-Identifier: GPL-2.0-or-later
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/util.h"
#include "core/elf/demangle.h"
#include "tests/tap.h"

static const struct {
	const char *mangled, *want;
} names[] = {
	{ "", "" },
	{ "_", "_" },
	{ "_Z", "_Z" },
	{ "main", "main" },
	{ "_PyEval_EvalFrameDefault", "_PyEval_EvalFrameDefault" },
	{ "_ZN2ns1fEi", "ns::f" },
	{ "_ZN2ns1fEi.cold", "ns::f" },
	{ "_ZN2ns1fEi.part.0.constprop.1", "ns::f" },
	{ "_ZN2ns1fEi.llvm.1234567", "ns::f" },
	{ "f.cold", "f" },
	{ "f.cold.12", "f" },
	{ "f.lto_priv.0", "f" },
	{ "f.lto_priv.10.lto_priv.0.cold", "f" },
	{ "f.constprop.0.isra.0", "f" },
	{ "f.part.0", "f" },
	{ "f.llvm.1234567", "f" },
	{ "f.__uniq.98765.llvm.1", "f" },
	{ "f.localalias", "f" },
	{ "f.part", "f.part" },
	{ "f.isra.x", "f.isra.x" },
	{ "f.0", "f.0" },
	{ "f.cold1", "f.cold1" },
	{ "f.scold", "f.scold" },
	{ "f.cold.other", "f.cold.other" },
	{ "f.other.cold", "f.other" },
	{ "cold", "cold" },
	{ ".cold", ".cold" },
	{ ".part.0", ".part.0" },
	{ "part.0", "part.0" },
	{ "_ZN2ns1fEi.other", "ns::f.other" },
	{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
	  "std::vector<int, std::allocator<int> >::push_back" },
	{ "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()" },
	{ "_ZZ4mainENK3$_0clEi", "main::$_0::operator()" },
	{ "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
	{ "_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function" },
	{ "_ZNotMangled", "_ZNotMangled" },
	{ "_Reserved", "_Reserved" },
};

/* Writes @steps times pair<X, X>, each step one back reference longer, which doubles the length of
 * the result. */
static void write_bomb(char *buf, int steps)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	buf += sprintf(buf, "_Z1fI1A1pIS0_S0_E");
	for (int i = 0; i < steps; i++)
		buf += sprintf(buf, "S1_IS%c_S%c_E", digits[i + 2], digits[i + 2]);
	strcpy(buf, "Evv");
}

int main(void)
{
	char bomb[1024], *text;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		text = demangle(names[i].mangled);
		is_str(text, names[i].want, "'%s'", names[i].mangled);
		free(text);
	}
	write_bomb(bomb, 3);
	text = demangle(bomb);
	ok(text && !strncmp(text, "f<A, p<A, A>, p<p<A, A>,", 24), "small bomb is demangled");
	free(text);
	write_bomb(bomb, 32);
	text = demangle(bomb);
	is_str(text, bomb, "a name that stands for gigabytes is left as it is");
	free(text);
	return tap__done();
}
