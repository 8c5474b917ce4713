/* SPDX-License-Identifier: Apache-2.0 */
/* A driver of CUDA and an NVRTC for tests: one library that is loaded under both names.
 *
 * It runs what the module asks for on the simulated device, whose kernels are the same ones as C: streams in drawn orders,
 * commands as late as a wait requires.  Addresses that it gives are of no memory of the host.  Every call must be made with
 * a current context, every address be inside of a live allocation, and what was made be freed before the context is released.
 *
 * MOCK_CUDA has words NAME=VALUE with commas between them:
 *   devices=N driver=N arch=N  what the driver says [1, 13000, 90]
 *   fail=NAME:N:CODE           the Nth call of a function returns CODE
 *   missing=NAME               the driver does not have it
 *   late=N:CODE                launch N fails when it runs: the next wait, and all later calls, return CODE
 *   nvrtc=N                    the version of the compiler, as 13 [13]
 *   seed=N                     of the orders
 *   elsewhere=BYTES            allocations of this size are on device 1, for those who ask
 *   trace=FILE                 gets the names of all calls, in their order
 *   report=FILE                gets a line for each function, with the number of its calls, when a context is released, and
 *                              a line "leak WHAT N" for what is left then */
#ifndef MOCK_H
#define MOCK_H

#include <stdbool.h>
#include <stdio.h>

#include "kernels/cuda/driver.h"
#include "onnxmem/status.h"

enum { MOCK_TEXT = 128, MOCK_FUNCTIONS = 64, MOCK_NOT_FOUND = 500, MOCK_INVALID_CONTEXT = 201, MOCK_ILLEGAL_ADDRESS = 700 };

/* Count a call; not 0: what it returns instead of working. */
int mock_call(const char *name);
/* The value of a word of MOCK_CUDA; NULL: it is not there.  The text is valid until the next call. */
const char *mock_word(const char *name);
/* The same as a number. */
long mock_number(const char *name, long otherwise);
/* Lines of the calls. */
void mock_report_calls(FILE *to);

/* What is looked for by its name: this function of the driver, and all of NVRTC. */
OM_API cu_result cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *found);
#define MOCK_DECLARE(name, result, parameters) OM_API result name parameters;
OM_CUDA_NVRTC(MOCK_DECLARE)

#endif
