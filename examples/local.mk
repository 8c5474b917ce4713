# What README tells users of the library to write.
check_PROGRAMS += examples/digits examples/pack examples/plan
examples_digits_LDADD = $(PUBLIC_LIBS)
examples_plan_LDADD = $(PUBLIC_LIBS)
examples_pack_LDADD = libonnxmem-pack.la
EXTRA_DIST += %D%/pack.txt %D%/plan.txt %D%/suites \
	%D%/minimalloc_check.py %D%/onnxsim_keys.py %D%/ort_session.py %D%/place.c %D%/tflm_planner.py
