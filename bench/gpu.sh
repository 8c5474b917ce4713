#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/gpu.sh [FOLDER]: all that a machine with a GPU is needed for, in ten minutes, the most valuable first.
#
# `make bench-gpu` builds what it needs and starts it.  Each step has a limit of time, a log, FOLDER/NAME.log, and a line in
# FOLDER/summary.tsv: its name, `ok`, `wrong`, `skipped` or `late`, seconds, and what it found.  Tables: models.tsv (numbers and bytes), times.tsv.  What is found wrong ends nothing: the other steps run.
#
#   DEVICE   the module, and options, as cuda:device=1 [cuda]
#   SECONDS_IN_ALL   after which no step starts [600]
#   MODELS   files to compare and time [those of the tree; shared/data/models; bench models in BENCH_CACHE]
#   BENCH_CACHE  a folder of models with weights, as bench/models.py makes it [~/.cache/onnxmem-bench]
#   PYTHON   for ONNX Runtime beside it [python3]
#
# The status is 0 if nothing was wrong, 1 if something was, 5 if there is no device.
here=$(cd "$(dirname "$0")/.." && pwd)
build=${abs_builddir:-$(pwd)}
is_step=
if [ "${1:-}" = --step ]; then is_step=yes; shift; fi
out=${1:-gpu-$(date +%Y%m%d-%H%M%S)}
test $# = 0 || shift
device=${DEVICE:-cuda}
limit=${SECONDS_IN_ALL:-600}
python=${PYTHON:-python3}
ONNXMEM=${ONNXMEM:-$build/onnxmem}
LD_LIBRARY_PATH=$build/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH ONNXMEM
data=${ONNXMEM_DATA:-$here/../shared/data}
cache=${BENCH_CACHE:-$HOME/.cache/onnxmem-bench}
begin=$(date +%s)
wrong=0

# A step, which gpu.sh starts with a limit of time, is a function that is called with the rest of the arguments.
test -x "$ONNXMEM" || { echo "gpu.sh: $ONNXMEM is missing: build the package first" >&2; exit 2; }
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)

# say NAME RESULT SECONDS WHAT
say() {
	printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$4" >>"$out/summary.tsv"
	printf '%-16s %-8s %5s s  %s\n' "$1" "$2" "$3" "$4"
	case $2 in wrong|late) wrong=1 ;; esac
}

# step NAME SECONDS COMMAND...: the last line of its output that starts with "= " is what it found.  Status 77: it was skipped.
step() {
	name=$1 seconds=$2; shift 2
	start=$(date +%s)
	left=$((limit - (start - begin)))
	if [ $left -le 0 ]; then say "$name" skipped 0 "the $limit seconds are over"; return; fi
	[ $seconds -gt $left ] && seconds=$left
	timeout -k 5 "$seconds" sh "$here/bench/gpu.sh" --step "$out" "$@" >"$out/$name.log" 2>&1
	got=$?
	found=$(sed -n 's/^= //p' "$out/$name.log" | tail -1 | tr '\t' ' ')
	case $got in
	0) result=ok ;;
	77) result=skipped ;;
	124|137) result=late ;;
	*) result=wrong; found="${found:+$found; }exit $got, see $name.log" ;;
	esac
	say "$name" $result $(($(date +%s) - start)) "$found"
}

# ---- The steps. ----

machine() {
	command -v nvidia-smi >/dev/null || { echo "= there is no nvidia-smi"; return 77; }
	nvidia-smi -q
	echo "= $(nvidia-smi --query-gpu=name,driver_version,memory.total,compute_cap --format=csv,noheader | head -1)"
}

# counted WHAT COMMAND...: run it, and say how many of its points are right.
counted() {
	what=$1; shift
	"$@" >"$out/rows.$$"
	got=$?
	cat "$out/rows.$$"
	echo "= $(grep -c '^ok' "$out/rows.$$") $what right, $(grep -c '^not ok' "$out/rows.$$") wrong"
	rm -f "$out/rows.$$"
	return $got
}

functions() {
	test -x "$build/tests/cuda/vtable" || { echo "= tests/cuda/vtable was not built"; return 77; }
	case $device in cuda*) ;; *) echo "= they are those of the module cuda"; return 77 ;; esac
	counted are "$build/tests/cuda/vtable" "$build/.libs/onnxmem-cuda.so"
}

# rows TYPES OPERATOR...: each kernel against the one of the processor.
rows() {
	test -x "$build/tests/ops/device_rows" || { echo "= tests/ops/device_rows was not built"; return 77; }
	types=$1; shift
	test -z "$types" || export TYPES="$types"
	counted "operators are" env DEVICE="${device%%:*}" TRIALS="${TRIALS:-4}" "$build/tests/ops/device_rows" "$@"
}

models() {
	if [ -n "${MODELS:-}" ]; then printf '%s\n' $MODELS; return; fi
	ls "$here"/models/*.onnx "$data"/models/*.onnx "$cache"/*.onnx 2>/dev/null
}

# one FILE OPTION...: against the numbers of the processor in $out/want.npz.
one() {
	file=$1; shift
	timeout -k 5 60 "$ONNXMEM" run "$file" --random 3 --place all --device "$device" --cache "$out/kernels" --expect "$out/want.npz" --rtol "${RTOL:-1e-3}" --atol "${ATOL:-1e-4}" "$@"
}

# What the device says of memory in use, in MiB, while a process has it; "-": nothing.
used() {
	command -v nvidia-smi >/dev/null || { echo -; return; }
	nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits | sort -n | tail -1 | sed 's/^$/-/'
}

# compare: planned, poison, several streams and without a plan.
compare() {
	printf 'model\tplanned\tpoison\tstreams\tno reuse\twhat\n' >"$out/models.tsv"
	right=0 bad=0 none=0
	for file in $(models); do
		name=$(basename "$file" .onnx)
		if ! timeout -k 5 60 "$ONNXMEM" run "$file" --random 3 --precise --save "$out/want.npz" >"$out/one.log" 2>&1; then
			printf '%s\t-\t-\t-\t-\t%s\n' "$name" "$(tail -1 "$out/one.log" | tr '\t' ' ')" >>"$out/models.tsv"
			none=$((none + 1))
			continue
		fi
		line=$name what=
		for option in --align=256 --poison --parallel-safe --no-reuse; do
			if one "$file" "$option" >"$out/one.log" 2>&1; then line="$line	ok"; else
				line="$line	wrong" what=$(grep -E 'onnxmem:|FAILED' "$out/one.log" | head -1 | tr '\t' ' ')
			fi
		done
		printf '%s\t%s\n' "$line" "$what" >>"$out/models.tsv"
		case $line in *wrong*) bad=$((bad + 1)) ;; *) right=$((right + 1)) ;; esac
	done
	cat "$out/models.tsv"
	echo "= $right models are right, $bad wrong, $none do not run on the processor"
	test $bad = 0 && test $right -gt 0
}

# What a run says when something is missing.
# refused STATUS TEXT ENVIRONMENT OPTION...
refused() {
	want=$1 text=$2 setting=$3; shift 3
	env $setting "$ONNXMEM" run "$here/models/digits.onnx" --random 1 --place all "$@" >"$out/one.log" 2>&1
	got=$?
	cat "$out/one.log"
	test $got = "$want" && grep -q "$text" "$out/one.log" || { echo "exit $got, expected $want and: $text"; return 1; }
}
errors() {
	case $device in cuda*) ;; *) echo "= they are those of the module cuda"; return 77 ;; esac
	bad=0
	refused 5 "there is no CUDA device 999" A= --device cuda:device=999 || bad=1
	refused 5 "device cuda cannot be used" CUDA_VISIBLE_DEVICES= --device cuda || bad=1
	refused 0 "digit" CUDA_VISIBLE_DEVICES= --device cuda,cpu || bad=1
	echo "= $(test $bad = 0 && echo 'all are sentences' || echo 'some are not')"
	return $bad
}

sanitizer() {
	command -v compute-sanitizer >/dev/null || { echo "= there is no compute-sanitizer"; return 77; }
	for tool in memcheck racecheck synccheck; do
		compute-sanitizer --tool $tool --error-exitcode 9 "$ONNXMEM" run "$here/models/digits.onnx" --random 1 --place all --device "$device" || { echo "= $tool"; return 1; }
	done
	echo "= memcheck, racecheck and synccheck have nothing to say of digits"
}

# repeated FILE OPTION...: runs on the device, with kernels that were compiled before.
repeated() {
	file=$1; shift
	timeout -k 5 60 "$ONNXMEM" run "$file" --random 3 --device "$device" --place "${PLACE:-all}" --cache "$out/kernels" --repeat "${REPEAT:-50}" "$@"
}

# Least and mean time of a run, with copies of inputs and outputs, and the least one without captures; bytes of the arena of the device and of memory in use.
timing() {
	printf 'model\tdevice best ms\tdevice mean ms\twithout captures best ms\tprocessor best ms\tarena bytes\tused MiB\n' >"$out/times.tsv"
	n=0
	for file in $(models); do
		name=$(basename "$file" .onnx)
		repeated "$file" >"$out/one.log" 2>&1 &
		pid=$!
		sleep 1
		memory=$(used)
		wait $pid || { printf '%s\t-\t-\t-\t-\t-\t%s\n' "$name" "$(tail -1 "$out/one.log" | tr '\t' ' ')" >>"$out/times.tsv"; continue; }
		best=$(sed -n 's/.*best \([0-9.]*\) ms.*/\1/p' "$out/one.log")
		mean=$(sed -n 's/.*mean \([0-9.]*\) ms.*/\1/p' "$out/one.log")
		arena=$(sed -n "s/.* ${device%%:*} \([0-9]*\) bytes.*/\1/p" "$out/one.log")
		repeated "$file" --no-capture >"$out/one.log" 2>&1
		plain=$(sed -n 's/.*best \([0-9.]*\) ms.*/\1/p' "$out/one.log")
		timeout -k 5 60 "$ONNXMEM" run "$file" --random 3 --repeat 5 >"$out/one.log" 2>&1
		host=$(sed -n 's/.*best \([0-9.]*\) ms.*/\1/p' "$out/one.log")
		printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$name" "${best:--}" "${mean:--}" "${plain:--}" "${host:--}" "${arena:--}" "$memory" >>"$out/times.tsv"
		n=$((n + 1))
	done
	cat "$out/times.tsv"
	echo "= $n models were timed"
	test $n -gt 0
}

peers() {
	"$python" "$here/bench/gpu_peers.py" --repeat "${REPEAT:-50}" --out "$out/peers.tsv" $(models)
}

if [ "$is_step" ]; then
	"$@"
	exit $?
fi

# ---- In order. ----

: >"$out/summary.tsv"
if ! "$ONNXMEM" run "$here/models/digits.onnx" --random 1 --place all --device "$device" >"$out/open.log" 2>&1; then
	say open skipped 0 "$(sed -n 's/^onnxmem: //p' "$out/open.log" | head -1)"
	exit 5
fi
say open ok 0 "$(tail -1 "$out/open.log")"
step machine 10 machine
step functions 20 functions
step rows 60 rows "f32 f16 bf16 u32 i64"
step compare 150 compare
step times 120 timing
step errors 20 errors
step peers 120 peers
step sanitizer 60 sanitizer
step rows-all 120 rows ""
echo "$out/summary.tsv"
exit $wrong
