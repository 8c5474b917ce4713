# SPDX-License-Identifier: Apache-2.0
# Plain comments of a header as those of Doxygen.  Lines stay where they are.
#
# A comment belongs to the declaration that follows it without an empty line between;
# of several in a row to each of them, so the second says the same as the first.  A
# comment behind a declaration, a field or a constant belongs to that.  The first one of
# a file belongs to the file.  All others stay plain: they stand between things.
#
# Fields in one line share the comment in front of it or behind it.

function flush_comment(opens,    k) {
	if (n)
		sub(/\/\* ?/, opens, held[1])
	for (k = 1; k <= n; k++)
		print held[k]
	n = 0
}

function base(path) {
	sub(/.*\//, "", path)
	return path
}

# The name that a line declares; "" for none that could be told of.
function name_of(line) {
	sub(/\(.*/, "", line)
	return match(line, /[A-Za-z_0-9]+$/) ? substr(line, RSTART) : ""
}

# The fields of `int a, b;  /* c */` one by one, the last with the comment, which is that
# of all: the others get something in its place.  With the comment in front it is the
# first one's.
function fields(line, in_front,    type, list, out) {
	if (!match(line, /^[ \t]*(const |struct |unsigned )*[a-z_0-9]+ /))
		return line
	type = substr(line, 1, RLENGTH)
	list = substr(line, RLENGTH + 1)
	while (match(list, /^[*a-z_0-9]+, /)) {
		out = out (in_front ? "" : NOTHING) type substr(list, 1, RLENGTH - 2) ";"
		in_front = 0
		list = substr(list, RLENGTH + 1)
	}
	return out (in_front || line ~ /\/\*\*</ ? "" : NOTHING) type list
}

BEGIN { NOTHING = "/** \\&nbsp; */ " }

in_tail {
	in_tail = !/\*\//
	print
	next
}

/SPDX-License-Identifier/ { print ""; next }  # not the comment of the file
/^\t*\/\*/ && !in_comment {
	in_comment = 1
	n = 0
}

in_comment {
	held[++n] = $0
	if (/\*\//) {
		in_comment = 0
		if (!seen++)
			flush_comment("/** @file " base(FILENAME) " @brief ")
	}
	next
}

/^#ifdef __cplusplus/ {
	flush_comment("/* ")
	leader = ""
	in_cplusplus = 1
}

in_cplusplus {
	in_cplusplus = !/^#endif/
	print
	next
}

/^[ \t]*$/ || /^#(include|if|endif)/ {
	flush_comment("/* ")
	leader = ""
	print
	next
}

{
	line = $0
	own = match(line, /[^ \t].*\/\* /) && line !~ /^#/
	if (own) {
		in_tail = line !~ /\*\//
		sub(/\/\* /, "/**< ", line)
	}
	if (depth && (n || own) && line ~ /;/)
		line = fields(line, n)
	if (n) {
		flush_comment("/** ")
		leader = depth ? "" : name_of($0)
	} else if (/^OM_API/ && !own && leader)
		line = "/** @copydoc " leader "() */ " line
	depth += gsub(/{/, "{") - gsub(/}/, "}")
	print line
}
