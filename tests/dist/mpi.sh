# SPDX-License-Identifier: Apache-2.0
# Sourced by tests of ranks: where there is MPI, and plans that are made fast.
no_mpi="there is no mpirun, or the module for MPI was not built"
has_mpi() { command -v mpirun >/dev/null && [ -f "$abs_builddir/.libs/onnxmem-mpi.so" ]; }

# mpi_run N COMMAND...: on this machine alone, whatever the number of its cores, also in a container.
mpi_run() {
	ranks_=$1; shift
	OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
		OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none \
		OMPI_MCA_mpi_yield_when_idle=1 mpirun -n "$ranks_" "$@"
}

# quick_passes STRATEGY: the passes of the processor, without the search for an order of ops, in which ranks of a large program would spend most
# of the time of a test that compares what programs compute.
quick_passes() { "$ONNXMEM" passes | sed -n 's/^for cpu: //p' | sed "s/,schedule=min-memory,/,schedule=original,/; s/,pack$/,pack:strategy=$1/"; }
