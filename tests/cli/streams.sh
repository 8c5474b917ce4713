# SPDX-License-Identifier: Apache-2.0
# Plans for workers that run ops side by side: two branches, each of which keeps its own memory in a stream.
cat >branches.ir <<'END2'
program "branches" ir 8 opset 13
^main(%x: float32[256,256], %w: float32[256,256]) {
	%i = const int64[] {0}
	%a = CumSum(%x, %i)
	%b = CumSum(%w, %i)
	%c = CumSum(%a, %i)
	%d = CumSum(%b, %i)
	%e = CumSum(%c, %i)
	%f = CumSum(%d, %i)
	%y = Add(%e, %f)
	ret %y
}
END2
om report branches.ir --streams 2
om report branches.ir --streams 2 --json - | sed -n '/"streams"/,/}/p; /"parallel_safe"/p'
om report branches.ir --all-streams
om report branches.ir --all-streams --json - | sed -n '/"workers": \[/,/\]/p'
om run branches.ir --fill deterministic --threads 1 --save expected
om run branches.ir --fill deterministic --streams 2 --expect expected | tail -2
om run branches.ir --fill deterministic --streams 2 --poison --expect expected | tail -2

# In a file: a model, and a document.
om plan "$models/branches.onnx" two.onnx --streams 2
om report two.onnx --stored | head -8
om verify two.onnx
om run two.onnx --fill deterministic --save expected | tail -1
om run "$models/branches.onnx" --fill deterministic --threads 1 --expect expected | tail -1
om plan "$models/digits.onnx" two.onnx --streams 2 --target cpu --sidecar two.json
om verify "$models/digits.onnx" --sidecar two.json
grep -o '"streams":{"count":2,"ops":\[\["[^]]*\]' two.json

# A document that is damaged: too many streams, a wait that is left out or too early, an op in another stream, in none, and in two.
om plan "$models/decoder.onnx" --default-dim 64 --streams 2 --sidecar good.json
for edit in 's/"count":2/"count":9/' 's/\["masked",1,"mask"\]/["masked",1]/' 's/\["k1",0,"x"\]/["k1",0,"y"]/' 's/\["scaled",1\]/["scaled",0]/' \
	's/\["scaled",1\]/["scaled",2]/' 's/\["scaled",1\],//' 's/\["scaled",1\]/["scaled",1],["scaled",1]/' 's/\["masked",1,"mask"\]/["masked",1,"mosk"]/' \
	's/\["scaled",1\]/["scaled"]/'; do
	sed "$edit" good.json >bad.json
	cmp -s good.json bad.json && echo "no change: $edit"
	om verify "$models/decoder.onnx" --sidecar bad.json
done

# What streams do not go with.
om report branches.ir --streams 9
om report branches.ir --streams 2 --threads 2
om report branches.ir --streams 2 --device sim
om plan "$models/dynamic.onnx" any.onnx --dim-range N=1..4 --streams 2
om plan "$models/digits.onnx" any.onnx --streams 2 --export tflm:any.h
om report two.onnx --stored --all-streams
