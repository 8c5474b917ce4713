/* libFuzzer target for the reader of programs in textual form; built as described in load.c. */
#include <config.h>

#include "take.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();

	if (size)
		take_text(s, data, size);
	om_session_free(s);
	return 0;
}
