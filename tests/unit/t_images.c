// SPDX-License-Identifier: GPL-2.0-or-later
/* Files that are one image: copies are, forgeries with the same build-id are not. */
#include "core/target/images.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "core/base/util.h"
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

/* Rewrites the file and restores the time of the last change, as its owner can. */
static void rewrite(const char *name)
{
	workdir__run("touch -r %s time && printf '\\001' | dd of=%s bs=1 seek=9 conv=notrunc "
		     "status=none && touch -r time %s",
		     name, name, name);
}

static int open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static int detects(const struct elf_file *file)
{
	return strstr(file->path, "/probed.so") ? 1 : 0;
}

static int prepares(const struct elf_file *file, struct runtime_image **ret,
		    struct runtime_verdict *ret_verdict)
{
	(void)file;
	*ret = NULL;
	*ret_verdict = (struct runtime_verdict) { .support = RUNTIME_REFUSED };
	return 0;
}

static void frees(struct runtime_image *image)
{
	(void)image;
}

static int probes(struct runtime_session *session, const struct runtime_target *target,
		  enum runtime_source source, struct runtime_probing *ret, struct err *err)
{
	(void)session, (void)target, (void)source, (void)ret, (void)err;
	return -ENOTSUP;
}

/* A file that is read before it is mapped is the image of its mapping. */
static void check_ahead(void)
{
	struct image *image = NULL, *none = NULL;
	char path[128];

	snprintf(path, sizeof(path), "%s/two.so", workdir);
	is_int(images__read_ahead(images, getpid(), path, &image), 0, "a file is read ahead");
	ok(image && get("two.so") == image, "... and is found when it is mapped");
	snprintf(path, sizeof(path), "%s/missing.so", workdir);
	is_int(images__read_ahead(images, getpid(), path, &none), -ENOENT, "a missing file");
	snprintf(path, sizeof(path), "%s/one.c", workdir);
	ok(images__read_ahead(images, getpid(), path, &none) < 0 && !none, "no ELF file");
	is_int(images__stats(images)->unread, 0, "... and neither is counted as unread");
}

/* An image is freed a minute after its last use, if braid can prove that nothing refers to it. */
static void check_release(void)
{
	static const struct runtime_files files = { .detect = detects,
						    .prepare = prepares,
						    .free = frees };
	static const struct runtime_probes probing = { .probe = probes };
	static const struct runtime probed = { .name = "probed",
					       .files = &files,
					       .probes = &probing };
	static const struct runtime *const runtimes[] = { &probed, NULL };
	uint64_t now = now_ns(), later = now + 61 * NSEC_PER_SEC;
	struct image *one, *two, *sites;
	int before = open_files();

	if (images__new(
		    &(struct images_opts) { .runtimes = runtimes, .files_fd = -1, .enabled = 1 },
		    &images))
		return;
	two = get("two.so");
	one = get("one.so");
	get("copy.so");
	sites = get("probed.so");
	images__ask_runtimes(images, one);
	images__ask_runtimes(images, sites);
	is_int(images__release_unused(images, now), 0, "what was used just now stays");
	image__use(two, later);
	is_int(images__release_unused(images, later), 1, "of what nobody uses one is released");
	ok(!images__by_number(images, 2), "... its number is nobody's");
	is_int(open_files() - before, 2, "... its file is closed");
	ok(images__by_number(images, 1) == two, "... not that of one that is used");
	ok(sites && images__by_number(images, sites->number) == sites,
	   "... nor that of one that may have probes");
	one = get("copy.so");
	ok(one && one->number == 4 && images__by_number(images, 4) == one,
	   "mapped again: a new image, by a number that nobody had");
	ok(get("copy.so") == one && images__first(images) == one, "... which is found again");
	images__free(images);
	is_int(open_files(), before, "all files are closed");
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
	if (images__new(&(struct images_opts) { .runtimes = none, .files_fd = -1 }, &images))
		return 1;
	check_ahead();
	forged = get("two.so");
	genuine = get("one.so");
	ok(forged && genuine && forged != genuine, "the same build-id and size: two images");
	ok(genuine && get("copy.so") == genuine, "a copy: one image");
	ok(get("two.so") == forged && get("one.so") == genuine, "each file's own, again");
	rewrite("one.so");
	ok(get("one.so") != genuine, "rewritten with its old time: another image");
	images__free(images);
	workdir__run("cp one.so copy.so && cp one.so probed.so && printf x >>probed.so");
	check_release();
	return tap__done();
}
