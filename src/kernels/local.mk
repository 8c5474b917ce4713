# The inner loops: each source is built once per instruction set.  The compiler may contract
# a product and a sum into one operation here, and only here.
noinst_LTLIBRARIES += libk_generic.la libkernels.la
libk_generic_la_SOURCES = \
	%D%/cpu/activation.c %D%/cpu/activation.h %D%/cpu/epilogue.h \
	%D%/cpu/attention.c %D%/cpu/attention.h \
	%D%/cpu/depthwise.c %D%/cpu/depthwise.h %D%/cpu/geometry.h %D%/cpu/grouped.c %D%/cpu/grouped.h %D%/cpu/halves.c %D%/cpu/halves.h \
	%D%/cpu/elementwise.c %D%/cpu/elementwise.def %D%/cpu/elementwise.h \
	%D%/cpu/kernels.c %D%/cpu/kernels.h \
	%D%/cpu/layer.h %D%/cpu/layer_gemm.c %D%/cpu/layer_plan.h %D%/cpu/layer_tile.c %D%/cpu/layer_tile.h %D%/cpu/layer_winograd.c \
	%D%/cpu/pool_lines.c %D%/cpu/pool_lines.h %D%/cpu/product.c %D%/cpu/product.h %D%/cpu/recurrent.c %D%/cpu/recurrent.h \
	%D%/cpu/nbits.c %D%/cpu/nbits.h %D%/cpu/qdepthwise.c %D%/cpu/qfinish.h %D%/cpu/qlayer.h %D%/cpu/qlayer_tile.c %D%/cpu/qrows.c %D%/cpu/qrows.h \
	%D%/cpu/rows.c %D%/cpu/rows.h \
	%D%/cpu/simd.h %D%/cpu/stored.h %D%/cpu/tile.h %D%/cpu/tile_epilogue.h %D%/cpu/update.c %D%/cpu/update.h %D%/cpu/vec_math.h %D%/cpu/vmath.h
libk_generic_la_CFLAGS = $(AM_CFLAGS) $(OM_KERNEL_CFLAGS) -ffp-contract=fast
libk_generic_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_ISA=generic -DOM_VL=4 -DOM_MR=4 -DOM_NV=2
libkernels_la_SOURCES = \
	%D%/cpu/dispatch.c \
	%D%/cpu/layer.c %D%/cpu/layer_pack.c %D%/cpu/nbits_rows.c %D%/cpu/qlayer.c \
	%D%/cpu/attention_batch.c %D%/cpu/product_batch.c %D%/cpu/recurrent_layer.c
libkernels_la_CFLAGS = $(AM_CFLAGS) $(OM_KERNEL_CFLAGS)
libkernels_la_LIBADD = libk_generic.la
if HAVE_X86
noinst_LTLIBRARIES += libk_avx2.la libk_avx512.la libk_avx512vnni.la
libk_avx2_la_SOURCES = $(libk_generic_la_SOURCES)
libk_avx2_la_CFLAGS = $(libk_generic_la_CFLAGS) -mavx2 -mfma
libk_avx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_ISA=avx2 -DOM_VL=8 -DOM_MR=6 -DOM_NV=2
libk_avx512_la_SOURCES = $(libk_generic_la_SOURCES)
libk_avx512_la_CFLAGS = $(libk_avx2_la_CFLAGS) -mavx512f -mavx512vl -mavx512bw -mavx512dq
libk_avx512_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_ISA=avx512 -DOM_VL=16 -DOM_MR=12 -DOM_NV=2 -DOM_ISA_OF_BYTES=avx512vnni
# Products of bytes alone: the others are those of avx512.
libk_avx512vnni_la_SOURCES = %D%/cpu/nbits.c %D%/cpu/qlayer_tile.c
libk_avx512vnni_la_CFLAGS = $(libk_avx512_la_CFLAGS) -mavx512vnni
libk_avx512vnni_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_ISA=avx512vnni -DOM_VL=16
libkernels_la_LIBADD += libk_avx2.la libk_avx512.la libk_avx512vnni.la
endif
# Kernels of devices: texts for modules, in the library; and the same sources compiled as C, for the simulated device
# and for tests.
GPU_KERNELS = %D%/gpu/attention.omk %D%/gpu/byte_product.omk %D%/gpu/cast.omk %D%/gpu/compare.omk %D%/gpu/conv.omk %D%/gpu/conv_grad.omk %D%/gpu/dynamic_scale.omk %D%/gpu/integer.omk %D%/gpu/loss.omk %D%/gpu/map.omk %D%/gpu/move.omk %D%/gpu/nbits.omk %D%/gpu/norm.omk %D%/gpu/norm_grad.omk \
	%D%/gpu/pool.omk %D%/gpu/product.omk %D%/gpu/recurrent.omk %D%/gpu/reduce.omk %D%/gpu/quantize.omk %D%/gpu/reduce_integer.omk %D%/gpu/resize_linear.omk %D%/gpu/resize_nearest.omk %D%/gpu/rotary.omk %D%/gpu/scan.omk %D%/gpu/scatter.omk \
	%D%/gpu/softmax.omk %D%/gpu/top.omk %D%/gpu/update.omk
GPU_DIALECTS = %D%/gpu/dialect_cuda.h %D%/gpu/dialect_opencl.h %D%/gpu/language.h
GPU_EMBED = LC_ALL=C $(AWK) -v root=$(srcdir)/src -f $(srcdir)/src/kernels/gpu/embed.awk
libkernels_la_SOURCES += %D%/gpu/source.h
nodist_libkernels_la_SOURCES = %D%/gpu/sources.c
noinst_LTLIBRARIES += libgpu_host.la libgpu_dialects.la
libgpu_dialects_la_SOURCES = %D%/gpu/source.h
nodist_libgpu_dialects_la_SOURCES = %D%/gpu/dialects.c
libgpu_host_la_SOURCES = %D%/gpu/dialect_c.h %D%/gpu/fibers.c %D%/gpu/fibers.h %D%/gpu/host.c %D%/gpu/host.h
nodist_libgpu_host_la_SOURCES = %D%/gpu/host_kernels.c
# What the sources include; the compiler's own list has it, but only after the first time.
%D%/gpu/host_kernels.lo: $(GPU_KERNELS) %D%/gpu/language.h %D%/gpu/maps.def
%D%/gpu/sources.c: $(GPU_KERNELS) %D%/gpu/embed.awk %D%/gpu/maps.def %D%/cpu/elementwise.def
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
		$(GPU_EMBED) -v what=texts -v table=om_gpu_sources $(GPU_KERNELS:%=$(srcdir)/%) >$@-t && mv $@-t $@
%D%/gpu/dialects.c: $(GPU_DIALECTS) %D%/gpu/embed.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(GPU_EMBED) -v what=texts -v table=om_gpu_dialects $(GPU_DIALECTS:%=$(srcdir)/%) >$@-t && mv $@-t $@
%D%/gpu/host_kernels.c: $(GPU_KERNELS) %D%/gpu/embed.awk
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(GPU_EMBED) -v what=kernels $(GPU_KERNELS:%=$(srcdir)/%) >$@-t && mv $@-t $@
CLEANFILES += %D%/gpu/dialects.c %D%/gpu/host_kernels.c %D%/gpu/sources.c
EXTRA_DIST += $(GPU_KERNELS) $(GPU_DIALECTS) %D%/gpu/embed.awk %D%/gpu/maps.def

# The simulated device: a library for tests, and the module of `--device sim`.
noinst_LTLIBRARIES += libsim.la
libsim_la_SOURCES = %D%/sim/sim.c %D%/sim/sim.h %D%/sim/sim_clocks.c %D%/sim/sim_graph.c %D%/sim/sim_memory.c \
	%D%/sim/sim_run.c %D%/sim/sim_streams.c
libsim_la_LIBADD = libgpu_host.la
if HAVE_MODULES
pkglib_LTLIBRARIES += onnxmem-sim.la
onnxmem_sim_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
onnxmem_sim_la_SOURCES = %D%/sim/sim_module.c src/base/half.c
onnxmem_sim_la_LIBADD = libsim.la -lm
endif

# The device of OpenCL.
if HAVE_OPENCL
pkglib_LTLIBRARIES += onnxmem-opencl.la
onnxmem_opencl_la_SOURCES = %D%/opencl/opencl.c %D%/opencl/opencl.h %D%/opencl/opencl_build.c %D%/opencl/opencl_commands.c
onnxmem_opencl_la_CFLAGS = $(AM_CFLAGS) $(OPENCL_CFLAGS)
onnxmem_opencl_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
onnxmem_opencl_la_LIBADD = libgpu_dialects.la $(OPENCL_LIBS)
endif

# The device of CUDA: the driver and the compiler of kernels are loaded when a device is opened, so that this needs neither.
if HAVE_MODULES
pkglib_LTLIBRARIES += onnxmem-cuda.la
onnxmem_cuda_la_SOURCES = %D%/cuda/cuda.c %D%/cuda/cuda.h %D%/cuda/cuda_build.c %D%/cuda/cuda_cache.c %D%/cuda/cuda_commands.c \
	%D%/cuda/cuda_load.c %D%/cuda/driver.h src/base/fast_hash.c
onnxmem_cuda_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
onnxmem_cuda_la_LIBADD = libgpu_dialects.la
endif
