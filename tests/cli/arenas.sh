# SPDX-License-Identifier: Apache-2.0
# Budgets, and several arenas: in reports, in files, in runs.
om report "$models/digits.onnx" --budget 6K --budget-of arena | sed -n '4,8p'
om report "$models/digits.onnx" --budget 6143 --budget-of arena
om plan "$models/digits.onnx" no.onnx --budget 2K --budget-of arena
om plan "$models/digits.onnx" no.onnx --passes pack=pool-exact --budget 6400 --budget-of arena
ls no.onnx
om report "$models/digits.onnx" --arena sram=4K --arena dram
om report "$models/digits.onnx" --arena sram=4K,align=256 --arena dram --csv -
om report "$models/digits.onnx" --arena sram=4K --arena dram --json - | sed -n '/"arenas"/,/]/p'
om report "$models/digits.onnx" --arena sram=4K --arena dram --ascii | sed -n '/planned/,$p'
om report "$models/digits.onnx" --arena sram=4K --arena dram=1K
om report "$models/digits.onnx" --arena sram=4K --arena dram --budget 5K --budget-of arena
om plan "$models/digits.onnx" two.onnx --arena sram=4K,device=cpu --arena dram=2K
om verify two.onnx
om run two.onnx --fill deterministic --save expected
om run two.onnx --fill deterministic --poison --expect expected
om run two.onnx --fill deterministic --no-reuse --expect expected
om plan "$models/loop.onnx" loop.onnx --default-dim 2 --arena sram=200 --arena dram -q
om verify loop.onnx
om plan "$models/digits.onnx" no.onnx --arena sram=4K --arena dram --compat onnxsim
for wrong in =4K a=4X a=0 a=1K,align=3 a=1K,color=red a=1K,device=gpu; do
	om report "$models/digits.onnx" --arena $wrong
done
om report "$models/digits.onnx" --arena a --arena b=1K
om report "$models/digits.onnx" --arena a=1K --arena a
om report "$models/digits.onnx" --budget 0

# The alignment of an arena wins over the default, also where it is less; not over --align.
om plan "$models/digits.onnx" dtcm.onnx --arena dtcm=64K,align=16
om verify dtcm.onnx
om plan "$models/digits.onnx" mixed.onnx --arena dtcm=512,align=16 --arena dram
om verify mixed.onnx
om plan "$models/digits.onnx" wide.onnx --arena dtcm=64K,align=16 --align 32
om verify wide.onnx

# Tensors in given arenas, with what shares memory with them.
om report "$models/digits.onnx" --arena sram=4K --arena dram --pin c3=sram --pin c1=dram --csv -
om report "$models/digits.onnx" --arena sram=2K --arena dram=9K --pin small=sram --pin c2=sram --csv -
om report "$models/digits.onnx" --arena sram=1K --arena dram --pin c3=sram
om plan "$models/digits.onnx" pinned.onnx --arena sram=4K --arena dram=2K --pin r2=dram
om verify pinned.onnx
om plan "$models/digits.onnx" pinned2.onnx --arena sram=4K --arena dram=2K --pin r2=dram --export json:pinned.json >/dev/null
grep -o '"pins":{[^}]*}' pinned.json
for wrong in '"r2":"sram"' '"r2":"rom"' '"r9":"dram"' '"r2":3'; do
	sed "s/\"pins\":{[^}]*}/\"pins\":{$wrong}/" pinned.json >wrong.json
	om verify "$models/digits.onnx" --sidecar wrong.json
done
om run pinned.onnx --fill deterministic --poison --expect expected
om report "$models/digits.onnx" --pin c3=arena | grep 'arena  '
om report "$models/loop.onnx" --default-dim 2 --arena sram=4K --arena dram --pin c3=dram
for wrong in c3=x x=sram picture=sram w1=dram c3 =x c3=; do
	om report "$models/digits.onnx" --arena sram=4K --arena dram --pin $wrong
done
om report "$models/digits.onnx" --arena sram=4K --arena dram --pin c1=sram --pin r1=dram
om report "$models/digits.onnx" --arena sram=4K --arena dram --pin c1=sram --pin c1=sram
om report "$models/digits.onnx" --arena sram=4K --passes pack=pool-exact --pin c1=sram

# What a run reads and writes: views and parts of a Concat move nothing, a body counts once per iteration.
cat >moves.ir <<'END'
program "moves" ir 8 opset 14
^main(%x: float32[16]) {
	%a = Neg(%x)
	%b = Exp(%x)
	%c = Concat(%a, %b) {axis = 0}
	%s = const int64[2] {4, 8}
	%v = Reshape(%c, %s)
	%y = MatMul(%v, %w)
	%w = const float32[8,2] {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}
	ret %y
}
END
sed -i '/%w = const/{h;d}; /%s = const/{p;s/.*/	%w = const float32[8,2] {1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8}/}' moves.ir
om report moves.ir --json - --align 1 | sed -n '/"traffic"/,/]/p'
om report moves.ir --json - --align 1 --passes inline,shapes,fold,prune,liveness,pack | sed -n '/"traffic"/,/]/p'
om report "$models/loop.onnx" --default-dim 2 --json - | sed -n '/"traffic"/,/]/p'
