libcore_la_SOURCES += \
	%D%/convert.c %D%/convert.h %D%/opset_convert.h %D%/rules.c %D%/scan8.c
