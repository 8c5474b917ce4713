# SPDX-License-Identifier: Apache-2.0
# Operators that are not known: status 5, unless the file says what comes out.
cat >known.ir <<'END'
program "p" ir 8 opset 13 opset my.domain 1
^main(%x: float32[4,16]) {
	%a = Relu(%x)
	%b: float32[4,32] = my.domain::Widen(%a) as "widen"
	%c = Relu(%b)
	ret %c
}
END
sed 's/%b: float32\[4,32\]/%b/' known.ir >unknown.ir
om report known.ir
om report unknown.ir
om dump unknown.ir --passes inline
om ops Widen
