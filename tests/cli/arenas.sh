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
