libpacker_la_SOURCES += \
	%D%/arena.c %D%/clock.h %D%/guard.c %D%/guard.h %D%/rng.h %D%/session.c
libcore_la_SOURCES += \
	%D%/interval_map.c %D%/interval_map.h %D%/map.c %D%/map.h %D%/maxflow.c %D%/maxflow.h %D%/sha256.c %D%/sha256.h \
	%D%/tensor.c
