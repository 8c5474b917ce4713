# SPDX-License-Identifier: Apache-2.0
# Sourced by tests whose output is compared with a golden file; `tests` names this folder.
#
# same_as_golden GOLDEN OUTPUT: shows what differs, and fails where something does.  Text is compared
# exactly, numbers as tolerance.awk says: no golden file depends on the digits that an
# instruction set or a mathematical library gives.  UPDATE=1 accepts the output; numbers that
# were near enough stay as they are.

same_as_golden() {
	if [ ! -e "$1" ] && [ "${UPDATE:-}" = 1 ]; then : >"$1"; fi
	"${AWK:-awk}" -f "$tests/tolerance.awk" "$1" "$2" >"$2.near" || return 1
	if [ "${UPDATE:-}" = 1 ]; then cp "$2.near" "$1"; fi
	diff -u "$1" "$2.near"
	set -- $? "$2.near"
	rm -f "$2"
	return "$1"
}
