# SPDX-License-Identifier: Apache-2.0
# Plans for the executor: the file keeps its graph, the plan is for what passes make of it.
unset ONNXMEM_THREADS
all=schedule,liveness,views,alias-io=declared,inplace,loops,pack
plain="inline,shapes,fold,prune,$all"
om plan "$models/digits.onnx" planned.onnx --target cpu --passes "$plain" --sidecar plan.json --quiet
grep -o '"target":.*"order":\[[0-9,]*\]' plan.json | sed 's/sha256:[0-9a-f]*/sha256:.../'
[ "$("$ONNXMEM" hash planned.onnx)" = "$("$ONNXMEM" hash "$models/digits.onnx")" ] && echo the same graph
om verify planned.onnx | tail -n 2
om verify "$models/digits.onnx" --sidecar plan.json | tail -n 2
"$ONNXMEM" run planned.onnx --random 1 | grep float32 >a
"$ONNXMEM" run "$models/digits.onnx" --random 1 --passes "$plain" | grep float32 >b
cmp a b && echo the same numbers
om strip planned.onnx original.onnx
cmp original.onnx "$models/digits.onnx"

# The default passes, whichever they are.
"$ONNXMEM" run "$models/digits.onnx" --random 1 | grep float32 >usual
"$ONNXMEM" plan "$models/digits.onnx" usual.onnx --target cpu --quiet
"$ONNXMEM" verify usual.onnx | sed -n 's/ .*$//p' | tail -n 1
"$ONNXMEM" run usual.onnx --random 1 | grep float32 | cmp - usual

# Passes of the caller are recorded; bodies have orders of their own.
for model in loop control branches; do
	om plan "$models/$model.onnx" own.onnx --target cpu --threads 3 --passes "inline,shapes,fold,cse,prune,fuse,$all" --quiet
	om verify own.onnx | tail -n 2
	"$ONNXMEM" run own.onnx --poison --random 1 >/dev/null || echo "$model does not run"
done

# Other passes, another order and another program are refused.
for edit in 's/"passes":"[^"]*"/"passes":"inline,shapes"/' 's/"program":"sha256:./"program":"sha256:g/' \
	's/"passes":"[^"]*"/"passes":"inline,nonsense"/' 's/"passes":"[^"]*"/"passes":"inline,shapes,annotate"/' \
	's/"passes":"[^"]*"/"passes":"inline,shapes,fold,prune,backward"/' 's/"order":\[0,1,/"order":[1,0,/' 's/"order":\[0,1,/"order":[0,0,/' \
	's/"lowered":{[^}]*}/"lowered":{}/' 's/"threads":1/"threads":-1/'; do
	sed "$edit" plan.json >edited.json
	cmp -s plan.json edited.json && echo same
	om verify "$models/digits.onnx" --sidecar edited.json | tail -n 2 | sed 's/sha256:[0-9a-f]*/sha256:.../g'
done

# Values of the program are not those of the file.
om plan "$models/digits.onnx" values.onnx --target cpu --annotate model,value

# Precise plans are for reference kernels; whoever runs one uses these.
om plan "$models/digits.onnx" precise.onnx --target cpu --precise --sidecar precise.json --quiet
grep -o '"target":.*"lowered"' precise.json
"$ONNXMEM" run precise.onnx --random 1 | grep float32 >precise
"$ONNXMEM" run "$models/digits.onnx" --precise --random 1 | grep float32 | cmp - precise

# The number of threads.
om run "$models/digits.onnx" --threads 0
om run "$models/digits.onnx" --threads 2000
for n in 0 2x -1 +1 99999999999; do
	ONNXMEM_THREADS=$n om run "$models/digits.onnx"
done
ONNXMEM_THREADS= "$ONNXMEM" run "$models/digits.onnx" --random 1 | grep float32 | cmp - usual

# A pass that recomputes ops runs again, too.
om plan "$models/digits.onnx" again.onnx --target cpu --passes "$plain" --rematerialize 100 --quiet
om verify again.onnx | tail -n 2
"$ONNXMEM" run again.onnx --random 1 | grep float32 | cmp - b
