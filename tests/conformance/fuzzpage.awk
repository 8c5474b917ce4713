# The page of what the fuzzer counted, by operator:
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
	printf "Random models of one operator, or of a few around it: other attributes, shapes and types each time, inputs left\n"
	printf "out, some of them constants.  Every case is inferred with open dims, then runs planned, twice, without reuse and\n"
	printf "poisoned.  Cases are drawn until %d of an operator are judged, %d times as many at most, with the seed %d: by ONNX\n", \
		used["cases"], 4, used["seed"]
	printf "Runtime %s; where that does not know the operator, the version or the type, by the reference evaluator of onnx %s;\n", \
		used["onnxruntime"], used["onnx"]
	printf "or by what the recipe of the case computes with numpy %s.  What nobody judges still runs in all these ways.\n\n", \
		used["numpy"]
	printf "%d operators: %d cases, %d by ONNX Runtime, %d by the reference, %d by their recipes, %d by nobody; %d wrong.\n\n", \
		n, total[4], total[5], total[6], total[7], total[8], total[10]
	print "| operator | judged, by version | cases | ONNX Runtime | reference | recipe | nobody | unsupported | wrong |"
	print "|---|---|---|---|---|---|---|---|---|"
	for (k = 1; k <= n; k++) {
		x = names[k]
		printf "| %s | %s", x, all[x]
		for (c = 4; c <= 10; c++) printf " | %d", sum[x, c]
		print " |"
	}
	print "\n## Operators with fewer cases\n"
	for (k = 1; k <= nreason; k++) print "* " order[k] ": " reason[order[k]]
	if (nblank) print "\n## Versions that nobody judges\n"
	for (k = 1; k <= nblank; k++) print "* " blank[k]
}
