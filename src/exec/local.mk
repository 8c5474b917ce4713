libcore_la_SOURCES += \
	%D%/arena_inputs.c %D%/bind.c %D%/constants.c %D%/control_flow.c %D%/control_flow.h %D%/device.c %D%/device.h %D%/device_bind.c %D%/device_capture.c %D%/device_run.c %D%/device_states.c %D%/device_streams.c %D%/exec.c %D%/exec_internal.h \
	%D%/instructions.c %D%/learning_rate.c %D%/memory.c %D%/objects.c %D%/poison.c %D%/runnable.c %D%/runnable.h %D%/scan_outputs.c %D%/sequence_map.c %D%/threads.c %D%/train.c \
	%D%/weight_cache.c %D%/weight_cache.h %D%/weight_key.c %D%/weights.h %D%/worker_streams.c %D%/worker_streams.h
