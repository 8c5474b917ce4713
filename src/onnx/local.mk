libcore_la_SOURCES += \
	%D%/annotate.c %D%/annotate.h %D%/digest.c %D%/external.c %D%/formulas_read.c %D%/import.c %D%/import.h %D%/json_hold.h %D%/json_text.c %D%/json_text.h %D%/load.c %D%/lowered.c %D%/lowered.h %D%/metadata.c %D%/metadata.h \
	%D%/model.h %D%/empty_model.c %D%/original.c %D%/original.h %D%/plan_binding.c %D%/plan_binding.h %D%/plan_json.c %D%/plan_read.c %D%/plan_read.h %D%/save.c %D%/tensor.c %D%/training_info.c %D%/unused.c %D%/update.c \
	%D%/update.h %D%/value_files.c %D%/value_files.h %D%/weights.c %D%/wire_check.c
