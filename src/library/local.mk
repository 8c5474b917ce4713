libcore_la_SOURCES += %D%/builtin.c %D%/builtin.h %D%/plan_sizes.c %D%/tile.c
nodist_libcore_la_SOURCES += src/library/passes.h
