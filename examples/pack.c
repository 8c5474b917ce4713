/* Pack buffers of one's own: no model, no operators, only <onnxmem/pack.h>.
 *
 *     cc pack.c $(pkg-config --cflags --libs onnxmem) -o pack && ./pack
 */
#include <stdio.h>

#include <onnxmem/pack.h>

int
main(void)
{
	/* Steps are half open: the first buffer is alive in steps 0 and 1. */
	static const om_interval early[] = {{0, 2}}, middle[] = {{1, 4}}, late[] = {{3, 6}},
		twice[] = {{0, 1}, {4, 6}};
	om_buffer buf[] = {
		{.name = "camera", .bytes = 4096, .align = 64, .live = early, .nlive = 1, .fixed = 0},
		{.name = "edges", .bytes = 3000, .align = 64, .live = middle, .nlive = 1, .fixed = OM_OFFSET_FREE},
		{.name = "table", .bytes = 1024, .align = 64, .live = twice, .nlive = 2, .fixed = OM_OFFSET_FREE},
		{.name = "result", .bytes = 2048, .align = 64, .live = late, .nlive = 1, .fixed = OM_OFFSET_FREE},
	};
	enum { N = sizeof buf / sizeof buf[0] };
	om_session *s = om_session_new();
	om_pack_result r;

	om_status st = om_pack(s, buf, N, &r);
	if (st == OM_OK)
		st = om_pack_check(s, buf, N, r.height);
	if (st != OM_OK)
		fprintf(stderr, "pack: %s\n", om_message(s));
	for (uint32_t k = 0; st == OM_OK && k < N; k++)
		printf("%-7s %5llu bytes at %5llu\n", buf[k].name, (unsigned long long)buf[k].bytes,
			(unsigned long long)buf[k].offset);
	if (st == OM_OK)
		printf("%llu bytes, %s\n", (unsigned long long)r.height,
			r.status == OM_PACK_OPTIMAL ? "which is optimal" : "which may not be optimal");
	om_session_free(s);
	return om_status_exit(st);
}
