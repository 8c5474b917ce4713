# SPDX-License-Identifier: Apache-2.0
# Writes docs/parts.md.  Reads parts.tsv (domain, operator, along which axes there are parts, along which there are
# contributions to sums, why there are none), then what `onnxmem ops NAME...` shows of all operators.  Complains to the
# file `wrong` about operators that the table does not fit.
function complain(what) { print what >wrong }
function finish(    key, label) {
	if (name == "")
		return
	key = domain "\t" name
	label = (domain == "-" ? "" : domain "::") name
	has[key] = has[key] || parts
	adds[key] = adds[key] || sums
	elementwise[key] = elementwise[key] || pointwise
	text[key] = label
	if (!(key in seen))
		order[++n] = key
	seen[key]
}
BEGIN { FS = "\t" }
FNR == 1 { file++ }
file == 1 {
	key = $1 "\t" $2
	along[key] = $3
	sum[key] = $4
	why[key] = $5
	listed[key]
	next
}
/^[^ ]/ {
	finish()
	split($0, word, /[ ,]+/)
	domain = word[1] == "ai.onnx" ? "-" : word[1]
	name = word[2]
	parts = sums = pointwise = 0
}
/^  a part of the output/ { parts = 1 }
/, and sums from parts/ { sums = 1 }
/^  each output element depends/ { pointwise = 1 }
END {
	finish()
	print "# Operators that are computed in parts"
	print ""
	print "Written by `make check UPDATE=1 TESTS=tests/ops/parts.test`; do not edit."
	print ""
	print "A part of an output, a range of one of its axes, is computed from parts of the inputs, by the same operator with"
	print "other attributes and constants (`onnxmem/slice.h`). Elements have the bits that the whole op computes, but for sums"
	print "whose kernels choose the order of additions by sizes: reductions of floating point, and products of three rows or"
	print "columns at most. A *surplus* is computed with a part and cut off. Sums are also computed from parts of the axes that"
	print "are summed over, one contribution after another. `tests/ops/slices` computes parts of all operators along all axes."
	print ""
	print "| operator | parts along | contributions of parts of |"
	print "|---|---|---|"
	for (k = 1; k <= n; k++) {
		key = order[k]
		if (has[key] && !elementwise[key] && along[key] == "")
			complain("parts.tsv does not tell along which axes there are parts of " text[key])
		if (!has[key] && why[key] == "")
			complain("parts.tsv does not tell why there are no parts of " text[key])
		if (has[key] && why[key] != "")
			complain("there are parts of " text[key] ", but parts.tsv tells why there are none")
		if ((adds[key] != 0) != (sum[key] != ""))
			complain("parts.tsv is wrong about contributions to sums of " text[key])
		if (has[key] && along[key] != "")
			print "| " text[key] " | " along[key] " | " sum[key] " |"
	}
	for (key in listed)
		if (!(key in seen))
			complain("parts.tsv has an operator that does not exist: " key)
	print ""
	print "Elementwise operators have parts along all axes, as operands are broadcast:"
	for (k = 1; k <= n; k++)
		if (elementwise[order[k]] && along[order[k]] == "")
			list = list (list == "" ? "" : ", ") text[order[k]]
	print list "."
	print ""
	print "| operator | why it has no parts |"
	print "|---|---|"
	for (k = 1; k <= n; k++)
		if (!has[order[k]])
			print "| " text[order[k]] " | " why[order[k]] " |"
}
