# A plan for a range of sizes, and its runs.
om plan "$models/dynamic.onnx" planned.onnx --dim-range N=1..32
om verify planned.onnx
for n in 1 8 32; do
	om run "$models/dynamic.onnx" --dim N=$n --fill deterministic --target generic --precise --save own.npz | tail -1
	om run planned.onnx --dim N=$n --fill deterministic --precise --expect own.npz --rtol 0 --atol 0 | tail -2
done
om run planned.onnx --fill deterministic --dim N=33
om run planned.onnx --fill deterministic --dim M=3
om run planned.onnx --fill deterministic --input-shape 40,1,6,6
om run planned.onnx --fill deterministic --input-shape 4,1,5,6
om plan "$models/dynamic.onnx" fixed.onnx --dim N=8
om run fixed.onnx --fill deterministic --dim N=4
om run "$models/dynamic.onnx" --fill deterministic --dim-range N=1..32 | tail -1
om plan "$models/dynamic.onnx" planned.onnx --dim-range N=32..1
om plan "$models/dynamic.onnx" planned.onnx --dim-range N=1
om plan "$models/dynamic.onnx" planned.onnx --dim-range K=1..3
om plan "$models/dynamic.onnx" planned.onnx --dim-range N=1..100000
