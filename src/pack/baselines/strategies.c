/* SPDX-License-Identifier: Apache-2.0 */
/* The table of ways to share memory: rows of the files that src/pack/local.mk lists. */
#include <config.h>

#include <string.h>

#include "pack/baselines/strategies.h"
#include "pack/baselines/baselines.h"

/* Those of src/pack/baselines/NAME.c are om_strategies_NAME. */
static const om_strategy *const rows[] = {
#define ROWS(name) om_strategies_##name,
	OM_STRATEGIES(ROWS)
#undef ROWS
};

const om_strategy *
om_strategy_at(size_t k)
{
	for (size_t list = 0; list < sizeof rows / sizeof rows[0]; list++)
		for (const om_strategy *row = rows[list]; row->name; row++)
			if (k-- == 0)
				return row;
	return NULL;
}

const om_strategy *
om_strategy_find(const char *name)
{
	const om_strategy *row;

	for (size_t k = 0; (row = om_strategy_at(k)); k++)
		if (strcmp(row->name, name) == 0)
			return row;
	return NULL;
}
