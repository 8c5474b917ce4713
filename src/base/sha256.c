/* SPDX-License-Identifier: Apache-2.0 */
/* A thin wrapper around libmd, the only code that includes it. */
#include <config.h>

#include <stdint.h>
#include <sys/types.h>

#include <sha256.h>

#include "base/hex.h"
#include "base/sha256.h"

struct om_sha256 {
	SHA256_CTX context;
};

om_sha256 *
om_sha256_new(om_arena *mem)
{
	om_sha256 *h = OM_NEW(mem, om_sha256);

	SHA256_Init(&h->context);
	return h;
}

void
om_sha256_add(om_sha256 *h, const void *p, size_t n)
{
	if (n)
		SHA256_Update(&h->context, p, n);
}

void
om_sha256_end(om_sha256 *h, char text[OM_SHA256_TEXT])
{
	unsigned char bytes[OM_SHA256_BYTES];

	SHA256_Final(bytes, &h->context);
	om_hex_write(bytes, sizeof bytes, text);
}
