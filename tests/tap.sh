# SPDX-License-Identifier: Apache-2.0
# Sourced by tests that print TAP: numbered points, with what a command wrote where one fails.
n=0
tap_log=${TMPDIR:-/tmp}/tap.$$

# point STATUS WHAT [FILE]: 0 is ok; else the file is shown.
point() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then echo "ok $n - $2"; else
		echo "not ok $n - $2"
		[ -z "${3:-}" ] || sed 's/^/# /' "$3"
	fi
}

# check WHAT COMMAND...
check() {
	what=$1; shift
	"$@" >"$tap_log" 2>&1
	point $? "$what" "$tap_log"
	rm -f "$tap_log"
}

skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

# check_empty WHAT TEXT: ok if nothing was found to be wrong.
check_empty() { check "$1" sh -c 'printf "%s\n" "$1"; test -z "$1"' - "$2"; }

end() { echo "1..$n"; }
