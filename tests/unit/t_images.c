// SPDX-License-Identifier: GPL-2.0-or-later
/* Which files are one image: copies are, forgeries with the same build-id are not. */
#include "core/target/images.h"

#include <sys/stat.h>

#include "tests/tap.h"
#include "tests/unit/workdir.h"

static struct images *images;

static struct image *get(const char *name)
{
	struct procfs_mapping mapping = { .start = 1, .end = 2 };
	struct image *image = NULL;
	struct err err = {};
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", workdir, name);
	mapping.path = path;
	if (images__get(images, getpid(), &mapping, &image, &err))
		tap__diag("%s", err.text);
	return image;
}

/* As its owner can: the time of the last change is what it was. */
static void rewrite(const char *name)
{
	workdir__run("touch -r %s time && printf '\\001' | dd of=%s bs=1 seek=9 conv=notrunc "
		     "status=none && touch -r time %s",
		     name, name, name);
}

int main(void)
{
	static const struct runtime *const none[] = { NULL };
	struct image *genuine, *forged;

	workdir__make();
	workdir__write("one.c", "int f(void) { return 11; }\n");
	workdir__write("two.c", "int f(void) { return 22; }\n");
	workdir__run(
		"for i in one two; do gcc -O2 -shared -nostdlib -fPIC -Wl,--build-id=0x11223344 "
		"-Wl,-soname,x $i.c -o $i.so && strip $i.so; done && cp one.so copy.so && "
		"test $(stat -c %%s one.so) = $(stat -c %%s two.so)");
	if (images__new(&(struct images_opts) { .runtimes = none }, &images))
		return 1;
	forged = get("two.so");
	genuine = get("one.so");
	ok(forged && genuine && forged != genuine, "the same build-id and size: two images");
	ok(genuine && get("copy.so") == genuine, "a copy: one image");
	ok(get("two.so") == forged && get("one.so") == genuine, "each file's own, again");
	rewrite("one.so");
	ok(get("one.so") != genuine, "rewritten with its old time: another image");
	images__free(images);
	return tap__done();
}
