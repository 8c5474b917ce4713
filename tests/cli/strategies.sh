# SPDX-License-Identifier: Apache-2.0
# One table of all strategies; times vary.
plain_times() {
	sed 's/\(  \(optimal\|feasible\|        \)\)  *[0-9.]*$/\1  T/; s/"\(schedule_\)\{0,1\}ms": [0-9.e-]*/"\1ms": T/'
}
om report "$models/digits.onnx" --all-strategies | plain_times
om report "$models/branches.onnx" --all-strategies --json - | plain_times |
	sed -n '/"naive_bytes"/,/"original_order_bytes"/p; /"strategies"/,/]/p'
om report - --all-strategies <"$models/quant.onnx" | plain_times | sed -n '/^original order/,$p'
