// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "core/elf/kallsyms.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

static struct kallsyms *load_text(const char *text)
{
	struct kallsyms *kallsyms = NULL;
	char path[256];
	struct err err;

	workdir__write("kallsyms", text);
	snprintf(path, sizeof(path), "%s/kallsyms", workdir);
	is_int(kallsyms__load(path, &kallsyms, &err), 0, "load");
	return kallsyms;
}

static void test_find(void)
{
	struct kallsyms *kallsyms = load_text("0000000000000000 A percpu_start\n"
					      "ffffffff81000000 t local_alias\n"
					      "ffffffff81000000 T _stext\n"
					      "ffffffff81000040 W weak_one\n"
					      "ffffffff81000080 t local_one\n"
					      "not a symbol line\n"
					      "ffffffff81000100 D data_one\n"
					      "ffffffffc0200010 t in_module\t[ext4]\n"
					      "ffffffffc0200000 t first_in_module\t[ext4]\n"
					      "ffffffffc0300000 t bpf_prog_x\t[bpf]");
	const char *module = "untouched";

	is_str(kallsyms__find(kallsyms, 0xffffffff81000000, NULL), "_stext", "global alias wins");
	is_str(kallsyms__find(kallsyms, 0xffffffff8100003f, &module), "_stext", "last byte");
	is_str(module, NULL, "kernel proper has no module");
	is_str(kallsyms__find(kallsyms, 0xffffffff81000040, NULL), "weak_one", "weak");
	is_str(kallsyms__find(kallsyms, 0xffffffff810000ff, NULL), "local_one", "local");
	is_str(kallsyms__find(kallsyms, 0xffffffff81000100, NULL), NULL, "data is no code");
	is_str(kallsyms__find(kallsyms, 0xffffffffc01fffff, NULL), NULL, "gap after data");
	is_str(kallsyms__find(kallsyms, 0xffffffffc020000f, &module), "first_in_module",
	       "unsorted input");
	is_str(module, "ext4", "module name");
	is_str(kallsyms__find(kallsyms, 0xffffffffc0300fff, &module), "bpf_prog_x", "last symbol");
	is_str(module, "bpf", "module name without a final newline");
	is_str(kallsyms__find(kallsyms, UINT64_MAX, NULL), NULL, "the last symbol ends");
	is_str(kallsyms__find(kallsyms, 0x400000, NULL), NULL, "user address");
	kallsyms__free(kallsyms);

	kallsyms = load_text("");
	is_str(kallsyms__find(kallsyms, 0, NULL), NULL, "empty file");
	kallsyms__free(kallsyms);
	kallsyms__free(NULL);
}

static void test_errors(void)
{
	struct kallsyms *kallsyms = (void *)&kallsyms, *before = kallsyms;
	char path[256];
	struct err err;

	workdir__write("hidden", "0000000000000000 T _text\n0000000000000000 t x\t[m]\n");
	snprintf(path, sizeof(path), "%s/hidden", workdir);
	is_int(kallsyms__load(path, &kallsyms, &err), -EPERM, "hidden addresses");
	ok(strstr(err.text, "kernel.kptr_restrict"), "the way out names the sysctl");
	ok(strstr(err.text, "CAP_SYSLOG"), "the way out names the capability");
	is_int(kallsyms__load("/nonexistent/kallsyms", &kallsyms, NULL), -ENOENT, "no such file");
	is_int(kallsyms__load(workdir, &kallsyms, &err), -EISDIR, "directory");
	ok(kallsyms == before, "result untouched on failure");
}

/* Compares each symbol that has its address alone with the text itself. */
static void test_live(void)
{
	int checked = 0, wrong = 0, rc;
	uint64_t address, before = 0;
	struct kallsyms *kallsyms;
	char type, name[512], line[1024];
	struct err err;
	FILE *pipe;

	/* A copy, as BPF programs of others appear and disappear. */
	workdir__run("cat /proc/kallsyms > live");
	snprintf(line, sizeof(line), "%s/live", workdir);
	rc = kallsyms__load(line, &kallsyms, &err);
	if (rc) {
		tap__skip(err.text, "live kallsyms");
		return;
	}
	pipe = workdir__pipe("sort live | awk '{n[$1]++; l[$1]=$0; o[NR]=$1}"
			     "END {for (i=1;i<=NR;i++) if (n[o[i]]==1) print l[o[i]]}'");
	while (fgets(line, sizeof(line), pipe)) {
		if (sscanf(line, "%" SCNx64 " %c %511s", &address, &type, name) != 3 ||
		    !strchr("tTwW", type) || address == before)
			continue;
		const char *got = kallsyms__find(kallsyms, address, NULL);

		checked++;
		wrong += !got || strcmp(got, name) != 0;
		before = address;
	}
	pclose(pipe);
	tap__diag("%d symbols", checked);
	ok(checked > 1000, "enough live symbols");
	is_int(wrong, 0, "live symbols found under their own address");
	kallsyms__free(kallsyms);
}

int main(void)
{
	workdir__make();
	test_find();
	test_errors();
	test_live();
	return tap__done();
}
