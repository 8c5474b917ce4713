# SPDX-License-Identifier: Apache-2.0
# needs: python
# A net is trained by its step, rated, and saved; other tools read it.
"$PYTHON" "$here/cli/mlp.py"
om train mlp.step.onnx --data train.npz --lr 0.05 --epochs 3 --model mlp.onnx --eval-data test.npz --save trained.onnx |
	sed 's/loss [0-9.]*/loss/; s/held-out \(9[5-9]\|100\)\.00 % (\1 of 100)/held-out at least 95 of 100/'
"$PYTHON" "$here/cli/mlp.py" trained.onnx | sed 's/: \(9[5-9]\|100\) of 100$/: at least 95 of 100/'
om train mlp.step.onnx --data train.npz --lr 0.05 --epochs 3 --model mlp.onnx --save again.onnx --rematerialize 50 --target cpu | tail -2
cmp trained.onnx again.onnx && echo same
om report mlp.step.onnx --dim N=64 | sed -n '/in place/p; /peak by phase/,$p'
om plan mlp.step.onnx planned.onnx --dim N=64
om verify planned.onnx

# The plan that the file carries is used for batches of its size, and gives the same.
onto="--data train.npz --lr 0.05 --batch 64 -q"
"$ONNXMEM" train mlp.step.onnx $onto --checkpoint whole.npz >/dev/null
om train planned.onnx --data train.npz --lr 0.05 --batch 64 --checkpoint carried.npz -v 2>&1 | grep -e carries -e '\$'
cmp whole.npz carried.npz && echo same
om train planned.onnx --data train.npz --lr 0.05 --batch 64 --schedule original -v 2>&1 | grep -e carries -e '\$'
om train mlp.step.onnx --data train.npz --lr 0.05 --model "$models/branches.onnx"
om train mlp.step.onnx --data train.npz --lr 0.05 --model mlp.onnx --eval-data test.npz --label x
om train mlp.step.onnx --data train.npz --lr 0.05 --model mlp.onnx --save mlp.onnx
