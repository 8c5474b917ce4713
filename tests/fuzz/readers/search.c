/* SPDX-License-Identifier: Apache-2.0 */
/* The target that it is linked with, as libFuzzer calls it. */
#include <config.h>

#include "reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	reader_takes(data, size);
	return 0;
}
