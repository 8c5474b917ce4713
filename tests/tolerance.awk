# SPDX-License-Identifier: Apache-2.0
# Prints OUTPUT with each number that is near the number in the same place of GOLDEN
# written as it stands there: what `diff GOLDEN` then finds is a real difference.
#
#     awk -f tolerance.awk GOLDEN OUTPUT
#
# Numbers are those with a point or an exponent, and integers opposite to such a one: 1 may be
# another machine's 0.999999.  All other text, and integers among themselves, stay as they are.
# A number is near where it differs by at most 5e-5 of the larger, or by 1e-6: twice what the last
# of six digits can be off by when kernels of two instruction sets, or two libraries, round
# differently, and less than a unit of numbers of four digits, such as shares of memory in a report.
#
# A line is compared with the next one of GOLDEN that has the same text around its numbers,
# so that a line too many or too few does not hide the rest.

function is_number(t) { return t ~ /^[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?$/ }
function is_float(t) { return is_number(t) && t ~ /[.eE]/ }
function abs(x) { return x < 0 ? -x : x }

function near(a, b,    size) {
	if (!is_number(a) || !is_number(b) || !(is_float(a) || is_float(b)))
		return 0
	size = abs(a + 0) > abs(b + 0) ? abs(a + 0) : abs(b + 0)
	return abs(a - b) <= 5e-5 * size || abs(a - b) <= 1e-6
}

# The words of a line, with what separates them: word[1], gap[1], word[2], ...  A word is
# as long as letters, digits, points and signs go, so that no part of a name is a number;
# a point at its end is the sentence's.
function split_words(line, word, gap,    n) {
	n = 0
	while (length(line)) {
		n++
		match(line, /^[-+._0-9A-Za-z%]*/)
		if (RLENGTH > 1 && substr(line, RLENGTH, 1) == ".") RLENGTH--
		word[n] = substr(line, 1, RLENGTH)
		line = substr(line, RLENGTH + 1)
		match(line, /^\.?[^-+._0-9A-Za-z%]*/)
		gap[n] = substr(line, 1, RLENGTH)
		line = substr(line, RLENGTH + 1)
	}
	return n
}

# Whether the lines have the same text around their numbers; then `text` is the second one,
# its numbers written as in the first where they are near.
function alike(golden, line,    n, k, a, ga, b, gb) {
	n = split_words(golden, a, ga)
	if (split_words(line, b, gb) != n)
		return 0
	text = ""
	for (k = 1; k <= n; k++) {
		if (ga[k] != gb[k] || a[k] != b[k] && !(is_number(a[k]) && is_number(b[k])))
			return 0
		text = text (near(a[k], b[k]) ? a[k] : b[k]) gb[k]
	}
	return 1
}

FNR == NR && FILENAME == ARGV[1] { golden[++ngolden] = $0; next }

{
	text = $0
	for (k = at + 1; k <= ngolden && k <= at + 100; k++)
		if (golden[k] == $0 || alike(golden[k], $0)) {
			at = k
			break
		} else
			text = $0
	print text
}
