#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "onnxmem/onnx.h"
#include "take.h"
#include "exec/runnable.h"
#include "tests/bind.h"

static void
insist(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static bool
went(om_session *s, om_status st)
{
	insist(st == OM_OK || *om_message(s), "a refusal without a sentence");
	insist(st != OM_IR && st != OM_NOPASS, om_message(s));
	return st == OM_OK;
}

static enum taken
plan(om_host *h, om_session *s, om_model *m, om_prog *p)
{
	char hex[80];

	insist(om_verify(s, p) == OM_OK, om_message(s));
	went(s, om_model_digest(s, m, false, hex));
	om_prog_is_runnable(s, p);
	if (!went(s, bind_rest(s, p, 1)) || !went(s, om_host_run(h, p, om_default_pipeline())))
		return IMPORTED;
	insist(om_verify(s, p) == OM_OK, om_message(s));
	insist(om_plan_verify(s, p, p->plan) == OM_OK, om_message(s));
	if (!went(s, om_model_update(s, m, p)) || !went(s, om_model_save(s, m, "/dev/null")))
		return PLANNED;
	return WRITTEN;
}

enum taken
take_model(om_host *h, om_session *s, const void *data, size_t size, const char *folder)
{
	enum taken far = REFUSED;
	om_model *m;
	om_prog *p;

	if (!went(s, om_model_load_memory(s, data, size, "sent", folder, &m)))
		return far;
	far = LOADED;
	if (went(s, om_model_import(s, m, &p))) {
		far = plan(h, s, m, p);
		om_prog_free(p);
	}
	om_model_free(m);
	return far;
}

void
take_text(om_session *s, const void *data, size_t size)
{
	om_prog *p;
	FILE *in = fmemopen((void *)data, size, "r"), *out = fopen("/dev/null", "w");

	insist(in && out, "no memory for files");
	const om_status st = om_parse(s, in, "sent", &p);
	insist(st == OM_OK || *om_message(s), "a refusal without a sentence");
	if (st == OM_OK) {
		/* a text may parse and not be a valid program: the verifier decides */
		if (om_verify(s, p) == OM_OK)
			om_dump(p, out, OM_DUMP_ALL_DATA);
		else
			insist(*om_message(s), "a refusal without a sentence");
		om_prog_free(p);
	}
	fclose(in);
	fclose(out);
}
