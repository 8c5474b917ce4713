# SPDX-License-Identifier: Apache-2.0
# Parts, the list of them, and what is refused.
om split "$models/trained.onnx" parts --parts 2
om report parts/part-1.onnx --io arena -q | sed -n '/^  total/p'
sed -n '/"schema"/p; /"file"/p; /"name"/p; /"from"/p; /"is_output"/p' parts/parts.json
om split "$models/trained.onnx" parts --budget 16K
om split "$models/loop_collect.onnx" parts --parts 2 --default-dim 4
om split "$models/trained.onnx" parts --budget 1K
om split "$models/trained.onnx" parts --parts 3 --budget 8K
om split "$models/trained.onnx" parts --parts 12
om split "$models/trained.onnx" parts
om split "$models/trained.onnx" "$models/trained.onnx" --parts 2
"$ONNXMEM" dump "$models/trained.onnx" >text.ir
om split text.ir parts --parts 2
