/* Models for tests to run, and what they are run on. */
#ifndef FEED_H
#define FEED_H

#include "onnxmem/executor.h"
#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

struct feed {
	om_session *s;
	om_arena *mem;
	const char *file;            /* test_data_set_0 beside it has inputs, where it is there */
	om_model *model;
	om_prog *prog;
	om_exec *exec;
};

om_status feed_load(struct feed *r, const char *file);
void feed_end(struct feed *r);

/* Fill in what the files say of inputs, and give all dims a number. */
om_status feed_shapes(struct feed *r, om_tensor *in);
/* Make an executor, and run it; inputs that nothing is known about are numbers from dice. */
om_status feed_run(struct feed *r, om_tensor *in);

#endif
