libcore_la_SOURCES += \
	%D%/host.c
nodist_libcore_la_SOURCES += src/host/passes.h
libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(builddir)/src -DOM_PASSDIR='"$(pkglibdir)"'
