// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/unwind/unwind_cache.h"

#include <errno.h>
#include <glob.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cfi_fixture.h"
#include "tests/tap.h"

#define RACES 200 /* number of tables that each of two processes makes */

struct cache {
	struct fixture fixture;
	struct elf_file *file;
	struct unwind_table built;
	char dir[128];
	char path[256]; /* path of the only cache file */
	uint8_t *good;	/* its contents */
	size_t n_good;
};

static bool is_built(const struct cache *cache, const struct unwind_table *table)
{
	const struct unwind_table *want = &cache->built;

	return table->words && table->vaddr_start == want->vaddr_start &&
	       table->n_pages == want->n_pages && table->rules_at == want->rules_at &&
	       table->rows_at == want->rows_at && table->n_rules == want->n_rules &&
	       table->n_rows == want->n_rows && table->n_unsupported == want->n_unsupported &&
	       table->n_words == want->n_words &&
	       !memcmp(table->words, want->words, want->n_words * sizeof(*want->words));
}

static int load(const struct cache *cache)
{
	struct unwind_table table = { 0 };
	int rc = unwind_cache__load(cache->dir, cache->file, &table);

	if (!rc && !is_built(cache, &table))
		rc = 1; /* accepted, but another table */
	if (rc < 0 && table.words)
		rc = 2;
	unwind_table__done(&table);
	return rc;
}

/* Gets the table by the public function, which always succeeds. */
static bool get(const struct cache *cache, const char *dir)
{
	struct unwind_table table = { 0 };
	bool same =
		!unwind_table__get(cache->file, dir, NULL, &table, NULL) && is_built(cache, &table);

	unwind_table__done(&table);
	return same;
}

static bool put(const struct cache *cache, const uint8_t *bytes, size_t n)
{
	FILE *out;

	unlink(cache->path);
	out = fopen(cache->path, "w");
	if (!out)
		return false;
	fwrite(bytes, 1, n, out);
	fchmod(fileno(out), 0600);
	return fclose(out) == 0;
}

static size_t count_files(const struct cache *cache)
{
	char pattern[160];
	glob_t found = { 0 };
	size_t n;

	snprintf(pattern, sizeof(pattern), "%s/*", cache->dir);
	glob(pattern, GLOB_PERIOD, NULL, &found);
	n = found.gl_pathc; /* includes . and .. */
	globfree(&found);
	return n - 2;
}

static void test_round_trip(struct cache *cache)
{
	static const char name[] = "0123456789abcdef0123456789abcdef01234567.utab";
	struct stat st;
	FILE *in;

	is_int(load(cache), -ENOENT, "empty at first");
	ok(get(cache, cache->dir), "built");
	snprintf(cache->path, sizeof(cache->path), "%s/%s", cache->dir, name);
	ok(!stat(cache->path, &st) && (st.st_mode & 0777) == 0600, "stored, for us alone");
	is_int(load(cache), 0, "loaded");
	ok(get(cache, cache->dir), "and got");
	is_int(count_files(cache), 1, "one file");
	cache->n_good = st.st_size;
	cache->good = malloc(cache->n_good);
	in = fopen(cache->path, "r");
	ok(cache->good && in && fread(cache->good, 1, cache->n_good, in) == cache->n_good, "read");
	if (in)
		fclose(in);
}

static void test_damaged(const struct cache *cache)
{
	uint8_t *bytes = malloc(cache->n_good + 1);
	size_t n_taken = 0;

	for (size_t n = 0; n < cache->n_good; n++) {
		put(cache, cache->good, n);
		n_taken += load(cache) != -EBADMSG;
	}
	is_int(n_taken, 0, "none of %zu truncated files is taken", cache->n_good);
	for (size_t n = 0; n < cache->n_good; n++) {
		memcpy(bytes, cache->good, cache->n_good);
		bytes[n] ^= 1 << n % 8;
		put(cache, bytes, cache->n_good);
		n_taken += load(cache) != -EBADMSG;
	}
	is_int(n_taken, 0, "nor one of as many with a bit flipped");
	memcpy(bytes, cache->good, cache->n_good);
	bytes[cache->n_good] = 0;
	put(cache, bytes, cache->n_good + 1);
	is_int(load(cache), -EBADMSG, "nor one that is too long");
	ok(get(cache, cache->dir) && load(cache) == 0, "it is replaced");
	free(bytes);
}

/* Tables with a valid checksum that would mislead a reader. */
static void check_hostile(const struct cache *cache, uint32_t *word, uint32_t value,
			  const struct unwind_table *table, const char *name)
{
	uint32_t saved = *word;

	*word = value;
	is_int(unwind_cache__store(cache->dir, cache->file, table), 0, "%s: stored", name);
	is_int(load(cache), -EBADMSG, "%s: not taken", name);
	*word = saved;
}

static void test_hostile(const struct cache *cache)
{
	struct unwind_table t = cache->built;
	uint32_t *words = malloc(t.n_words * sizeof(*words));

	memcpy(words, t.words, t.n_words * sizeof(*words));
	t.words = words;
	check_hostile(cache, &words[0], t.n_rows + 1, &t, "page index behind the rows");
	check_hostile(cache, &words[t.n_pages], t.n_rows + 1, &t, "last page index");
	check_hostile(cache, &words[0], words[1] + 1, &t, "page index falls");
	check_hostile(cache, &words[t.rows_at], t.n_rules, &t, "rule that is not there");
	check_hostile(cache, &words[t.rows_at], UNWIND_ROW(1U, t.n_rules), &t,
		      "the same further in its page");
	check_hostile(cache, &words[t.rules_at + 8], UNWIND_POINTER + 1, &t, "kind of rule");
	check_hostile(cache, &words[t.rules_at + 8], UNWIND_REG | UNWIND_REGS << 8, &t, "register");
	check_hostile(cache, &words[t.rules_at], UNWIND_REG, &t, "rule 0");
	check_hostile(cache, &words[t.rules_at + 4], UNWIND_REG, &t, "rule 1");
	check_hostile(cache, &t.n_pages, 0, &t, "no pages");
	check_hostile(cache, &t.n_pages, t.rules_at, &t, "pages run into the rules");
	check_hostile(cache, &t.n_pages, UINT32_MAX, &t, "pages overflow");
	check_hostile(cache, &t.rules_at, t.rules_at + 1, &t, "rules not aligned");
	check_hostile(cache, &t.rules_at, UINT32_MAX - 3, &t, "rules outside");
	check_hostile(cache, &t.n_rules, UNWIND_RULES_MAX + 1, &t, "too many rules");
	check_hostile(cache, &t.n_rules, t.n_rules + 1, &t, "rules run into the rows");
	check_hostile(cache, &t.n_rules, 1, &t, "too few rules");
	check_hostile(cache, &t.n_rows, t.n_rows + 1, &t, "rows run out of the words");
	check_hostile(cache, &t.rows_at, UINT32_MAX, &t, "rows overflow");
	free(words);
}

static void test_other_image(const struct cache *cache)
{
	struct elf_file *other;
	struct unwind_table table;
	struct fixture fixture = cache->fixture;

	ok(put(cache, cache->good, cache->n_good), "good file back");
	ok(fixture__run(&fixture, "cp tiny.so other.so && echo >>other.so"), "another size");
	other = fixture__open(&fixture, "other.so");
	is_int(other ? unwind_cache__load(cache->dir, other, &table) : -1, 0,
	       "is the same for a table");
	unwind_table__done(&table);
	if (other)
		other->build_id[0] ^= 1;
	is_int(other ? unwind_cache__load(cache->dir, other, &table) : 0, -ENOENT,
	       "another build-id");
	if (other)
		other->build_id_len = 0;
	ok(other && !unwind_table__get(other, cache->dir, NULL, &table, NULL), "no build-id");
	unwind_table__done(&table);
	is_int(count_files(cache), 1, "is not cached");
	elf_file__free(other);
}

/* Programs with the build-id and size of the program that the table was made from. */
static void test_forged(const struct cache *cache)
{
	static const struct {
		const char *name, *command;
	} forged[] = {
		{ "one byte of .eh_frame",
		  "n=$((0x$(readelf -SW tiny.so | sed -n 's/.* .eh_frame  *PROGBITS *[0-9a-f]* "
		  "*\\([0-9a-f]*\\).*/\\1/p') + 40)) && cp tiny.so forged.so && "
		  "printf '\\177' | dd of=forged.so bs=1 seek=$n conv=notrunc status=none" },
		{ "where .eh_frame is", "objcopy --change-section-address .eh_frame+16 tiny.so "
					"forged.so 2>/dev/null" },
		{ "where code is",
		  "gcc -O2 -shared -fPIC -nostdlib -o forged.so tiny.c -Wl,-z,noseparate-code "
		  "-Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567" },
	};

	for (size_t i = 0; i < sizeof(forged) / sizeof(*forged); i++) {
		struct fixture fixture = cache->fixture;
		struct unwind_table table = { 0 };
		struct elf_file *file = NULL;

		put(cache, cache->good, cache->n_good);
		if (ok(fixture__run(&fixture, forged[i].command), "%s", forged[i].name))
			file = fixture__open(&fixture, "forged.so");
		is_int(file ? unwind_cache__load(cache->dir, file, &table) : 0, -EBADMSG,
		       "the genuine program's table is not taken");
		ok(file && !unwind_table__get(file, cache->dir, NULL, &table, NULL),
		   "its own is made");
		unwind_table__done(&table);
		ok(get(cache, cache->dir), "and is not the genuine program's");
		elf_file__free(file);
	}
}

static void test_directory(const struct cache *cache)
{
	struct unwind_table table;
	char away[160];

	put(cache, cache->good, cache->n_good);
	chmod(cache->dir, 0777);
	is_int(load(cache), -EPERM, "a directory that others can write is not used");
	is_int(unwind_cache__store(cache->dir, cache->file, &cache->built), -EPERM,
	       "nor written to");
	ok(get(cache, cache->dir), "a table is built");
	chmod(cache->dir, 0700);
	if (geteuid() == 0 && chown(cache->dir, 1, 1) == 0)
		is_int(load(cache), -EPERM, "nor one of another user");
	else
		tap__skip("needs root", "a directory of another user");
	chown(cache->dir, geteuid(), -1);
	snprintf(away, sizeof(away), "%s.away", cache->dir);
	ok(!rename(cache->dir, away) && !symlink(away, cache->dir), "a link in its place");
	is_int(unwind_cache__load(cache->dir, cache->file, &table), -ENOTDIR, "is not followed");
	unlink(cache->dir);
	rename(away, cache->dir);
	is_int(load(cache), 0, "as it was");
}

static void test_untrusted(const struct cache *cache)
{
	char away[300];

	put(cache, cache->good, cache->n_good);
	is_int(load(cache), 0, "trusted");
	chmod(cache->path, 0620);
	is_int(load(cache), -EPERM, "writable by the group: not taken");
	chmod(cache->path, 0602);
	is_int(load(cache), -EPERM, "writable by others: not taken");
	ok(get(cache, cache->dir) && load(cache) == 0, "it is replaced");
	if (geteuid() == 0 && chown(cache->path, 1, 1) == 0)
		is_int(load(cache), -EPERM, "of another user: not taken");
	else
		tap__skip("needs root", "of another user");
	put(cache, cache->good, cache->n_good);
	snprintf(away, sizeof(away), "%s.away", cache->path);
	ok(!rename(cache->path, away) && !symlink(away, cache->path), "symbolic link");
	is_int(load(cache), -ELOOP, "not followed");
	ok(get(cache, cache->dir) && load(cache) == 0, "it is replaced");
	unlink(cache->path);
	ok(!mkfifo(cache->path, 0600), "fifo");
	is_int(load(cache), -EPERM, "not read");
	unlink(cache->path);
	unlink(away);
}

static void test_no_directory(const struct cache *cache)
{
	ok(get(cache, "/nonexistent/cache"), "a directory that is not there costs only the cache");
	ok(get(cache, "/proc/self/status"), "so does a file in its place");
	ok(get(cache, "/proc"), "and one that cannot be written");
	ok(get(cache, NULL), "none is wanted");
}

static bool race(const struct cache *cache)
{
	bool fine = true;

	for (int i = 0; i < RACES; i++) {
		if (i % 8 == 0)
			unlink(cache->path);
		fine &= get(cache, cache->dir);
		fine &= !unwind_cache__store(cache->dir, cache->file, &cache->built);
	}
	return fine;
}

static void test_race(const struct cache *cache)
{
	pid_t child;
	int status = -1;

	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(race(cache) ? 0 : 1);
	ok(race(cache), "two processes at once: ours got the table each time");
	ok(child > 0 && waitpid(child, &status, 0) == child && !status, "so did the other");
	is_int(load(cache), 0, "the file that is left is good");
	is_int(count_files(cache), 1, "and is the only one");
}

/* Files of 4,000 bytes, named by their last use. */
static void test_bounded(const struct cache *cache)
{
	ok(fixture__run(&cache->fixture, "cd cache && rm -f * && for n in 1 2 3 4; do "
					 "for f in 0$n.utab x$n.utab; do truncate -s 4000 $f; "
					 "touch -d 2020-01-0$n $f; done; "
					 "done; truncate -s 4000 05.utab.0123456789abcdef; "
					 "touch -d 2020-01-05 05.utab.0123456789abcdef; ln -s "
					 "04.utab 06.utab; mkdir 07.utab"),
	   "five tables, and others' files");
	is_int(unwind_cache__trim(cache->dir, 20000), 0, "no more than there may be");
	ok(fixture__run(&cache->fixture, "cd cache && test $(ls | wc -l) = 11"), "all of them");
	is_int(unwind_cache__trim(cache->dir, 19999), 0, "one byte too much");
	ok(fixture__run(
		   &cache->fixture,
		   "cd cache && test \"$(echo *)\" = '03.utab 04.utab 05.utab.0123456789abcdef "
		   "06.utab 07.utab x1.utab x2.utab x3.utab x4.utab'"),
	   "those that were used last are left, and all that is not ours");
	is_int(unwind_cache__trim("/nonexistent/cache", 0), -ENOENT, "no directory");
}

int main(void)
{
	struct cache cache = { 0 };

	ok(fixture__begin(&cache.fixture), "temporary directory");
	snprintf(cache.dir, sizeof(cache.dir), "%s/cache", cache.fixture.dir);
	fixture__write(&cache.fixture, "tiny.c",
		       "void f(int *);\n"
		       "int g(void) { int i[9]; f(i); return i[0]; }\n");
	if (!ok(!mkdir(cache.dir, 0700) &&
			fixture__run(&cache.fixture,
				     "gcc -O2 -shared -fPIC -nostdlib -o tiny.so tiny.c "
				     "-Wl,--build-id=0x0123456789abcdef0123456789abcdef01234567"),
		"tiny library"))
		goto out;
	cache.file = fixture__open(&cache.fixture, "tiny.so");
	if (!ok(cache.file && !unwind_table__build(cache.file, &cache.built, NULL), "its table"))
		goto out;
	test_round_trip(&cache);
	test_damaged(&cache);
	test_hostile(&cache);
	test_other_image(&cache);
	test_forged(&cache);
	test_directory(&cache);
	test_untrusted(&cache);
	test_no_directory(&cache);
	test_race(&cache);
	test_bounded(&cache);
out:
	unwind_table__done(&cache.built);
	elf_file__free(cache.file);
	free(cache.good);
	fixture__end(&cache.fixture);
	return tap__done();
}
