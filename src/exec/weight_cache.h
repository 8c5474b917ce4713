/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of weights in files, which later runs map instead of making them again.
 *
 * A file is named by a digest of all that its block is made of, except for elements that lie in the files of the
 * model: reading those would take longer than to make the block.  Instead the file has the state of these
 * files (device, inode, size, times) and a hash of the elements.  If the state is the same, and was old
 * enough when it was taken that a later change has another time, the block is valid; otherwise the hash
 * decides.
 *
 * A file is a page with a head, and the block; it is written under a temporary name and renamed.  The head has a
 * digest of its own.  The block is verified by a hash if it has at most 16 MiB: larger ones are mapped and not
 * read as a whole.  Files are in the format of the machine. */
#ifndef OM_WEIGHT_CACHE_H
#define OM_WEIGHT_CACHE_H

#include "base/sha256.h"
#include "onnxmem/status.h"

struct om_weight_cache {
	om_session *session;
	const char *folder;
	char key[OM_SHA256_TEXT];
	char files[OM_SHA256_TEXT];  /* the digest of the state of the files of the model */
	bool is_settled;             /* a later change of them has another time */
	uint64_t bytes;              /* of the block */
	uint64_t (*hash)(void *arg); /* of the elements in these files */
	void *arg;
	void *map;                   /* the file; NULL: not open */
};

/* Map the file, until om_weight_cache_close().  False, with `map` NULL, if there is none that is valid; anything but its absence is logged. */
bool om_weight_cache_open(struct om_weight_cache *c);
/* The block in the mapped file: aligned to 4096 bytes, read-only. */
void *om_weight_cache_block(const struct om_weight_cache *c);

void om_weight_cache_close(struct om_weight_cache *c);

/* Write the file, in a folder that is made if its parent exists.  A failure is logged. */
void om_weight_cache_write(struct om_weight_cache *c, const void *block);

#endif
