libcore_la_SOURCES += \
	%D%/alias_roots.c %D%/alias_roots.h %D%/binding.c %D%/binding.h %D%/builder.c %D%/clone.c %D%/clone.h %D%/copy.c %D%/dim_definitions.c %D%/dim_expression.c %D%/dim_expression.h %D%/edit.h %D%/enum_text.c %D%/equal.c %D%/equal.h %D%/extract.c %D%/enum_text.h %D%/facts.c %D%/facts.h %D%/limits.c %D%/limits.h %D%/live_interval.c %D%/live_interval.h %D%/liveness.c %D%/liveness.h %D%/names.c %D%/names.h %D%/open_dims.c %D%/operators.h %D%/parse.c \
	%D%/partial_order.c %D%/partial_order.h %D%/print.c %D%/query.c %D%/query.h %D%/schedule.c %D%/schedule.h %D%/states.c %D%/steps.c %D%/steps.h %D%/tiling.c %D%/tiling.h %D%/tokens.c \
	%D%/tokens.h %D%/type.c %D%/type.h %D%/uses.c %D%/uses.h %D%/verify.c
