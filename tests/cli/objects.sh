# SPDX-License-Identifier: Apache-2.0
# Sequences, optionals and maps in files: a folder of .pb files, a .npz file.
cat >make.ir <<'END'
program "make" ir 8 opset 18 opset ai.onnx.ml 3
^main(%x: float32[2]) {
	%y = Neg(%x)
	%list = SequenceConstruct(%x, %y, %x)
	%none = SequenceEmpty()
	%may = Optional(%y)
	%dims = const int64[2] {1, 2}
	%row = Reshape(%x, %dims)
	%maps = ai.onnx.ml::ZipMap(%row) {classlabels_strings = ["cat", "dog"]}
	ret %list, %none, %may, %maps
}
END
om run make.ir --fill x:value=3 --save made
om run make.ir --fill x:value=3 --save made.npz
ls made
om run make.ir --fill x:value=3 --expect made
om run make.ir --fill x:value=3 --expect made.npz

# Two tolerances of each element; the element that differs is named.
om run make.ir --fill x:value=3.001 --expect made.npz --atol 0.01 | tail -n 2
om run make.ir --fill x:value=4 --expect made | tail -n 2
sed 's/(%x, %y, %x)/(%x, %y)/' make.ir >shorter.ir
om run shorter.ir --fill x:value=3 --expect made.npz | tail -n 2
sed 's/(%x, %y, %x)/(%x, %x, %x)/' make.ir >other.ir
om run other.ir --fill x:value=3 --expect made | tail -n 2
sed 's/"cat"/"cow"/' make.ir >keys.ir
om run keys.ir --fill x:value=3 --expect made.npz | tail -n 2

# As inputs.
cat >take.ir <<'END'
program "take" ir 8 opset 18 opset ai.onnx.ml 3
^main(%list: seq(float32), %none: seq(float32), %may: optional(float32), %maps: seq(map(string, float32))) {
	%n = SequenceLength(%list)
	%zero = SequenceLength(%none)
	%has = OptionalHasElement(%may)
	%is = OptionalGetElement(%may)
	%again = SequenceInsert(%list, %is)
	%back = Identity(%maps)
	ret %n, %zero, %has, %is, %again, %back
}
END
mkdir in
for k in 0 1 2 3; do cp made/output_$k.pb in/input_$k.pb; done
om run take.ir --data in --save took.npz
om run take.ir --data made.npz --expect took.npz
om run take.ir --fill deterministic

# Entries that are missing, or of another type.
cat >parts.ir <<'END'
program "parts" ir 8 opset 18
^main(%x: float32[2], %n: int64[]) {
	%"list.length" = Identity(%n)
	%"list[0]" = Neg(%x)
	%"may.length" = Identity(%n)
	%"maps.length" = Identity(%n)
	%"maps[0].keys" = Identity(%x)
	ret RESULTS
}
END
part() {
	sed "s/RESULTS/$1/" parts.ir >some.ir
	"$ONNXMEM" run some.ir --fill x:value=3 --fill "n:value=$2" --save some.npz >/dev/null
	om run take.ir --data some.npz
}
part '%"list.length", %"list[0]"' 2
part '%"list.length", %"list[0]"' -1
part '%"list.length", %"list[0]"' 1
part '%"may.length", %"list[0]"' 2
part '%"maps.length", %"maps[0].keys"' 1
