# needs: python
# A net is trained by its step, rated, and saved; other tools read it.
"$PYTHON" "$here/cli/mlp.py"
om train mlp.step.onnx --data train.npz --rate 0.05 --epochs 3 --net mlp.onnx --held-out test.npz --save trained.onnx |
	sed 's/loss [0-9.]*/loss/'
"$PYTHON" "$here/cli/mlp.py" trained.onnx
om train mlp.step.onnx --data train.npz --rate 0.05 --epochs 3 --net mlp.onnx --save again.onnx --recompute 50 --target cpu | tail -2
cmp trained.onnx again.onnx && echo same
om report mlp.step.onnx --dim N=64 | sed -n '/in place/p; /most in use/,$p'
om plan mlp.step.onnx planned.onnx --dim N=64
om verify planned.onnx

# The plan that the file carries is used for batches of its size, and gives the same.
onto="--data train.npz --rate 0.05 --batch 64 -q"
"$ONNXMEM" train mlp.step.onnx $onto --checkpoint whole.npz >/dev/null
om train planned.onnx --data train.npz --rate 0.05 --batch 64 --checkpoint carried.npz -v 2>&1 | grep -e carries -e '\$'
cmp whole.npz carried.npz && echo same
om train planned.onnx --data train.npz --rate 0.05 --batch 64 --order file -v 2>&1 | grep -e carries -e '\$'
om train mlp.step.onnx --data train.npz --rate 0.05 --net "$models/branches.onnx"
om train mlp.step.onnx --data train.npz --rate 0.05 --net mlp.onnx --held-out test.npz --label x
om train mlp.step.onnx --data train.npz --rate 0.05 --net mlp.onnx --save mlp.onnx
