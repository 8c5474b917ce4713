libcore_la_SOURCES += \
	%D%/simulator.h %D%/verify_collectives.c %D%/verify_devices.c %D%/verify_devices.h %D%/verify_control_flow.c %D%/verify_loop.c %D%/verify_memory.c %D%/verify_partial_order.c \
	%D%/verify_partial_order.h %D%/verify_plan.c %D%/verify_plan.h %D%/verify_reserved.c %D%/verify_streams.c %D%/verify_streams.h %D%/verify_worker_streams.c %D%/verify_worker_streams.h
