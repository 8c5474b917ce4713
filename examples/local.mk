# What README tells users of the library to write.
check_PROGRAMS += examples/batches examples/control examples/digits examples/generate examples/nets examples/pack examples/plan
examples_batches_LDADD = $(PUBLIC_LIBS)
examples_control_LDADD = $(PUBLIC_LIBS)
examples_digits_LDADD = $(PUBLIC_LIBS)
examples_generate_LDADD = $(PUBLIC_LIBS) -lm
examples_nets_LDADD = $(PUBLIC_LIBS) -lm
examples_plan_LDADD = $(PUBLIC_LIBS)
examples_pack_LDADD = libonnxmem-pack.la
EXTRA_DIST += %D%/batches.txt %D%/control.txt %D%/generate.txt %D%/pack.txt %D%/plan.txt %D%/suites %D%/github-action %D%/fleet \
	%D%/executorch_plan.py %D%/minimalloc_check.py %D%/onnxsim_keys.py %D%/ort_session.py %D%/place.c %D%/tflm_planner.py %D%/tvm_plan.py
