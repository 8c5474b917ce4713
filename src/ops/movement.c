#include <config.h>

#include "ops/family.h"

const om_row om_ops_movement[] = {
	{0}
};
