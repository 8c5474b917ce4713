#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench/api.sh [FOLDER]: the size of the public interface: functions and types by header, and in all.
# A folder of headers of another version is read the same way:
#
#	git archive COMMIT include | tar -x -C DIR && bench/api.sh DIR/include/onnxmem
here=$(cd "$(dirname "$0")/.." && pwd)
cd "${1:-$here/include/onnxmem}" || exit 1
for f in *.h *.h.in; do
	test -f "$f" && printf '\001%s\n' "$f" && cat "$f"
done | "${AWK:-awk}" '
	# Comments are left out, and a declaration is one line.
	/^\001/ { header = substr($0, 2); name[++n] = header; next }
	{
		line = $0
		while (1) {
			if (inside) {
				if (!(at = index(line, "*/")))
					next
				line = substr(line, at + 2); inside = 0
			}
			if (!(at = index(line, "/*")))
				break
			head = substr(line, 1, at - 1); line = substr(line, at + 2)
			if (!(to = index(line, "*/"))) { inside = 1; line = head; break }
			line = head substr(line, to + 2)
		}
		if (line ~ /^(static inline |OM_API )/) { functions[header]++; allf++ }
		if (line ~ /^typedef / || (line ~ /^(struct|enum) om_[a-z_]* {/)) {
			gsub(/^typedef (struct|enum) |^(struct|enum) |^typedef /, "", line)
			match(line, /om_[a-z0-9_]*/)
			type = substr(line, RSTART, RLENGTH)
			if (type in known)
				next
			known[type] = 1; types[header]++; allt++
		}
	}
	END {
		for (k = 1; k <= n; k++)
			printf "%-20s %4d functions %4d types\n", name[k], functions[name[k]], types[name[k]]
		printf "%-20s %4d functions %4d types\n", "in all", allf, allt
	}'
