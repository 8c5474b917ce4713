/* SPDX-License-Identifier: Apache-2.0 */
/* Pack buffers of one's own into two memories: no model, no operators, only
 * <onnxmem/pack.h> and the small library that comes with it.
 *
 *     cc pack.c $(pkg-config --cflags --libs onnxmem-pack) -o pack && ./pack
 */
#include <stdio.h>

#include <onnxmem/pack.h>

enum { CAMERA, EDGES, TABLE, LEFT, RIGHT, RESULT, N };

int
main(void)
{
	/* Steps are half open: the camera's buffer is in use in steps 0 and 1.  The
	 * table is not needed in between; of the edges, 512 bytes stay to the end. */
	static const om_interval camera[] = {{0, 2, 0, 0}}, table[] = {{0, 1, 0, 0}, {4, 6, 0, 0}},
		edges[] = {{1, 4, 0, 0}, {4, 6, 0, 512}}, halves[] = {{2, 5, 0, 0}}, late[] = {{3, 6, 0, 0}};
	/* The access_bytes is how many bytes are moved to and from a buffer in a run. */
	om_buffer buf[N] = {
		[CAMERA] = {.name = "camera", .bytes = 4096, .align = 64, .live = camera, .nlive = 1,
			.fixed = 0, .fixed_pool = 1},
		[EDGES] = {.name = "edges", .bytes = 3072, .align = 64, .live = edges, .nlive = 2,
			.fixed = OM_OFFSET_FREE, .fixed_pool = OM_POOL_ANY, .access_bytes = 3072},
		[TABLE] = {.name = "table", .bytes = 1024, .align = 64, .live = table, .nlive = 2,
			.fixed = OM_OFFSET_FREE, .fixed_pool = OM_POOL_ANY, .access_bytes = 100000},
		[LEFT] = {.name = "left", .bytes = 512, .align = 64, .live = halves, .nlive = 1,
			.fixed = OM_OFFSET_FREE, .fixed_pool = OM_POOL_ANY, .access_bytes = 8192},
		[RIGHT] = {.name = "right", .bytes = 512, .align = 64, .live = halves, .nlive = 1,
			.fixed = OM_OFFSET_FREE, .fixed_pool = OM_POOL_ANY, .access_bytes = 8192},
		[RESULT] = {.name = "result", .bytes = 2048, .align = 64, .live = late, .nlive = 1,
			.fixed = OM_OFFSET_FREE, .fixed_pool = OM_POOL_ANY, .access_bytes = 2048},
	};
	om_pool pool[] = {{.name = "sram", .limit = 2560}, {.name = "dram"}};
	/* One behind the other, as if they were one. */
	static const uint32_t both[] = {LEFT, RIGHT};
	const om_pack_group group = {both, 2};
	om_problem problem = OM_PROBLEM(.buf = buf, .n = N, .pool = pool, .npool = 2, .group = &group, .ngroup = 1);
	om_session *s = om_session_new();

	om_status st = om_pack_solve(s, &problem);
	if (st == OM_OK)
		st = om_pack_check_problem(s, &problem);
	if (st != OM_OK)
		fprintf(stderr, "pack: %s\n", om_message(s));
	for (uint32_t k = 0; st == OM_OK && k < N; k++)
		printf("%-6s  %4llu bytes in %s at %4llu\n", buf[k].name, (unsigned long long)buf[k].bytes,
			pool[buf[k].pool].name, (unsigned long long)buf[k].offset);
	for (uint32_t k = 0; st == OM_OK && k < 2; k++)
		printf("%s: %llu bytes, %s\n", pool[k].name, (unsigned long long)pool[k].result.height,
			pool[k].result.status == OM_PACK_OPTIMAL ? "no less will do" : "less may do");
	om_session_free(s);
	return om_status_exit(st);
}
