// SPDX-License-Identifier: GPL-2.0-or-later
/* Compressed sections, whole and damaged: made by objcopy in each of its formats, and made here
 * with libzstd and zlib. */
#include <endian.h>
#include <errno.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>

#include "core/base/quota.h"
#include "core/base/util.h"
#include "core/elf/elf_inflate.h"
#include "core/elf/symbols.h"
#include "tests/hostile_elf.h"
#include "tests/tap.h"
#include "tests/unit/workdir.h"

/* --- files of objcopy --- */

static const char source[] =
	"volatile int sink;\n"
	"static inline __attribute__((always_inline)) void inner(int x) { sink += x * 3; }\n"
	"void outer(int x)\n"
	"{\n"
	"	inner(x);\n"
	"}\n"
	"int main(int argc, char **argv) { outer(argc); return !argv; }\n";

static struct elf_file *open_file(const char *name)
{
	struct elf_file *file = NULL;
	struct err err = { "" };

	if (elf_file__open(workdir__open(name), name, &file, &err)) {
		printf("Bail out! %s\n", err.text);
		exit(1);
	}
	return file;
}

static void check_format(const char *format)
{
	struct symbol_frame frames[SYMBOL_INLINES_MAX] = {};
	uint64_t start = 0, size = 0;
	struct symbols *symbols;
	struct elf_file *file;
	int n = 0;

	if (!workdir__try("objcopy --compress-debug-sections=%s plain packed 2>/dev/null",
			  format)) {
		tap__skip("this objcopy cannot", "%s", format);
		return;
	}
	file = open_file("packed");
	if (!symbols__new(file, "", &symbols) &&
	    !elf_file__find_symbol(file, "outer", &start, &size))
		for (uint64_t at = start; at < start + size && n != 2; at++)
			n = symbols__resolve(symbols, at, frames, ARRAY_SIZE(frames));
	is_int(n, 2, "%s: a call is inlined", format);
	is_str(frames[0].function, "inner", "%s: its name", format);
	is_int(frames[0].line, 2, "%s: its line", format);
	is_int(frames[1].line, 5, "%s: the line of the call", format);
	symbols__free(symbols);
	elf_file__free(file);
}

static void test_formats(void)
{
	static const char *const formats[] = { "none", "zlib", "zlib-gabi", "zlib-gnu", "zstd" };

	workdir__write("a.c", source);
	workdir__run("gcc -g -O2 -o plain a.c");
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		check_format(formats[i]);
	workdir__run("objcopy --compress-debug-sections=zlib-gnu plain gnu && "
		     "objcopy --only-keep-debug gnu gnu.debug && strip gnu");
	elf_file__free(open_file("gnu.debug"));
}

/* --- sections made here --- */

#define DATA_AT	   0x10000
#define HEADERS_AT 0x8000
#define ROOM	   (4U << 20)
#define CONTENTS   (1U << 20)

static uint8_t contents[CONTENTS];

struct synthetic {
	uint8_t *data; /* contents of the section, ROOM bytes */
	size_t size;
	int fd;
};

static struct synthetic make(void)
{
	struct synthetic synthetic = { .fd = memfd_create("made", MFD_CLOEXEC) };

	if (synthetic.fd < 0 || ftruncate(synthetic.fd, DATA_AT + ROOM))
		exit(1);
	synthetic.data =
		mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_SHARED, synthetic.fd, DATA_AT);
	if (synthetic.data == MAP_FAILED)
		exit(1);
	return synthetic;
}

static void put_header(struct synthetic *synthetic, uint32_t type, uint64_t size)
{
	memcpy(synthetic->data,
	       &(Elf64_Chdr) { .ch_type = type, .ch_size = size, .ch_addralign = 1 },
	       sizeof(Elf64_Chdr));
	synthetic->size = max_of(synthetic->size, sizeof(Elf64_Chdr));
}

/* Appends one frame. If @sized, its header contains the size of the contents. */
static void put_frame(struct synthetic *synthetic, const void *from, size_t n, int level,
		      bool sized)
{
	ZSTD_CCtx *zstd = ZSTD_createCCtx();
	ZSTD_inBuffer in = { from, n, 0 };
	ZSTD_outBuffer out = { synthetic->data + synthetic->size, ROOM - synthetic->size, 0 };

	ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, level);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, sized);
	ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, !sized);
	if (!sized) /* a flush first, so that the size is unknown when the frame begins */
		ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush);
	if (ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_end))
		exit(1);
	synthetic->size += out.pos;
	ZSTD_freeCCtx(zstd);
}

/* Reads section @name. Returns 0 if the contents are right, 1 if they are wrong, or an error of
 * elf_section__find() or elf_section__read(). */
static int read_back(const struct synthetic *synthetic, const char *name, uint64_t flags)
{
	struct hostile_section section = {
		name, SHT_PROGBITS, 0, flags, 0, DATA_AT, synthetic->size
	};
	struct elf_section found;
	struct elf_file *file;
	uint8_t *to = malloc(CONTENTS + 16);
	int rc;

	if (!hostile_elf__write(synthetic->fd, NULL, 0, &section, 1, HEADERS_AT) ||
	    elf_file__open(dup(synthetic->fd), "/made", &file, NULL))
		exit(1);
	rc = elf_section__find(file, ".debug_info", &found);
	if (!rc && found.size > CONTENTS + 16)
		rc = -EFBIG;
	if (!rc)
		rc = elf_section__read(file, &found, to);
	if (!rc)
		rc = found.size != CONTENTS || memcmp(to, contents, CONTENTS) != 0;
	free(to);
	elf_file__free(file);
	return rc;
}

static void end(struct synthetic *synthetic)
{
	munmap(synthetic->data, ROOM);
	close(synthetic->fd);
}

static void test_zstd(void)
{
	static const int levels[] = { 1, 3, 19, 22 };
	struct synthetic synthetic = make();
	size_t whole;

	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		/* Linkers store the size; without a size, level 22 requires a window of 128 MiB. */
		for (int sized = levels[i] > 19; sized < 2; sized++) {
			synthetic.size = 0;
			put_header(&synthetic, ELFCOMPRESS_ZSTD, CONTENTS);
			put_frame(&synthetic, contents, CONTENTS, levels[i], sized);
			is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), 0,
			       "level %d, size %sknown", levels[i], sized ? "" : "un");
		}
	}
	synthetic.size = 0;
	put_header(&synthetic, ELFCOMPRESS_ZSTD, CONTENTS);
	for (size_t at = 0; at < CONTENTS; at += CONTENTS / 8)
		put_frame(&synthetic, contents + at, CONTENTS / 8, 3, at & 1);
	is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), 0, "several frames");
	whole = synthetic.size;
	for (size_t cut = 1; cut < 100; cut += 7) {
		synthetic.size = whole - cut;
		is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), -EBADMSG,
		       "%zu bytes are missing", cut);
	}
	synthetic.size = whole;
	put_header(&synthetic, ELFCOMPRESS_ZSTD, CONTENTS - 1);
	is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), -EBADMSG, "a size too small");
	put_header(&synthetic, ELFCOMPRESS_ZSTD, CONTENTS + 1);
	is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), -EBADMSG, "a size too large");
	put_header(&synthetic, ELFCOMPRESS_ZSTD, 1ULL << 60);
	is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), -EBADMSG,
	       "an impossible size");
	put_header(&synthetic, ELFCOMPRESS_ZSTD + 1, CONTENTS);
	is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), -EBADMSG, "an unknown method");
	put_header(&synthetic, ELFCOMPRESS_ZSTD, CONTENTS);
	synthetic.data[whole / 2] ^= 0xff;
	ok(read_back(&synthetic, ".debug_info", SHF_COMPRESSED) != 0, "a byte is wrong");
	is_int(quota__retained(), 0, "no memory is left charged");
	end(&synthetic);
}

/* More history than any linker uses: the decoder would allocate 1 GiB. */
static void test_window(void)
{
	struct synthetic synthetic = make();

	put_header(&synthetic, ELFCOMPRESS_ZSTD, CONTENTS);
	/* magic number; no content size, no checksum; window of 2^30 bytes; a last block, raw */
	memcpy(synthetic.data + synthetic.size, "\x28\xb5\x2f\xfd\x00\xa0\x01\x00\x00", 9);
	synthetic.size += 9;
	is_int(read_back(&synthetic, ".debug_info", SHF_COMPRESSED), -EBADMSG, "a window of 1 GiB");
	end(&synthetic);
}

static void test_gnu(void)
{
	struct synthetic synthetic = make();
	uint64_t size = htobe64(CONTENTS);
	uLongf n = ROOM - 12;

	compress2(synthetic.data + 12, &n, contents, CONTENTS, 6);
	memcpy(synthetic.data, "ZLIB", 4);
	memcpy(synthetic.data + 4, &size, sizeof(size));
	synthetic.size = 12 + n;
	is_int(read_back(&synthetic, ".zdebug_info", 0), 0, ".zdebug_info");
	is_int(read_back(&synthetic, ".zdebug_line", 0), -ENOENT, "another name");
	is_int(read_back(&synthetic, ".zdebug_infos", 0), -ENOENT, "a longer name");
	synthetic.size--;
	is_int(read_back(&synthetic, ".zdebug_info", 0), -EBADMSG, "the end is missing");
	synthetic.size++;
	size = htobe64(1ULL << 60);
	memcpy(synthetic.data + 4, &size, sizeof(size));
	is_int(read_back(&synthetic, ".zdebug_info", 0), -EBADMSG, "an impossible size");
	memcpy(synthetic.data, "BLIZ", 4);
	is_int(read_back(&synthetic, ".zdebug_info", 0), -EBADMSG, "no header");
	synthetic.size = 11;
	is_int(read_back(&synthetic, ".zdebug_info", 0), -EBADMSG, "half a header");
	end(&synthetic);
}

int main(void)
{
	workdir__make();
	/* Text with repetitions, and noise that no method compresses. */
	for (size_t i = 0; i < CONTENTS; i++)
		contents[i] = i % 4096 < 1024 ? (size_t)rand() : (i / 4096) + i % 61;
	test_formats();
	test_zstd();
	test_window();
	test_gnu();
	return tap__done();
}
