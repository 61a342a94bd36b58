/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef BRAID_CFI_READER_H
#define BRAID_CFI_READER_H

#include <dwarf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Bounded reading of untrusted bytes. A read beyond the end returns 0 and sets @bad permanently. */
struct cfi_reader {
	const uint8_t *at, *end;
	bool bad;
};

static inline uint64_t cfi_reader__fail(struct cfi_reader *in)
{
	in->bad = true;
	in->at = in->end;
	return 0;
}

static inline void cfi_reader__skip(struct cfi_reader *in, uint64_t n)
{
	if (n > (uint64_t)(in->end - in->at))
		cfi_reader__fail(in);
	else
		in->at += n;
}

/* Reads a number of @n_bytes bytes, little-endian as the host. */
static inline uint64_t cfi_reader__uint(struct cfi_reader *in, unsigned int n_bytes)
{
	uint64_t value = 0;

	if (n_bytes > (uint64_t)(in->end - in->at))
		return cfi_reader__fail(in);
	memcpy(&value, in->at, n_bytes);
	in->at += n_bytes;
	return value;
}

static inline int64_t cfi_reader__int(struct cfi_reader *in, unsigned int n_bytes)
{
	unsigned int unused_bits = 64 - 8 * n_bytes;

	return (int64_t)(cfi_reader__uint(in, n_bytes) << unused_bits) >> unused_bits;
}

static inline uint64_t cfi_reader__leb(struct cfi_reader *in, bool sign)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		if (in->at >= in->end)
			return cfi_reader__fail(in);
		byte = *in->at++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (sign && shift < 64 && byte & 0x40)
		value |= ~0ULL << shift;
	return value;
}

static inline uint64_t cfi_reader__uleb(struct cfi_reader *in)
{
	return cfi_reader__leb(in, false);
}

static inline int64_t cfi_reader__sleb(struct cfi_reader *in)
{
	return (int64_t)cfi_reader__leb(in, true);
}

/* Reads a value in one of the DW_EH_PE_* formats. The caller applies the base. */
static inline uint64_t cfi_reader__encoded(struct cfi_reader *in, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return cfi_reader__uint(in, 8);
	case DW_EH_PE_uleb128:
		return cfi_reader__uleb(in);
	case DW_EH_PE_sleb128:
		return cfi_reader__sleb(in);
	case DW_EH_PE_udata2:
		return cfi_reader__uint(in, 2);
	case DW_EH_PE_sdata2:
		return cfi_reader__int(in, 2);
	case DW_EH_PE_udata4:
		return cfi_reader__uint(in, 4);
	case DW_EH_PE_sdata4:
		return cfi_reader__int(in, 4);
	default:
		return cfi_reader__fail(in);
	}
}

/* Reads an address. @bias converts the reader's position to a link-time address. Code addresses on
 * x86-64 are never relative to text, data or function start, so these are malformed. */
static inline uint64_t cfi_reader__address(struct cfi_reader *in, uint8_t encoding, uint64_t bias)
{
	uint64_t from = (uintptr_t)in->at + bias;

	switch (encoding & 0xf0) {
	case DW_EH_PE_absptr:
		return cfi_reader__encoded(in, encoding);
	case DW_EH_PE_pcrel:
		return from + cfi_reader__encoded(in, encoding);
	default:
		return cfi_reader__fail(in);
	}
}

#endif
