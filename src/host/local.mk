libcore_la_SOURCES += \
	%D%/host.c
libcore_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_PASSDIR='"$(pkglibdir)"'
