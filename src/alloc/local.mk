libcore_la_SOURCES += \
	%D%/access_counts.c %D%/alias_sets.c %D%/alias_sets.h %D%/assign.h %D%/assign_inplace.c %D%/assign_io.c %D%/assign_loops.c %D%/assign_loops_fit.c %D%/assign_views.c %D%/assignment.c %D%/box_tree.c %D%/box_tree.h \
	 %D%/budget.c %D%/buffers.c %D%/buffers.h %D%/byte_liveness.c %D%/compare.c %D%/byte_liveness.h \
	%D%/formula_largest.c %D%/formula_search.h %D%/formula_use.c %D%/formulas.c %D%/formulas.h %D%/is_planned.h %D%/lifetimes.c %D%/live_ranges_split.c %D%/live_ranges_split.h %D%/disjoint.c %D%/disjoint.h %D%/op_floor.c %D%/op_floor.h %D%/op_facts.c %D%/op_facts.h %D%/order_bound.c %D%/order_bound.h %D%/partial_order_interference.c %D%/place_order.c %D%/place_order.h %D%/pins.c %D%/plan.c %D%/plan_arenas.h %D%/plan_shrink.c %D%/plan_shrink.h %D%/polynomial.c %D%/polynomial.h %D%/run_memory.c %D%/run_memory.h %D%/result_paths.c %D%/result_paths.h %D%/state_update_paths.c %D%/state_update_paths.h \
	%D%/traffic.c %D%/trip_count.c
