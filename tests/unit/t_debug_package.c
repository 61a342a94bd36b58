// SPDX-License-Identifier: GPL-2.0-or-later
/* Which package has the symbols of a file: over a made-up database of dpkg, and a made-up apt. */
#include "core/elf/debug_package.h"

#include <errno.h>

#include "tests/tap.h"
#include "tests/unit/workdir.h"

static const char status[] = "Package: libzebra1\nStatus: install ok installed\n"
			     "Source: zebra (1:2.0)\nVersion: 1:2.0-3\nDescription: x\n"
			     " Package: liar\n\n"
			     "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n"
			     "Package: tool\nStatus: install ok installed\nVersion: 7\n\n"
			     "Package: owl\nStatus: install ok installed\nVersion: 3\n\n"
			     "Package: owl-dbg\nStatus: install ok installed\nVersion: 3\n";

/* Knows two packages, says what it was asked, and has no end where it is asked for tool. */
static const char apt[] =
	"#!/bin/sh\n"
	"echo \"$@\" >\"$0.asked\"\n"
	"case \"$*\" in *tool*) exec sleep 1000 ;; esac\n"
	"for word; do case $word in zebra-dbg=1:2.0-3 | owl-dbgsym=3 | -*)\n"
	"	printf 'Package: %s\\nVersion: x\\n\\n' \"${word%%=*}\" ;; esac; done\n";

static const char *package_of(const char *name, const char *path)
{
	static char package[DEBUG_PACKAGE_BYTES];
	char root[80], apt_cache[80];
	struct debug_package_places places = { root, apt_cache };
	struct elf_file *file = NULL;
	int code;

	snprintf(root, sizeof(root), "%s/root", workdir);
	snprintf(apt_cache, sizeof(apt_cache), "%s/apt", workdir);
	if (elf_file__open(workdir__open(name), path, &file, NULL)) {
		printf("Bail out! %s\n", name);
		exit(1);
	}
	code = debug_package__find(file, &places, package);
	elf_file__free(file);
	return code == -ENOENT ? "none" : code ? "error" : package;
}

static const char *asked(void)
{
	static char text[200];
	size_t len;
	unsigned char *read = workdir__read("apt.asked", &len);

	snprintf(text, sizeof(text), "%.*s", (int)len, (char *)read);
	free(read);
	return text;
}

int main(void)
{
	workdir__make();
	workdir__run("mkdir -p root/usr/lib root/usr/bin root/var/lib/dpkg/info && "
		     "ln -s usr/lib root/lib && "
		     "echo 'int x;' | gcc -shared -x c - -o root/usr/lib/libzebra.so.1 && "
		     "for n in bin/tool bin/owl bin/gone lib/alien; do "
		     "cp root/usr/lib/libzebra.so.1 root/usr/$n; done");
	workdir__write("root/var/lib/dpkg/status", status);
	workdir__write("root/var/lib/dpkg/info/libzebra1:amd64.list",
		       "/.\n/lib\n/lib/libzebra.so.1.0\n/lib/libzebra.so.1\n");
	workdir__write("root/var/lib/dpkg/info/tool.list", "/usr/bin/tool\n");
	workdir__write("root/var/lib/dpkg/info/owl.list", "/usr/bin/owl\n");
	workdir__write("root/var/lib/dpkg/info/gone.list", "/usr/bin/gone\n");
	workdir__write("apt", apt);
	workdir__run("chmod +x apt && : >apt.asked");
	is_str(package_of("root/usr/lib/alien", "/usr/lib/alien"), "none", "a file of no package");
	is_str(package_of("root/usr/lib/alien", "/usr/lib/libzebra.so.1"), "none",
	       "another file than the machine has at that path");
	is_str(package_of("root/usr/lib/libzebra.so.1", "/usr/lib/libzebra.so"), "none",
	       "a path that is not there");
	is_str(package_of("root/usr/bin/gone", "/usr/bin/gone"), "none", "of a removed package");
	is_str(package_of("root/usr/bin/owl", "/usr/bin/owl"), "none",
	       "its debug package is installed, and has not helped");
	is_str(asked(), "", "apt was not asked for any of these");
	is_str(package_of("root/usr/lib/libzebra.so.1", "/usr/lib/libzebra.so.1"), "zebra-dbg",
	       "of its source, in the same version; listed as in /lib");
	is_str(asked(), "show libzebra1-dbgsym=1:2.0-3 libzebra1-dbg=1:2.0-3 zebra-dbg=1:2.0-3\n",
	       "what apt was asked for");
	is_str(package_of("root/usr/bin/tool", "/usr/bin/tool"), "none", "apt takes too long");
	return tap__done();
}
