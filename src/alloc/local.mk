libcore_la_SOURCES += \
	%D%/access_counts.c %D%/alias_sets.c %D%/budget.c %D%/buffers.c %D%/byte_liveness.c %D%/byte_liveness.h \
	%D%/is_planned.h %D%/live_ranges_split.c %D%/partial_order_interference.c %D%/plan.c %D%/state_update_paths.c \
	%D%/trip_count.c
