# SPDX-License-Identifier: Apache-2.0
# needs: python
# A plan for a rewritten program is written with that program; description has the same bits.
front=inline,shapes,fold back=prune,schedule=min-memory,liveness,views,alias-io=declared,inplace,loops,pack
"$PYTHON" "$here/cli/fusable.py"
om plan fusable.onnx plain.onnx
om plan fusable.onnx rewritten.onnx --passes $front,cse,fuse,cse,$back
om verify rewritten.onnx
"$PYTHON" "$here/cli/fusable.py" rewritten.onnx
"$ONNXMEM" run plain.onnx --fill deterministic --save plain.npz | tail -1
om run rewritten.onnx --fill deterministic --expect plain.npz --rtol 0 --atol 0 | tail -2
om run rewritten.onnx --fill deterministic --expect plain.npz --rtol 0 --atol 0 --poison | tail -1
om run fusable.onnx --fill deterministic --passes $front,fuse:pad=fold,$back --expect plain.npz --atol 1e-6 | tail -2
om run fusable.onnx --passes cse=sometimes
om run fusable.onnx --passes fuse:norm=all
