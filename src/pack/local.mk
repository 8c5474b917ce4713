# The packer stands alone: a library of its own for callers that bring their own buffers.
noinst_LTLIBRARIES += libpacker.la
libpacker_la_SOURCES += \
	%D%/bound.c %D%/branch_bound.c %D%/branch_bound_tables.c %D%/check.c %D%/check_problem.c %D%/clique.c \
	%D%/graph_branch_bound.c %D%/graph_packing.c %D%/graph_packing.h %D%/greedy.c %D%/hill_climb.c \
	%D%/large_neighborhood.c %D%/memory_pools.c %D%/overlap.c %D%/overlap.h %D%/pack.c %D%/packer.h %D%/portfolio.c %D%/priority_orders.c \
	%D%/problem.c %D%/problem.h %D%/rigid_groups.c %D%/search.c %D%/search.h %D%/search_limits.h %D%/skyline.c \
	%D%/sort_keys.h

# Ways to share memory that the packer is compared with: the one list of them.  Adding one takes its file,
# with rows om_strategies_NAME, and its name here.
STRATEGIES = src/pack/baselines/block_pool.c src/pack/baselines/dsatur.c src/pack/baselines/nnc_graph.c
libcore_la_SOURCES += $(STRATEGIES) %D%/baselines/baselines.h %D%/baselines/interference.c %D%/baselines/interference.h %D%/baselines/interference_list.h %D%/baselines/nnc_graph.h \
	%D%/baselines/nnc_tuples.c %D%/baselines/strategies.c
nodist_libcore_la_SOURCES += src/pack/baselines/strategies.h
BUILT_SOURCES += src/pack/baselines/strategies.h
CLEANFILES += src/pack/baselines/strategies.h
src/pack/baselines/strategies.h: $(srcdir)/src/pack/local.mk
	$(AM_V_GEN)$(MKDIR_P) src/pack/baselines && { echo '#include "pack/baselines/baselines.h"' && \
	echo '#define OM_STRATEGIES(_) \' && \
	for p in $(STRATEGIES); do echo "	_(`basename $$p .c`) \\"; done && echo && \
	for p in $(STRATEGIES); do echo "extern const om_strategy om_strategies_`basename $$p .c`[];"; done; } >$@

lib_LTLIBRARIES += libonnxmem-pack.la
libonnxmem_pack_la_SOURCES =
libonnxmem_pack_la_LDFLAGS = $(AM_LDFLAGS) -version-info $(OM_VERSION_INFO) -no-undefined
libonnxmem_pack_la_LIBADD  = libpacker.la
