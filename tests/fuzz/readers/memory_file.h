/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory, for readers that are given a path. */
#ifndef OM_MEMORY_FILE_H
#define OM_MEMORY_FILE_H

#include <stddef.h>
#include <stdint.h>

/* The path of a file with these contents, which the next call replaces. */
const char *memory_file(const uint8_t *data, size_t size);

#endif
