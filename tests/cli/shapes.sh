# Inputs' shapes on the command line.
om report "$models/dynamic.onnx"
om report "$models/dynamic.onnx" --default-dim 2
om report "$models/dynamic.onnx" --dim N=2 --json - | grep -A3 '"dims"'
om report "$models/dynamic.onnx" --dim=N=2 --dim NN=3
om report "$models/dynamic.onnx" --dim N
om report "$models/dynamic.onnx" --dim-range N=1..3 --default-dim 1 --json - | grep -A3 '"dims"'
om report "$models/dynamic.onnx" --dim-range N=3..1
om report "$models/digits.onnx" --input-shape picture:1,1,8,8 --json - | grep arena_bytes
om report "$models/digits.onnx" --overwrite-input-shape 1x1x8x8 --json - | grep arena_bytes
om report "$models/digits.onnx" --input-shape 'picture:[1,1,8,8]' --json - | grep arena_bytes
om report "$models/digits.onnx" --input-shape 1,1,9,9
om report "$models/digits.onnx" --input-shape picture:1,1
om report "$models/digits.onnx" --input-shape photo:1,1,8,8
om report "$models/digits.onnx" --input-shape picture:1,x
om report "$models/digits.onnx" --input-shape picture:
om report "$models/branches.onnx" --input-shape 1,2
