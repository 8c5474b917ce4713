libcore_la_SOURCES += \
	%D%/beam.c %D%/bfs.c %D%/exact.c %D%/remat_chain_dp.c %D%/remat_schedule.c %D%/remat_schedule.h \
	%D%/remat_search.c %D%/rematerialize.h %D%/scheduler.c %D%/scheduler.h %D%/subproblem.c %D%/subproblem.h
