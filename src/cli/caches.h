/* SPDX-License-Identifier: Apache-2.0 */
/* Caches with spare rows (pass `capacity`): files have the rows of the model, and runs use buffers. */
#ifndef OM_CLI_CACHES_H
#define OM_CLI_CACHES_H

#include "cli/cli.h"

/* Put the rows of caches in `in`, by input, into buffers, whose spare rows consist of bytes `spare`. */
void om_cli_spread_caches(const om_cli *c, om_tensor *in, int spare);

/* Replace the buffers in `out`, by output, by tensors that have the rows of the model alone. */
void om_cli_gather_caches(const om_cli *c, const om_tensor **out);

#endif
