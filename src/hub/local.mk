onnxmem_SOURCES += \
	%D%/address.c %D%/fetch.c %D%/file.c %D%/hub.h %D%/manifest.c %D%/transfer.c %D%/unpack.c
