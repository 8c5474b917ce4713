libcore_la_SOURCES += \
	%D%/builder.c %D%/clone.c %D%/facts.c %D%/facts.h %D%/liveness.c %D%/names.c %D%/names.h %D%/parse.c \
	%D%/partial_order.c %D%/partial_order.h %D%/print.c %D%/query.c %D%/rewrite.c %D%/schedule.c %D%/tokens.c \
	%D%/tokens.h %D%/type.c %D%/uses.c %D%/uses.h %D%/verify.c
