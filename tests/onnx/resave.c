/* SPDX-License-Identifier: Apache-2.0 */
/* Loads models and saves them again: resave HOW FOLDER FILE...
 *
 * HOW is `plain`, or `update`: through a program and back, or a pipeline to run
 * on that program.  The k-th file becomes FOLDER/k.onnx.  A model that is
 * refused is a line on standard output and no file. */
#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "onnxmem/onnx.h"
#include "onnxmem/pass.h"

static om_status
through_program(om_session *s, om_model *m, const char *how)
{
	om_prog *p;

	OM_TRY(om_model_import(s, m, &p));
	om_status st = om_verify(s, p);
	if (st == OM_OK && strcmp(how, "update") != 0) {
		om_host *h = om_host_new(s, NULL);
		st = om_host_run(h, p, how);
		om_host_free(h);
		if (st == OM_OK)
			st = om_verify(s, p);
	}
	if (st == OM_OK)
		st = om_model_update(s, m, p);
	om_prog_free(p);
	return st;
}

static om_status
resave(om_session *s, const char *how, const char *from, const char *to)
{
	om_model *m;

	OM_TRY(om_model_load(s, from, &m));
	om_status st = strcmp(how, "plain") == 0 ? OM_OK : through_program(s, m, how);
	if (st == OM_OK)
		st = om_model_save(s, m, to);
	om_model_free(m);
	return st;
}

int
main(int argc, char **argv)
{
	om_session *s = om_session_new();
	char to[4096];

	for (int k = 3; k < argc; k++) {
		snprintf(to, sizeof to, "%s/%d.onnx", argv[2], k - 3);
		if (resave(s, argv[1], argv[k], to) != OM_OK)
			printf("%s: %s\n", argv[k], om_message(s));
	}
	om_session_free(s);
	return EXIT_SUCCESS;
}
