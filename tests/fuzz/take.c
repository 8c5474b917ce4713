/* SPDX-License-Identifier: Apache-2.0 */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "onnx/model.h"
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

/* The plan of a model, read into a new program of it, is verified; a plan of ours has to be good. */
static void
read_back(om_session *s, om_model *m, bool is_ours)
{
	om_prog *p;

	if (!went(s, om_model_import(s, m, &p))) {
		insist(!is_ours, om_message(s));
		return;
	}
	const om_status st = om_model_read_plan(s, m, p, NULL);
	const bool good = went(s, st) && went(s, om_plan_verify(s, p, p->plan));
	/* an inlined function may have ops that the model's newer opset lacks */
	insist(good || !is_ours || st == OM_UNSUPPORTED, om_message(s));
	om_prog_free(p);
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
	if (!went(s, om_model_annotate(s, m, p, OM_ANNOTATE_MODEL)))
		return PLANNED;
	read_back(s, m, true);
	return went(s, om_model_save(s, m, "/dev/null")) ? WRITTEN : PLANNED;
}

static uint8_t *
packed(const ProtobufCMessage *m, size_t *n)
{
	*n = protobuf_c_message_get_packed_size(m);
	uint8_t *to = malloc(*n + 1);

	insist(to != NULL, "no memory for messages");
	protobuf_c_message_pack(m, to);
	return to;
}

/* Raw data that stays where it is makes no difference to the messages, or to what is refused. */
static void
unpack_in_place(om_session *s, const void *data, size_t size)
{
	const ProtobufCMessageDescriptor *d = &onnx__model_proto__descriptor;
	om_model *m = om_model_new("sent", NULL);
	ProtobufCMessage *copied, *in_place;
	const om_status st = om_model_unpack(s, m, d, data, size, &copied);

	for (size_t large = 0; large <= 64; large += 32) {
		size_t na, nb;
		insist(om_model_unpack_in_place(s, m, d, data, size, large, &in_place) == st, "data in place is refused otherwise");
		if (st != OM_OK)
			continue;
		uint8_t *a = packed(copied, &na), *b = packed(in_place, &nb);
		insist(na == nb && memcmp(a, b, na) == 0, "data in place differs");
		free(a);
		free(b);
	}
	om_model_free(m);
}

enum taken
take_model(om_host *h, om_session *s, const void *data, size_t size, const char *folder)
{
	enum taken far = REFUSED;
	om_model *m;
	om_prog *p;

	unpack_in_place(s, data, size);
	om_fail(s, OM_INVALID, "%s", "");   /* no message is left of another model */
	if (!went(s, om_model_load_memory(s, data, size, "sent", folder, &m)))
		return far;
	far = LOADED;
	if (om_model_has_plan(m))
		read_back(s, m, false);
	if (went(s, om_model_import(s, m, &p))) {
		far = plan(h, s, m, p);
		om_prog_free(p);
	}
	om_model_free(m);
	return far;
}

bool
take_text(om_session *s, const void *data, size_t size, FILE *out)
{
	bool good = false;
	om_prog *p;
	FILE *in = fmemopen((void *)data, size, "r");

	insist(in && out, "no memory for files");
	if (went(s, om_parse(s, in, "sent", &p))) {
		/* a text may parse and not be a valid program: the verifier decides */
		good = om_verify(s, p) == OM_OK;
		insist(good || *om_message(s), "a refusal without a sentence");
		if (good)
			om_dump(p, out, OM_DUMP_ALL_DATA);
		om_prog_free(p);
	}
	fclose(in);
	return good;
}
