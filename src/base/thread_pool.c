/* Worker threads for parallel loops. */
#include <config.h>

#include "base/parallel.h"

uint32_t
om_worker_count(const om_workers *pool)
{
	(void)pool;
	return 1;
}

void
om_parallel_for(om_workers *pool, int64_t n, om_piece_fn *fn, void *arg)
{
	(void)pool;
	for (int64_t k = 0; k < n; k++)
		fn(arg, k, 0);
}
