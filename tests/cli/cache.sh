# SPDX-License-Identifier: Apache-2.0
# The weights of a run in files that later runs map.
cat >weights.ir <<'END'
program "weights" ir 8 opset 18
^main(%x: float32[160,160]) {
	%axis = const int64[] {0}
	%c = const float32[160,160] splat {1.0}
	%sum = CumSum(%c, %axis)
	%turned = Transpose(%sum)
	%y = Add(%x, %turned)
	ret %y
}
END
cached() {
	om run weights.ir -v --fill deterministic "$@" | sed -n -e 's/[0-9a-f]\{64\}/KEY/' -e '/weights\|^y\|^\$\|^->/p'
}

cached --cache made --stats stats.json
grep weight_bytes stats.json
cached --cache made --stats stats.json
grep weight_bytes stats.json
# A file that is damaged is replaced.
for file in made/*; do
	printf 'x' | dd of="$file" bs=1 seek=40 conv=notrunc 2>/dev/null
done
cached --cache made
cached --cache made
for file in made/*; do
	head -c 9000 "$file" >part
	mv part "$file"
done
cached --cache made
ls made | sed 's/[0-9a-f]\{64\}/KEY/'
# Where no file can be written, the model is run without.
touch file
cached --cache file
cached --cache none/below
