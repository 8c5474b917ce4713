# SPDX-License-Identifier: Apache-2.0
# Generates the page with the counts of the fuzzer, by operator:
#     awk -f fuzzpage.awk coverage_exceptions.tsv fuzz.tsv
BEGIN {
	FS = "\t"
	print "# Operators and random cases\n"
	print "Counted by `make fuzz-ops CASES=200 UPDATE=1`, written by `make check UPDATE=1 TESTS=tests/conformance/fuzzed.test`;"
	print "do not edit.\n"
}
FNR == 1 { file++ }
file == 1 { reason[$1] = $2; order[++nreason] = $1; next }
FNR == 1 {
	for (k = 1; k <= NF; k++) {
		split($k, word, " ")
		used[word[1]] = word[2]
	}
	next
}
{
	name = ($1 == "ai.onnx" ? "" : $1 ".") $2
	if (!(name in all)) names[++n] = name
	for (k = 4; k <= 10; k++) { sum[name, k] += $k; total[k] += $k }
	all[name] = all[name] (all[name] == "" ? "" : ", ") $3 ": " $4 - $8
	if ($4 == $8) blank[++nblank] = name " " $3
}
END {
	printf "Random models of one operator, or of a few: attributes, shapes and types are drawn for each case, optional inputs\n"
	printf "may be omitted, and inputs may be constants.  Shapes of every case are inferred with open dims; then it runs with its\n"
	printf "plan, twice, without reuse and poisoned.  Cases are drawn, with seed %d, until %d cases of an operator have a reference\n", \
		used["seed"], used["cases"]
	printf "result, and at most %d times as many.  The reference is ONNX Runtime %s; for operators, versions and types that it does\n", \
		4, used["onnxruntime"]
	printf "not support, the reference evaluator of onnx %s, or what the recipe of the case computes with numpy %s.  Cases\n", \
		used["onnx"], used["numpy"]
	printf "without a reference result run in all these ways too.\n\n"
	printf "%d operators: %d cases, %d compared with ONNX Runtime, %d with the reference evaluator, %d with their recipes, %d with nothing; %d wrong.\n\n", \
		n, total[4], total[5], total[6], total[7], total[8], total[10]
	print "| operator | compared, by version | cases | ONNX Runtime | reference | recipe | none | unsupported | wrong |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (k = 1; k <= n; k++) {
		x = names[k]
		printf "| %s | %s", x, all[x]
		for (c = 4; c <= 10; c++) printf " | %d", sum[x, c]
		print " |"
	}
	print "\n## Operators with fewer cases\n"
	for (k = 1; k <= nreason; k++) print "* " order[k] ": " reason[order[k]]
	if (nblank) print "\n## Versions without a reference\n"
	for (k = 1; k <= nblank; k++) print "* " blank[k]
}
