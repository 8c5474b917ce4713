/* Programs out of texts. */
#include <config.h>

#include <stdio.h>
#include <string.h>

#include "unit.h"

om_status
unit_parse(om_session *s, const char *text, om_prog **p)
{
	FILE *in = fmemopen((void *)text, strlen(text), "r");
	const om_status st = om_parse(s, in, "test", p);

	fclose(in);
	return st;
}
