/* libFuzzer target for the model reader:
 *
 *	./configure CC=clang CFLAGS='-g -O1 -fsanitize=fuzzer-no-link,address,undefined'
 *	make fuzz && tests/fuzz/load CORPUS models
 */
#include <config.h>

#include "take.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	om_session *s = om_session_new();
	om_host *h = om_host_new(s, NULL);

	take_model(h, s, data, size, NULL);
	om_host_free(h);
	om_session_free(s);
	return 0;
}
