# SPDX-License-Identifier: Apache-2.0
# Reads sources of the kernel language (language.h), each a file NAME.omk or NAME.h, and prints C.
#
#   awk -v what=texts -v table=T -v root=SRCDIR/src   the texts, as a table T of om_gpu_text; an #include becomes the file
#   awk -v what=kernels                               all kernels in all types, in the dialect of C, as om_gpu_kernels
function fail(message) {
	print FILENAME ":" FNR ": " message >"/dev/stderr"
	failed = 1
	exit 1
}
function base_name(path) {
	sub(/.*\//, "", path)
	sub(/\.[a-z]*$/, "", path)
	return path
}

# ---- texts ----
function quoted(line) {
	# Twice as often as it looks: once for the text of this script, once for gsub().
	gsub(/\\/, "\\\\\\\\", line)
	gsub(/"/, "\\\"", line)
	return "\t\"" line "\\n\""
}
function put_text(line,    path, inner) {
	if (line !~ /^#include "/) {
		print quoted(line)
		return
	}
	path = line
	sub(/^#include "/, "", path)
	sub(/".*/, "", path)
	path = root "/" path
	while ((inner = (getline line <path)) > 0)
		print quoted(line)
	if (inner < 0)
		fail("there is no " path)
	close(path)
}

# ---- kernels ----
# The names after `word` in the first comment of the source.
function types_after(word,    rest) {
	if (!match(comment, word ": [a-z0-9 ]*"))
		return ""
	rest = substr(comment, RSTART, RLENGTH)
	sub(/^[a-z]*: /, "", rest)
	sub(/ +to$/, "", rest)
	sub(/ +$/, "", rest)
	return rest
}
# A call of kernel k, and the letters of its parameters: m memory, l i64, i i32, f f32.
function read_head(head,    params, n, part, i, k, call, letters, name) {
	name = head
	sub(/^OM_KERNEL\([0-9]+\) K2?\(/, "", name)
	sub(/\).*/, "", name)
	params = head
	sub(/^OM_KERNEL\([0-9]+\) K2?\([a-z0-9_]+\)\(/, "", params)
	sub(/\) \{$/, "", params)
	gsub(/OM_JOIN\([a-z_]+, TO\)/, "TO", params)
	gsub(/OM_IN\([A-Za-z0-9]+, /, "OM_IN(", params)
	gsub(/OM_OUT\([A-Za-z0-9]+, /, "OM_OUT(", params)
	n = split(params, part, /, /)
	k = 0
	for (i = 1; i <= n; i++) {
		if (part[i] ~ /^OM_(IN|OUT)\(/) {
			call = call ", v[" k "].base, v[" k++ "].offset"
			letters = letters "m"
		} else if (part[i] ~ /^OM_SIX\(/) {
			call = call ", v[" k "].i, v[" k + 1 "].i, v[" k + 2 "].i, v[" k + 3 "].i, v[" k + 4 "].i, v[" k + 5 "].i"
			letters = letters "llllll"
			k += 6
		} else if (part[i] ~ /^i64 /) {
			call = call ", v[" k++ "].i"
			letters = letters "l"
		} else if (part[i] ~ /^i32 /) {
			call = call ", (i32)v[" k++ "].i"
			letters = letters "i"
		} else if (part[i] ~ /^f32 /) {
			call = call ", v[" k++ "].f"
			letters = letters "f"
		} else
			fail("parameter \"" part[i] "\" of " name " is of no type that kernels have")
	}
	kernels++
	kernel_name[kernels] = name
	kernel_call[kernels] = substr(call, 3)
	kernel_letters[kernels] = letters
	kernel_barriers[kernels] = "false"
}
function put_instance(type, to,    k, joined, suffix) {
	print "#define TN " type
	if (to)
		print "#define TO " to
	print "#include \"kernels/gpu/" base_name(source) ".omk\""
	joined = to ? "K2" : "K"
	suffix = to ? type "_" to : type
	for (k = 1; k <= kernels; k++) {
		print "static void\n" joined "(call_" kernel_name[k] ")(const void *values)\n{"
		print "\tconst om_gpu_value *v = values;\n"
		print "\t" joined "(" kernel_name[k] ")(" kernel_call[k] ");\n}"
		rows = rows "\t{\"" kernel_name[k] "_" suffix "\", \"" kernel_letters[k] "\", call_" kernel_name[k] "_" suffix ", " \
			kernel_barriers[k] "},\n"
	}
	print "#undef TN"
	if (to)
		print "#undef TO"
}
function end_source(    n, m, i, j, from, to) {
	if (!source)
		return
	if (what == "texts") {
		print "\t},"
		return
	}
	n = split(types_after("types"), from, / +/)
	m = split(types_after("to"), to, / +/)
	if (!n)
		fail("the first comment of " source " has no types")
	for (i = 1; i <= n; i++)
		if (m)
			for (j = 1; j <= m; j++)
				put_instance(from[i], to[j])
		else
			put_instance(from[i], "")
}

BEGIN {
	print "/* Made by embed.awk. */\n#include <config.h>\n"
	if (what == "texts")
		print "#include \"kernels/gpu/source.h\"\n\nconst om_gpu_text " table "[] = {"
	else
		print "#include \"kernels/gpu/dialect_c.h\"\n#include \"kernels/gpu/language.h\"\n#include \"kernels/gpu/host.h\"\n\n" \
			"#pragma GCC diagnostic ignored \"-Wunused-parameter\"\n#pragma GCC diagnostic ignored \"-Wtype-limits\"\n#pragma GCC diagnostic ignored \"-Wtautological-compare\"\n"
}
FNR == 1 {
	end_source()
	source = FILENAME
	comment = ""
	is_comment = 1
	kernels = 0
	if (what == "texts")
		print "\t{\"" base_name(FILENAME) "\","
}
what == "texts" {
	put_text($0)
	next
}
is_comment {
	comment = comment " " $0
	if (/\*\//)
		is_comment = 0
}
/^OM_KERNEL\(/ {
	if ($0 !~ /\) \{$/)
		fail("the head of a kernel is no line that ends with \") {\"")
	read_head($0)
}
/OM_SHARED\(/ { kernel_barriers[kernels] = "true" }
END {
	if (failed)
		exit 1
	end_source()
	if (what == "texts")
		print "\t{NULL, NULL}\n};"
	else
		print "\nconst om_gpu_kernel om_gpu_kernels[] = {\n" rows "\t{NULL, NULL, NULL, false}\n};"
}
