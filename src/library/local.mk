libcore_la_SOURCES += %D%/builtin.c %D%/builtin.h
