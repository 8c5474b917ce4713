# SPDX-License-Identifier: Apache-2.0
# Manual pages of a header: onnxmem_NAME(3), and for each function of it a line that refers to that page.
#
# A header is blocks, separated by empty lines.  The first comment is the description.  In a block with functions each has the
# comment before it, of several in a row the same, and what follows it in its line; all other blocks are shown as they are.
# Variables: version, of the package; folder, for the pages.

function base(path) {
	sub(/.*\//, "", path)
	sub(/\.h$/, "", path)
	return path
}

# A line of text or code, in which nothing is taken for a macro.
function roff(text) {
	gsub(/\\/, "\\e", text)
	gsub(/-/, "\\-", text)
	sub(/^[.']/, "\\\\\\&&", text)
	return text
}

# The text of a comment, without its marks.
function plain(text) {
	gsub(/\/\*|\*\//, "", text)
	gsub(/(^|\n)[ \t]*\*?[ \t]?/, "\n", text)
	gsub(/^[ \n\t]+|[ \n\t]+$/, "", text)
	return text
}

function put(text) { body = body text "\n" }

function put_lines(text,    n, k, line) {
	n = split(text, line, "\n")
	for (k = 1; k <= n; k++)
		put(line[k] ~ /^[ \t]*$/ ? ".PP" : roff(line[k]))
}

function put_code(text) {
	put(".PP\n.nf")
	put_lines(text)
	put(".fi")
}

# A declaration of a function with its comments.
function put_function(code, text,    name) {
	sub(/^OM_API /, "", code)
	match(code, /om_[a-z0-9_]+\(/)
	name = substr(code, RSTART, RLENGTH - 1)
	names[++nnames] = name
	put(".SS " name)
	put_code(code)
	put(".PP")
	put_lines(text)
}

function put_functions(block,    n, k, line, text, code, tail, in_code, in_text, was_code) {
	n = split(block, line, "\n")
	for (k = 1; k <= n; k++) {
		if (!in_code && !in_text && line[k] ~ /^[ \t]*\/\*/) {
			text = ""
			in_text = 1
		}
		if (in_text) {
			text = text line[k] "\n"
			in_text = line[k] !~ /\*\//
			continue
		}
		code = in_code ? code "\n" line[k] : line[k]
		in_code = line[k] !~ /;/
		if (in_code)
			continue
		tail = code
		sub(/^[^;]*;/, "", tail)
		code = substr(code, 1, length(code) - length(tail))
		if (code ~ /^OM_API .*om_[a-z0-9_]+\(/)
			put_function(code, plain(text) (tail ~ /\/\*/ ? "\n" plain(tail) : ""))
		else
			put_code(code tail)
	}
}

function end_block() {
	if (block ~ /\nOM_API /)
		put_functions(substr(block, 2))
	else if (block ~ /(typedef|struct|enum|union|define|static inline)/)
		put_code(substr(block, 2))
	block = ""
}

/SPDX-License-Identifier/ { next }
/^#(ifndef|define) OM_[A-Z_]*_H$/ || /^#include/ || /^extern "C"/ || /^#ifdef __cplusplus/ { is_guard = /cplusplus/; next }
is_guard && /^}?$/ { next }
is_guard && /^#endif/ { is_guard = 0; next }

!is_told {
	about = about $0 "\n"
	if (/\*\//) {
		is_told = 1
		about = plain(about)
	}
	next
}
/^$/ { end_block(); next }
{ block = block "\n" $0 }

END {
	end_block()
	page = "onnxmem_" base(FILENAME)
	title = about
	sub(/[.:;\n].*/, "", title)
	list = page
	for (k = 1; k <= nnames; k++) {
		list = list ", " names[k]
		print ".so man3/" page ".3" >(folder "/" names[k] ".3")
		close(folder "/" names[k] ".3")
	}
	out = folder "/" page ".3"
	printf ".TH %s 3 \"\" \"%s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B #include <onnxmem/%s.h>\n.PP\npkg\\-config \\-\\-cflags \\-\\-libs onnxmem\n.SH DESCRIPTION\n",
		toupper(page), version, list, roff(title), base(FILENAME) >out
	text = body
	body = ""
	put_lines(about)
	printf "%s.SH DECLARATIONS\n%s.SH SEE ALSO\n.BR onnxmem (1)\n", body, text >out
}
