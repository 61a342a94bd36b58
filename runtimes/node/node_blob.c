// SPDX-License-Identifier: GPL-2.0-or-later
/* The build of V8 embeds two pieces of bytes into the file (src/snapshot/embedded/ of V8): code,
 * and a description of it, which begins with the checksums of both. Behind the description, in
 * .rodata, are the sizes of both pieces, 32 bits each. So a pair of words holds these sizes if the
 * bytes before it have the checksum with which they begin.
 *
 * Without a symbol, the start of the code is found by its checksum: it is the place in .text at
 * which that number of bytes has the checksum of the code. The checksum is Adler-32 from 0. Its two
 * sums move along with a window by a few additions a byte, so that one pass tries all places. */
#include "runtimes/node/node_blob.h"

#include <errno.h>
#include <string.h>

#include "core/base/quota.h"
#include "core/base/util.h"

#define MODULUS	       65521
#define CODE_ALIGNMENT 64 /* kCodeAlignment */

#define CODE_BYTES_MIN (256U << 10)
#define CODE_BYTES_MAX (64U << 20)
#define DATA_BYTES_MIN (4U << 10)
#define DATA_BYTES_MAX (16U << 20)

/* The description begins with two checksums of 64 bits: its own, and the code's. Its own checksum
 * covers the bytes after both. */
#define DATA_HASH 0
#define CODE_HASH 8
#define HASHED	  16

struct adler {
	uint32_t sum, weighted;
};

static void adler__add(struct adler *adler, uint8_t byte)
{
	adler->sum += byte;
	if (adler->sum >= MODULUS)
		adler->sum -= MODULUS;
	adler->weighted += adler->sum;
	if (adler->weighted >= MODULUS)
		adler->weighted -= MODULUS;
}

static uint32_t adler__value(const struct adler *adler)
{
	return adler->weighted << 16 | adler->sum;
}

static uint32_t checksum(const uint8_t *bytes, size_t n)
{
	struct adler adler = {};

	for (size_t i = 0; i < n; i++)
		adler__add(&adler, bytes[i]);
	return adler__value(&adler);
}

static uint64_t word_at(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

struct blob {
	uint32_t code_bytes;
	uint32_t code_hash;
};

/* Returns true if the two sizes at @at belong to a description directly before them. */
static bool read_blob(const uint8_t *bytes, size_t at, struct blob *ret)
{
	uint64_t sizes = word_at(bytes + at), data_hash, code_hash;
	uint32_t code_bytes = sizes, data_bytes = sizes >> 32;
	const uint8_t *data;

	if (code_bytes < CODE_BYTES_MIN || code_bytes > CODE_BYTES_MAX ||
	    data_bytes < DATA_BYTES_MIN || data_bytes > DATA_BYTES_MAX || data_bytes > at)
		return false;
	data = bytes + at - data_bytes;
	data_hash = word_at(data + DATA_HASH);
	code_hash = word_at(data + CODE_HASH);
	if (data_hash > UINT32_MAX || code_hash > UINT32_MAX || !data_hash || !code_hash ||
	    checksum(data + HASHED, data_bytes - HASHED) != data_hash)
		return false;
	*ret = (struct blob) { code_bytes, code_hash };
	return true;
}

/* Finds the description. Returns 1; 0 if there is none; or an error of quota__look(). */
static int find_blob(const Elf_Data *data, struct blob *ret)
{
	const uint8_t *bytes = data->d_buf;
	int rc = 0;

	for (size_t at = 0; !rc && at + sizeof(uint64_t) <= data->d_size; at += sizeof(uint32_t)) {
		if (at % (1 << 16) == 0)
			rc = quota__look();
		if (!rc && read_blob(bytes, at, ret))
			return 1;
	}
	return rc;
}

/* Sets @ret_at to the first place whose bytes have the checksum. Returns 1; 0 if there is none; or
 * an error of quota__look(). */
static int find_code(const Elf_Data *text, uint64_t vaddr, const struct blob *blob, size_t *ret_at)
{
	const uint8_t *bytes = text->d_buf;
	struct adler adler = {};
	uint32_t dropped[256]; /* share of each byte value at the window's start in the weighted sum
				*/
	int rc = 0;

	for (uint32_t i = 0; i < ARRAY_SIZE(dropped); i++)
		dropped[i] = (uint64_t)blob->code_bytes * i % MODULUS;
	for (size_t i = 0; !rc && i < text->d_size; i++) {
		size_t at = i + 1 - blob->code_bytes;

		if (i % (1 << 16) == 0)
			rc = quota__look();
		if (i >= blob->code_bytes) {
			uint8_t first = bytes[i - blob->code_bytes];

			adler.sum += MODULUS - first;
			if (adler.sum >= MODULUS)
				adler.sum -= MODULUS;
			adler.weighted += MODULUS - dropped[first];
			if (adler.weighted >= MODULUS)
				adler.weighted -= MODULUS;
		}
		adler__add(&adler, bytes[i]);
		if (i + 1 < blob->code_bytes || (vaddr + at) % CODE_ALIGNMENT ||
		    adler__value(&adler) != blob->code_hash)
			continue;
		*ret_at = at;
		return 1;
	}
	return rc;
}

int node_blob__find(const struct elf_file *file, struct runtime_range *ret)
{
	Elf_Data *data = elf_file__section(file, ".rodata", NULL), *text;
	struct blob blob;
	GElf_Shdr shdr;
	size_t at;
	int rc;

	*ret = (struct runtime_range) {};
	text = elf_file__section(file, ".text", &shdr);
	if (!data || !text)
		return 0;
	rc = find_blob(data, &blob);
	if (rc > 0)
		rc = find_code(text, shdr.sh_addr, &blob, &at);
	if (rc > 0)
		*ret = (struct runtime_range) { shdr.sh_addr + at,
						shdr.sh_addr + at + blob.code_bytes };
	return min_of(rc, 0);
}
