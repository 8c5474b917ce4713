# Elements at the edge of what an operator says: what random cases found.
calc() {
	printf 'program "edges" ir 8 opset %s\n^main() {\n' "$1" >edges.ir
	cat >>edges.ir
	echo "}" >>edges.ir
	om run edges.ir
}

# Infinities end at the largest numbers where Clip has no bounds.
calc 21 <<'END'
	%f = const float32[4] {inf, -inf, nan, 3.0}
	%a = Clip(%f)
	%low = const float32[] {-1.0}
	%b = Clip(%f, %low)
	ret %a, %b
END

# The empty string is zero.
calc 21 <<'END'
	%t = const string[3] {"a", "", "b"}
	%a = NonZero(%t)
	ret %a
END

# Numbers as text, and back.
calc 21 <<'END'
	%bools = const bool[2] {1, 0}
	%f = const float32[5] {0.5, -1e10, inf, -inf, nan}
	%i = const int64[2] {9223372036854775807, -3}
	%a = Cast(%bools) {to = 8}
	%b = Cast(%f) {to = 8}
	%c = Cast(%i) {to = 8}
	%d = Cast(%c) {to = 7}
	ret %a, %b, %c, %d
END

# What is not a number is one thing, the last; complex numbers go by both parts.
calc 21 <<'END'
	%f = const float32[5] {2.0, nan, 1.0, nan, 2.0}
	%a, %b, %c, %d = Unique(%f)
	ret %a, %d
END

# Integers are not left out.
calc 18 <<'END'
	%i = const int32[4] {-9, 0, 3, 4}
	%a = Erf(%i)
	%m = const int8[2,2] {100, 2, -3, 50}
	%b = Einsum(%m, %m) {equation = "ij,jk->ik"}
	%x = const int16[1,2,2] {1, 2, 3, 4}
	%n = const int64[1] {3}
	%k = const int64[1] {2}
	%c = Col2Im(%x, %n, %k)
	ret %a, %b, %c
END
