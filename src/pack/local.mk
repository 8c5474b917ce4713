# The packer stands alone: a library of its own for callers that bring their own buffers.
noinst_LTLIBRARIES += libpacker.la
libpacker_la_SOURCES += \
	%D%/bound.c %D%/branch_bound.c %D%/branch_bound_tables.c %D%/check.c %D%/check_problem.c %D%/clique.c \
	%D%/graph_branch_bound.c %D%/graph_packing.c %D%/graph_packing.h %D%/greedy.c %D%/hill_climb.c \
	%D%/large_neighbourhood.c %D%/memory_pools.c %D%/pack.c %D%/packer.h %D%/portfolio.c %D%/priority_orders.c \
	%D%/problem.c %D%/problem.h %D%/rigid_groups.c %D%/search.c %D%/search.h %D%/search_limits.h %D%/skyline.c \
	%D%/sort_keys.h
libcore_la_SOURCES += \
	%D%/baselines/block_pool.c %D%/baselines/dsatur.c %D%/baselines/interference.c %D%/baselines/interference.h \
	%D%/baselines/nnc_graph.c %D%/baselines/nnc_graph.h %D%/baselines/nnc_tuples.c

lib_LTLIBRARIES += libonnxmem-pack.la
libonnxmem_pack_la_SOURCES =
libonnxmem_pack_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(OM_VERSION_INFO) -no-undefined
libonnxmem_pack_la_LIBADD  = libpacker.la
