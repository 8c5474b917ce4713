# SPDX-License-Identifier: Apache-2.0
# Tuning: times differ, so that what does not depend on them is shown.  The time is enough on a busy machine: few runs of
# small models are made.
export ONNXMEM_ISA=generic
om tune "$models/digits.onnx" tuned.onnx --seconds 100 --threads 1 --cache times --json out.json | sed 's/: [0-9]* of/: N of/' | grep -o '^.*kinds of layers\|^cost model\|^chosen\|generic, 1 thread'
grep -c '"choice": ' out.json
grep -o '"schema": .*\|"threads": .*\|"unmeasured": .*\|"layer": .*' out.json
head -n 1 times/layers.tuning
cut -d ' ' -f 1-4 times/layers.tuning | tail -n +2 | sort
# The tuned model computes what the model does.
om run "$models/digits.onnx" --precise --fill deterministic --save want.npz | grep -v '^arena'
om run tuned.onnx --fill deterministic --expect want.npz | grep -v '^arena'
om run tuned.onnx --fill deterministic --expect want.npz --poison | grep -v '^arena'
# What was chosen is used by runs with this folder; nothing is known for other numbers of threads.
sed 's/[^ ]*$/-/; /gemm@50/s/-$/chosen/' times/layers.tuning | sed '1s/.*/onnxmem tuning 1/' >new && mv new times/layers.tuning
om run "$models/digits.onnx" --fill deterministic --threads 1 --cache times --expect want.npz -v 2>&1 | grep -o 'layers are computed as.*\|chosen [0-9]*\|PASSED.*'
om run "$models/digits.onnx" --fill deterministic --threads 2 --cache times -v 2>&1 | grep -o 'times has no .*'
echo damaged >times/layers.tuning
om run "$models/digits.onnx" --fill deterministic --threads 1 --cache times --expect want.npz -v 2>&1 | grep -o 'layers are computed as.*\|times/layers.*\|chosen [0-9]*\|PASSED.*'
# Choices are options of a pass.
om dump "$models/digits.onnx" --passes "lower-layout:choices=product_n1_c128_k10=gemm@200" | grep -o 'block = .*}'
om dump "$models/digits.onnx" --passes "lower-layout:choices=product_n1_c128_k10=winograd9" | grep -o 'block = .*}\|warning.*'
om dump "$models/digits.onnx" --passes "lower-layout:choices=product_n1_c128_k10"
# Limits and errors.
om tune "$models/digits.onnx" --seconds 100 --threads 1 --budget 1K | sed 's/is [0-9]*$/is N/'
om tune "$models/digits.onnx" --seconds 0.1 --target generic
om tune "$models/digits.onnx" --seconds 0.1 --precise
om tune "$models/digits.onnx" --seconds 0.1 --passes pack
om tune "$models/digits.onnx" --slowdown much
om tune "$models/dynamic.onnx" --dim-range N=1..4 --seconds 0.1
om tune "$models/digits.onnx" "$models/digits.onnx"
