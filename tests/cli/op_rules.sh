# SPDX-License-Identifier: Apache-2.0
# Operators without a definition, planned by rules.
# needs: python
"$PYTHON" - <<'END'
import onnx
from onnx import TensorProto, helper
def info(name, shape): return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
def node(op, i, o, domain='made.up', **more): return helper.make_node(op, i, o, domain=domain, name=op.lower(), **more)
def save(path, nodes, functions=()):
    graph = helper.make_graph(nodes, 'g', [info('x', [1, 'N', 8])], [info('y', None)])
    sets = [helper.make_opsetid('', 17), helper.make_opsetid('made.up', 1), helper.make_opsetid('local', 1)]
    onnx.save(helper.make_model(graph, opset_imports=sets, functions=functions), path)
save('net.onnx', [node('Relu', ['x'], ['r'], ''), node('Conv3', ['r', 'x'], ['a']), node('Quant', ['a'], ['b']),
    node('Split2', ['b'], ['s', 't']), node('Add', ['s', 't'], ['u'], ''), node('Neg', ['u'], ['y'], '')])
inner = helper.make_function('local', 'Twice', ['p'], ['q'], [node('Quant', ['p'], ['m']), node('Quant', ['m'], ['q'])],
    [helper.make_opsetid('made.up', 1)])
save('calls.onnx', [node('Relu', ['x'], ['r'], ''), node('Twice', ['r'], ['a'], 'local'), node('Neg', ['a'], ['y'], '')], [inner])
END
cat >rules.txt <<END
# What the operators of made.up do.
made.up:Conv3=shape:0,scratch:1K      # 1024 bytes

  made.up:Quant=inplace:0,shape:0
made.up:Split2=view:0,shape:0,shape:0@1
made.up:OfAnotherModel=shape:9
END

# Without rules nothing is known; with them, sharing and scratch are planned for both targets.
om report net.onnx --dim N=4
om report net.onnx --dim N=4 --op-rules rules.txt
om report net.onnx --dim N=4 --op-rules rules.txt --target cpu --align 1 --json - | sed -n '/"op_rules"/,/],/p; /"arena_bytes"/p'
om report net.onnx --dim N=4 --op made.up:Conv3=shape:0 --op made.up:Quant=shape:0 --op made.up:Split2=shape:0,shape:0@1 |
	grep -E '^assumed|arena  |total'

# A plan has its rules; the verifier holds it to them.
om plan net.onnx out.onnx --dim N=4 --op-rules rules.txt
om verify out.onnx
om verify out.onnx --op-rules rules.txt
om verify out.onnx --op made.up:Quant=shape:0
om run out.onnx --random 1
om plan net.onnx --sidecar plan.json --dim N=4 --op-rules rules.txt
om verify net.onnx --sidecar plan.json
sed 's/"made.up:Quant=inplace:0,shape:0"/"made.up:Quant=shape:0"/' plan.json >other.json
om verify net.onnx --sidecar other.json
sed 's/scratch:1K/scratch:2K/' plan.json >other.json
om verify net.onnx --sidecar other.json
sed 's/view:0,//' plan.json >other.json
om verify net.onnx --sidecar other.json
sed 's/"made.up:Quant=inplace:0,shape:0"/7/' plan.json >other.json
om verify net.onnx --sidecar other.json
sed 's/"op_rules":/"no_rules":/' plan.json >other.json
om verify net.onnx --sidecar other.json

# Every size of a range; functions, in the file and inlined.
om plan net.onnx range.onnx --dim-range N=1..9 --op-rules rules.txt
om verify range.onnx
om plan calls.onnx out.onnx --dim N=4 --op made.up:Quant=inplace:0,shape:0
om verify out.onnx

# What is no rule.
for rule in '' a made.up:Quant made.up:Quant= made.up:=shape:0 made.up:Quant=shape made.up:Quant=shape: made.up:Quant=shape:x \
	made.up:Quant=shape:-1 made.up:Quant=shape:70000 made.up:Quant=shape:0@ made.up:Quant=shape:0, made.up:Quant=shape:0,shape:0 \
	made.up:Quant=inplace:1 made.up:Quant=inplace:0@1 made.up:Quant=scratch:9999999999G made.up:Quant=scratch:1Q \
	made.up:Quant=scratch:0,scratch:4K \
	'made.up:Quant=shape:0 ' Relu=shape:0 local:Twice=shape:0 made.up:Nothing=shape:0; do
	om report calls.onnx --dim N=4 --op "$rule" | tail -n 2
done
om report net.onnx --op made.up:Quant=shape:0 --op made.up:Quant=shape:0,inplace:0
om report net.onnx --op-rules none.txt
echo 'made.up:Quant=what:0' >>rules.txt
om report net.onnx --op-rules rules.txt
