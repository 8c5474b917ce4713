libcore_la_SOURCES += \
	%D%/access_counts.c %D%/alias_sets.c %D%/assign_inplace.c %D%/assign_io.c %D%/assign_loops.c %D%/assign_views.c %D%/assignment.c \
	 %D%/budget.c %D%/buffers.c %D%/byte_liveness.c %D%/compare.c %D%/byte_liveness.h \
	%D%/is_planned.h %D%/lifetimes.c %D%/live_ranges_split.c %D%/op_facts.c %D%/partial_order_interference.c %D%/plan.c %D%/state_update_paths.c \
	%D%/trip_count.c
