/* SPDX-License-Identifier: Apache-2.0 */
/* Little-endian integers in files, and byte ranges of files. */
#ifndef OM_BYTES_H
#define OM_BYTES_H

#include "onnxmem/tensor.h"

struct om_bytes {
	unsigned char *data;
	size_t size;
};

static inline uint16_t
om_u16(const unsigned char *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t
om_u32(const unsigned char *p)
{
	return om_u16(p) | (uint32_t)om_u16(p + 2) << 16;
}

static inline uint64_t
om_u64(const unsigned char *p)
{
	return om_u32(p) | (uint64_t)om_u32(p + 4) << 32;
}

static inline void
om_put_u16(unsigned char *p, uint16_t v)
{
	p[0] = (unsigned char)v;
	p[1] = (unsigned char)(v >> 8);
}

static inline void
om_put_u32(unsigned char *p, uint32_t v)
{
	om_put_u16(p, (uint16_t)v);
	om_put_u16(p + 2, (uint16_t)(v >> 16));
}

/* Serialize a tensor as a .npy file, allocated from `mem`. */
om_status om_npy_bytes(om_session *s, const om_tensor *t, const char *where, om_arena *mem,
	struct om_bytes *out);

/* Write `n` byte ranges as one file. */
om_status om_file_write(om_session *s, const char *path, const struct om_bytes *b, size_t n);

#endif
