# In the library, and in the command, which has options for all of it.
HUB_SOURCES = %D%/address.c %D%/direct.c %D%/fetch.c %D%/file.c %D%/hub.h %D%/hub_module.c %D%/hub_module.h %D%/manifest.c %D%/source.c
onnxmem_SOURCES += $(HUB_SOURCES) src/base/load_module.c
noinst_LTLIBRARIES += libhub.la
libhub_la_SOURCES = $(HUB_SOURCES) %D%/public.c
libhub_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_MANIFEST='"$(manifestdir)/manifest.json"'
libhub_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(LIBMD_CFLAGS)
libcore_la_LIBADD += libhub.la

# What needs libcurl and libarchive, which only fetching loads.
if HAVE_MODULES
pkglib_LTLIBRARIES += onnxmem-hub.la
onnxmem_hub_la_SOURCES = %D%/address.c %D%/file.c %D%/hub_module.h %D%/transfer.c %D%/unpack.c src/base/sha256.c
onnxmem_hub_la_CFLAGS = $(AM_CFLAGS) $(LIBMD_CFLAGS) $(CURL_CFLAGS) $(ARCHIVE_CFLAGS)
onnxmem_hub_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
onnxmem_hub_la_LIBADD = libonnxmem.la $(LIBMD_LIBS) $(CURL_LIBS) $(ARCHIVE_LIBS)
endif
