if HAVE_CUNIT
check_PROGRAMS += tests/unit/run
TESTS += tests/unit/run
tests_unit_run_SOURCES = src/cli/npy.c src/cli/npz.c \
	%D%/activation.c %D%/alias_roots.c %D%/annotate.c %D%/arena.c %D%/assignment.c %D%/attention.c %D%/baselines.c %D%/binding.c %D%/buffers.c %D%/callbacks.c %D%/byte_delta.c %D%/bounds.c %D%/bytes.c %D%/chain.c %D%/collectives.c %D%/conflicts.c %D%/control.c %D%/crew.c %D%/convalgorithm.c \
	%D%/channels_last.c %D%/data_movement.c %D%/depthwise.c %D%/eager.c %D%/eager.h %D%/eager_grad.c %D%/eager_memory.c %D%/device_exec.c %D%/device_kernel.c %D%/eager_nets.c %D%/dim_expression.c %D%/elementwise.c %D%/exec.c %D%/grad.c %D%/gradients.c %D%/gradbodies.c %D%/gradfused.c %D%/gradparts.c %D%/gradtwice.c \
	%D%/gradwindows.c %D%/graphs.c %D%/graphs.h %D%/group_query.c %D%/halves.c %D%/hostile.c %D%/images.c %D%/images.h %D%/io_alias.c %D%/json_text.c %D%/kernels.c %D%/liveness.c %D%/mapped.c %D%/nn.c %D%/npy.c %D%/objects.c %D%/objects_in_loops.c \
	%D%/onnx.c %D%/onnxmodel.c %D%/onnxmodel.h %D%/onnxtensor.c %D%/opset_convert.c %D%/optimizers.c %D%/updates.c %D%/original.c %D%/pack.c %D%/parallel.c %D%/product.c %D%/nbits.c %D%/qlayers.c %D%/random_window.h %D%/layers.c \
	%D%/recurrent.c %D%/plan_report.c %D%/rematerialize.c %D%/rewrite.c %D%/facts.c %D%/formulas.c %D%/fuse.c %D%/fuse_norm.c %D%/memory.c %D%/memory_walk.h %D%/refusals.c %D%/range_proof.c %D%/registry.c %D%/rows.c %D%/run.c %D%/scale.c %D%/schedule.c %D%/set.c %D%/schedule_exhaustive.c %D%/search.c %D%/sessions.c %D%/sim.c %D%/slice.c %D%/split.c %D%/states_in_loops.c %D%/suppression.c %D%/tensor.c %D%/text.c %D%/tile.c \
	%D%/drawn_text.c %D%/drawn_text.h %D%/unit.h %D%/learning_rate.c %D%/tune.c %D%/verify.c %D%/verify_limits.c %D%/verify_loop_faults.c %D%/weight_cache.c %D%/weights.c %D%/why.c %D%/worker_streams.c
tests_unit_run_CPPFLAGS = $(AM_CPPFLAGS) -DOM_SRCDIR='"$(abs_top_srcdir)"'
tests_unit_run_CFLAGS = $(AM_CFLAGS) $(CUNIT_CFLAGS) $(PROTOBUF_C_CFLAGS) $(ZLIB_CFLAGS)
tests_unit_run_LDADD = tests/libfixtures.la libsim.la libcore.la $(CUNIT_LIBS) $(ZLIB_LIBS)
endif
