/* SPDX-License-Identifier: Apache-2.0 */
/* Models for tests to run, and what they are run on. */
#ifndef FEED_H
#define FEED_H

#include "tests/fixtures.h"

/* Fill in what the files in test_data_set_0 beside `file` say of inputs, where they are there, and give all dims a
 * number. */
om_status feed_shapes(bench *r, const char *file, om_tensor *in);
/* Make an executor, and run it; inputs that nothing is known about are random numbers. */
om_status feed_run(bench *r, om_tensor *in);

#endif
