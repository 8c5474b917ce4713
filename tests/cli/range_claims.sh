# SPDX-License-Identifier: Apache-2.0
# What a plan document claims of a range is not relied on: it is proven again, or refused.
large=1..100000
om plan "$models/dynamic.onnx" --sidecar plan.json --dim-range N=$large
om verify "$models/dynamic.onnx" --sidecar plan.json
verify_edited() {
	sed "$1" plan.json >edited.json
	cmp -s plan.json edited.json && echo "nothing was edited by $1"
	om verify "$models/dynamic.onnx" --sidecar edited.json | tail -2
}
# Formulas: less, more, less for some sizes that no selection has, other symbols, no formula, no piece.
verify_edited 's/576\*N/512*N/'
verify_edited 's/576\*N/640*N/'
verify_edited 's/"576\*N"/"576*N - floor((N + 1)\/99998) + floor((N + 2)\/100002)"/'
verify_edited 's/576\*N/576*M/'
verify_edited 's/576\*N/576*N)/'
verify_edited 's/576\*N/576*(((((((((((((((((((((((((((((((((((((N/'
verify_edited 's/"bytes":\["576\*N"\]/"bytes":["576*N","0"]/'
verify_edited 's/"bytes":\["576\*N"\]/"bytes":[576]/'
verify_edited 's/"bytes":\["576\*N"\]/"bits":["576*N"]/'
verify_edited 's/{"ranges":{"N":\[1,100000\]}/{"ranges":{"N":[1,99999]}/'
verify_edited 's/{"ranges":{"N":\[1,100000\]}/{"ranges":{"N":[0,100000]}/'
# An upper bound that holds is a weaker claim.
verify_edited 's/"bytes":\["576\*N"\]/"at_most":["577*N"]/'
# Sizes, places, the range itself.
verify_edited 's/"N":\[1,100000\]/"N":[1,200000]/g'
verify_edited 's/57600000/57599936/g'
# A run refuses a promise of less than it takes.
sed 's/576\*N/512*N/' plan.json >edited.json
om run "$models/dynamic.onnx" --sidecar edited.json --dim N=8 --fill deterministic
# A Scan and a Loop over all rows, whose last iterations leave states elsewhere; an If; branches that a constant input leaves.
om plan "$models/loop_rows.onnx" rows.onnx --dim-range N=1..50000
om verify rows.onnx
om plan "$models/loop_rows.onnx" branch.onnx --value which=false --dim-range N=1..50000
om verify branch.onnx
# Where there is no proof, each size is verified, unless their programs have many ops.
om plan "$models/dynamic.onnx" cpu.onnx --target cpu --dim-range N=1..1100
om verify cpu.onnx
om plan "$models/dynamic.onnx" many.onnx --target cpu --dim-range N=1..400000
om verify many.onnx
om verify cpu.onnx --every-size
