#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# long.sh RUNS SECONDS CORPUS TARGET...: search with each target, in the build folder.  What was found stays in
# fuzz-long/: TARGET/ has the inputs that reach new code, TARGET-* those that fail, TARGET.log what libFuzzer says.
runs=$1 limit=$2 corpus=$3
shift 3
# The entropic schedule takes most of the time for targets as fast as these: without it, libFuzzer runs 3 to 8 times as
# many inputs, and finds more.  Archives are unpacked in memory where there is a folder for it.
test -z "$TMPDIR" && test -w /dev/shm && TMPDIR=/dev/shm && export TMPDIR
failed=0
printf '%-10s %12s %8s %8s\n' target executions seconds findings
for target in "$@"; do
	mkdir -p fuzz-long/$target || exit 1
	rm -f fuzz-long/$target-*
	start=$(date +%s)
	tests/fuzz/readers/${target}_search -entropic=0 -timeout=5 -rss_limit_mb=1024 -max_len=4096 -runs="$runs" -max_total_time="$limit" \
		-print_final_stats=1 -artifact_prefix=fuzz-long/$target- fuzz-long/$target "$corpus/$target" \
		>fuzz-long/$target.log 2>&1 || failed=1
	found=$(ls fuzz-long | grep -c "^$target-")
	printf '%-10s %12s %8s %8s\n' $target "$(sed -n 's/^stat::number_of_executed_units: *//p' fuzz-long/$target.log)" \
		$(($(date +%s) - start)) "$found"
	test "$found" = 0 || failed=1
done
exit $failed
