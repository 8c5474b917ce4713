libcore_la_SOURCES += %D%/known_times.c %D%/measure.c %D%/tune.c %D%/tune.h
