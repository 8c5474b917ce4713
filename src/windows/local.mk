# What the system has in a way of its own; the command has it too.  The folder is before those of the system for Windows only.
if HAVE_WINDOWS
SYSTEM_SOURCES = %D%/dlfcn.h %D%/sys/file.h %D%/sys/ioctl.h %D%/sys/mman.h %D%/sys/wait.h %D%/system.c %D%/system.h
# As large as on other systems.
onnxmem_LDFLAGS = $(AM_LDFLAGS) -Wl,--stack,8388608
else
SYSTEM_SOURCES = src/base/posix.c
endif
libpacker_la_SOURCES += $(SYSTEM_SOURCES)
onnxmem_SOURCES += $(SYSTEM_SOURCES)
