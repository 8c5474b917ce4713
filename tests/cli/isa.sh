# SPDX-License-Identifier: Apache-2.0
# ONNXMEM_ISA chooses the instruction set of the kernels; `generic` is everywhere.
with_isa() (
	ONNXMEM_ISA=$1; shift
	export ONNXMEM_ISA
	om "$@" | sed 's/this machine can run: .*generic$/this machine can run: .../'
)

with_isa generic --version
with_isa nonsense --version
with_isa nonsense run "$models/digits.onnx"
with_isa nonsense --help | tail -n 1
with_isa '' --version | sed 's/^kernels for .*/kernels for ISA/'
unset ONNXMEM_ISA
om help environment | sed -n '/ISA/,/^$/p'

# The best is what there is without; whichever it is, the numbers are near.
for isa in generic avx2 avx512; do
	ONNXMEM_ISA=$isa
	export ONNXMEM_ISA
	! "$ONNXMEM" --version >version 2>&1 || grep -q "^kernels for $isa$" version || cat version
	! grep -q 'kernels for' version || "$ONNXMEM" run "$models/digits.onnx" --random 1 | grep float32 >"$isa.txt"
done
for isa in avx2 avx512; do
	[ ! -e $isa.txt ] || (tests=$here && . "$here/golden.sh" && UPDATE= && same_as_golden generic.txt $isa.txt)
done
