onnxmem_SOURCES += \
	%D%/address.c %D%/direct.c %D%/fetch.c %D%/file.c %D%/hub.h %D%/hub_module.c %D%/hub_module.h %D%/manifest.c \
	src/base/load_module.c

# What needs libcurl and libarchive, which only fetching loads.
pkglib_LTLIBRARIES += onnxmem-hub.la
onnxmem_hub_la_SOURCES = %D%/address.c %D%/file.c %D%/hub_module.h %D%/transfer.c %D%/unpack.c src/base/sha256.c
onnxmem_hub_la_CFLAGS = $(AM_CFLAGS) $(LIBMD_CFLAGS) $(CURL_CFLAGS) $(ARCHIVE_CFLAGS)
onnxmem_hub_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
onnxmem_hub_la_LIBADD = libonnxmem.la $(LIBMD_LIBS) $(CURL_LIBS) $(ARCHIVE_LIBS)
