# SPDX-License-Identifier: Apache-2.0
# The table of operators from the results of the backend tests:
#     awk -v onnx=VERSION -f table.awk exceptions.tsv results.tsv FRESH
# FRESH are results of the tests as that version of onnx makes them; it may be empty.
# An expanded test counts for the operator that was expanded.
BEGIN {
	FS = "\t"
	print "# Operators and the ONNX backend tests\n"
	print "Written by `make check UPDATE=1 TESTS=tests/conformance/conformance.test`; do not edit.\n"
	print "Every test runs planned, without reuse and poisoned.  *Unsupported* are tests that are"
	print "refused with a sentence and exit code 5.\n"
}
FNR == 1 { file++ }
file == 1 { reason[$1] = $2; next }
FILENAME == ARGV[ARGC - 1] { fresh[$1]++; nfresh++; if ($1 != "pass") notnow[++nnot] = $2 ": " $5; next }
{
	suite = substr($2, 1, index($2, "/") - 1)
	if (!(suite in tests)) suites[++nsuite] = suite
	tests[suite]++
	all[suite, $1]++
	verdict[++n] = $1; test[n] = $2; op[n] = $3; version[n] = $4; why[n] = $5
	operator[$2] = $3
}
function least(a, b) { return a == "" || b + 0 < a + 0 ? b : a }
function most(a, b) { return b + 0 > a + 0 ? b : a }
END {
	print "| suite | tests | pass | fail | unsupported |\n|---|---|---|---|---|"
	for (k = 1; k <= nsuite; k++) {
		s = suites[k]
		printf "| %s | %d | %d | %d | %d |\n", s, tests[s], all[s, "pass"], all[s, "fail"], all[s, "unsupported"]
	}
	for (k = 1; k <= n; k++) {
		name = op[k]
		if (name == "") {
			base = test[k]
			sub(/_expanded.*/, "", base)
			name = operator[base]
		}
		if (name == "") continue
		if (!(name in total)) names[++nname] = name
		total[name]++
		by[name, verdict[k]]++
		if (version[k]) { low[name] = least(low[name], version[k]); high[name] = most(high[name], version[k]) }
	}
	for (k = 2; k <= nname; k++) {
		x = names[k]
		for (j = k - 1; j > 0 && names[j] > x; j--) names[j + 1] = names[j]
		names[j + 1] = x
	}
	print "\n| operator | opset of the tests | pass | fail | unsupported |\n|---|---|---|---|---|"
	for (k = 1; k <= nname; k++) {
		x = names[k]
		v = low[x] == high[x] ? low[x] : low[x] " to " high[x]
		printf "| %s | %s | %d | %d | %d |\n", x, v, by[x, "pass"], by[x, "fail"], by[x, "unsupported"]
	}
	print "\n## Tests that do not pass\n"
	print "Named exceptions are of files made by an older release.  Attention and QLinearMatMul were corrected since"
	print "by errata, without a new version: both readings are of version 24, or 21, and nothing in a model tells which"
	print "is meant.  We follow the standard as it is, which the tests of the newest release expect.\n"
	for (k = 1; k <= n; k++)
		if (verdict[k] != "pass") {
			r = test[k] in reason ? reason[test[k]] : why[k]
			print "* " test[k] ": " (verdict[k] == "fail" && test[k] in reason ? "named exception: " : "") r
		}
	if (nfresh) {
		print "\n## The tests as onnx " onnx " makes them\n"
		print fresh["pass"] + 0 " of " nfresh " pass, " fresh["fail"] + 0 " fail, " fresh["unsupported"] + 0 " are unsupported.\n"
		for (k = 1; k <= nnot; k++) print "* " notnow[k]
	}
	print "\n## Tests with a wider tolerance\n"
	print "All others have those of the suite\x27s own runner: 1e-3 of a number, 2^-6 of one of bfloat16, and 1e-7.\n"
	for (k = 1; k <= n; k++)
		if (verdict[k] == "pass" && why[k] != "") print "* " test[k] ": " why[k]
}
