# Measuring: `make bench-gpu` (all that a GPU is needed for), `make bench-run` (the executor beside others), `make bench-loop`, `make bench-pack`, `make bench-page`, `make bench-scale`, `make bench-plan`, `make bench-plan-scale`;
# `make bench/schedule && bench/schedule FILE...`.
EXTRA_PROGRAMS += bench/eager bench/schedule bench/loop bench/steps bench/pack bench/plan_scale bench/scale bench/small_ops bench/attention_rnn bench/elementwise_rows bench/spent bench/peak bench/conv_layers bench/depthwise_layers
check_PROGRAMS += bench/plan bench/nets
bench_pack_SOURCES = %D%/pack.c src/cli/pack_csv.c src/cli/pack_csv.h src/cli/table.c src/cli/table.h
bench_pack_LDADD = libonnxmem-pack.la
bench_plan_scale_SOURCES = %D%/plan_scale.c tests/unit/graphs.c tests/unit/graphs.h tests/unit/onnxmodel.c tests/unit/onnxmodel.h
bench_plan_scale_CFLAGS = $(AM_CFLAGS) $(PROTOBUF_C_CFLAGS)
bench_peak_CFLAGS = $(AM_CFLAGS) -ffp-contract=fast -pthread
bench_peak_LDFLAGS = -pthread
bench_scale_LDADD = libonnxmem-pack.la
EXTRA_DIST += %D%/api.sh %D%/classes.py %D%/compare.py %D%/decode.py %D%/decoder_chains.py %D%/eager_torch.py %D%/extra.py %D%/fused.py %D%/generate.py %D%/gpu.sh %D%/gpu_peers.py %D%/graphs %D%/known.csv %D%/large.py %D%/link.py %D%/loops.py %D%/models.py %D%/page.py %D%/peers.py %D%/planners.py %D%/python_packers.py %D%/ranks.py %D%/run.py %D%/steps.py %D%/each.py %D%/streams.py %D%/tables.py %D%/tile.py %D%/tile_cpu.py %D%/tile_large.py %D%/torchranks.py %D%/torchstep.py %D%/totals.py %D%/tune.py %D%/randwire.py

.PHONY: bench-attention-rnn bench-decode bench-eager bench-generate bench-loop bench-pack bench-page bench-plan bench-plan-scale bench-run bench-scale bench-elementwise bench-small-ops bench-totals bench-train-step
bench-attention-rnn: bench/attention_rnn$(EXEEXT)
	ONNXMEM_THREADS=1 bench/attention_rnn$(EXEEXT)
# A step of a decoder beside ONNX Runtime, which PYTHON has.
bench-decode: all
	past='$(PAST)'; threads='$(THREADS)'; rounds='$(ROUNDS)'; seconds='$(SECONDS)'; \
	$(PYTHON) $(srcdir)/bench/decode.py --onnxmem '$(abs_top_builddir)/onnxmem$(EXEEXT)' --past "$${past:-1024,4096}" \
		--threads "$${threads:-1}" --rounds "$${rounds:-5}" --seconds "$${seconds:-1}"
# Tokens of a decoder beside ONNX Runtime, by the example.
bench-generate: all examples/generate$(EXEEXT)
	past='$(PAST)'; threads='$(THREADS)'; rounds='$(ROUNDS)'; \
	$(PYTHON) $(srcdir)/bench/generate.py --generate '$(abs_top_builddir)/examples/generate$(EXEEXT)' --past "$${past:-1024,4096}" \
		--threads "$${threads:-1}" --rounds "$${rounds:-3}"
# On a machine with a GPU: tables and logs in the folder OUT, in ten minutes; see the script.
.PHONY: bench-gpu
bench-gpu: all tests/ops/device_rows$(EXEEXT) tests/cuda/vtable$(EXEEXT)
	out='$(OUT)'; abs_builddir='$(abs_builddir)' PYTHON='$(PYTHON)' $(SHELL) $(srcdir)/bench/gpu.sh "$${out:-bench-gpu}"
bench-elementwise: bench/elementwise_rows$(EXEEXT)
	bench/elementwise_rows$(EXEEXT)
bench-loop: all bench/loop$(EXEEXT)
	ONNXMEM='$(abs_top_builddir)/onnxmem$(EXEEXT)' \
		abs_builddir='$(abs_builddir)' $(PYTHON) $(srcdir)/bench/loops.py --table $(srcdir)/docs/loops.md
bench-page: all
	ONNXMEM='$(abs_top_builddir)/onnxmem$(EXEEXT)' $(PYTHON) $(srcdir)/bench/page.py
bench-plan: bench/plan$(EXEEXT)
	$(srcdir)/bench/graphs $(srcdir)/../shared/data/dag $(srcdir)/../shared/data/light
bench-plan-scale: bench/plan_scale$(EXEEXT)
	bench/plan_scale$(EXEEXT)
# MODELS="gen_resnet18 gen_vgg16": all without it, and then docs/executor.md is written.
bench-run: all bench/spent$(EXEEXT) bench/peak$(EXEEXT)
	threads='$(THREADS)' rounds='$(ROUNDS)' seconds='$(SECONDS)' peers='$(PEERS)' by='$(BY)' isas='$(ISAS)' out='$(OUT)' models='$(MODELS)'; \
	test -n "$$models" || page='$(srcdir)/docs/executor.md'; \
	$(PYTHON) $(srcdir)/bench/run.py --onnxmem '$(abs_top_builddir)/onnxmem$(EXEEXT)' --tools '$(abs_builddir)/bench' \
		--threads "$${threads:-1}" --rounds "$${rounds:-5}" --seconds "$${seconds:-1}" --peers "$${peers:-ort ov}" --by "$${by:-best}" \
		--isas "$$isas" --out "$${out:-bench-run}" $${page:+--page "$$page"} $$models
bench-scale: bench/scale$(EXEEXT)
	bench/scale$(EXEEXT) $(srcdir)/docs/scaling.csv $(srcdir)/docs/scaling.svg
bench-pack: bench/pack$(EXEEXT)
	bench/pack$(EXEEXT) --known $(srcdir)/bench/known.csv $(srcdir)/../shared/data/dsa
bench-eager: all bench/eager$(EXEEXT)
	ONNXMEM_THREADS=1 bench/eager$(EXEEXT)
bench-small-ops: all bench/small_ops$(EXEEXT)
	bench/small_ops$(EXEEXT)
# The memory of runs beside onnxsim, onnx-tool and ONNX Runtime, which PYTHON has, and ExecuTorch, TVM, USMP and LiteRT, whose packages are installed
# in the folder ENVIRONMENTS.
bench-totals: all
	folder='$(ENVIRONMENTS)'; $(PYTHON) $(srcdir)/bench/totals.py --onnxmem '$(abs_top_builddir)/onnxmem$(EXEEXT)' --page $(srcdir)/docs/totals.md \
		--install "$${folder:-bench/environments}" \
		$(srcdir)/../shared/data/models/[!l]*.onnx
# TORCH: a Python that has PyTorch.
bench-train-step: all bench/steps$(EXEEXT)
	threads='$(THREADS)' seconds='$(SECONDS)' torch='$(TORCH)' models='$(MODELS)' data='$(DATA)'; \
	$(PYTHON) $(srcdir)/bench/steps.py "$${data:-$(srcdir)/../shared/data/light}" --torch "$${torch:-python3}" --time "$${seconds:-5}" \
		--threads "$${threads:-1}" $$models
