/* SPDX-License-Identifier: Apache-2.0 */
/* Starting MPI, by a module: the library is not linked with it. */
#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/load_module.h"
#include "comm/module.h"
#include "comm/sum.h"

bool
om_comm_mpi_is_launched(void)
{
	static const char *const names[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"};

	for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
		const char *size = getenv(names[k]);
		if (size && strtol(size, NULL, 10) > 1)
			return true;
	}
	return false;
}

static double
now_ms(void)
{
	return om_now_ms();
}

om_status
om_comm_mpi_open(om_session *s, double limit, om_comm **out)
{
	static const om_comm_calls calls = {om_fail, om_session_is_stopped, om_sum_into, om_dtype_bits, now_ms};
	om_comm_module_fn *open_comm;

	*out = NULL;
	void *symbol = om_load_module("onnxmem-mpi.so", "om_comm_module");
	if (!symbol)
		return om_fail(s, OM_UNSUPPORTED, "there is no module for MPI: %s; build it with --with-mpi", om_load_module_error());
	memcpy(&open_comm, &symbol, sizeof open_comm);
	OM_TRY(open_comm(&calls, s, limit, out));
	if ((*out)->ops->size != sizeof(om_comm_ops))
		return om_fail(s, OM_UNSUPPORTED, "the module onnxmem-mpi.so is of another version of onnxmem");
	return OM_OK;
}
