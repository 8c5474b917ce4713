libcore_la_SOURCES += %D%/builtin.c %D%/builtin.h
nodist_libcore_la_SOURCES += src/library/passes.h
