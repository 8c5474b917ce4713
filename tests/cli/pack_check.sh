# SPDX-License-Identifier: Apache-2.0
# Packings of others: the offsets in a table are checked and drawn.
"$ONNXMEM" report "$models/digits.onnx" --csv digits.csv --json digits.json >report.txt
om pack digits.csv --check --ascii | sed -n '/^[a-zA-Z]/p;/ at .* steps/p'
grep '"arena_bytes"' digits.json
cat >other.csv <<'END'
id,lower,upper,size,offset,name
1,0,4,64,0,first
2,2,6,64,64,second
3,4,8,32,32,third
END
om pack other.csv --check --json - -q
sed 's/^3,4/3,3/' other.csv >bad.csv
om pack bad.csv --check --svg bad.svg --ascii | sed -n '/^[a-zA-Z]/p;/ at .* steps/p'
grep -c 'this plan is not valid' bad.svg
om pack bad.csv --check --json - -q | grep '"valid"\|"fault"'
# Buffers that their runtime places are left out.
sed 's/^3,4,8,32,32/3,3,8,32,/' other.csv >some.csv
om pack some.csv --check
cut -d, -f1-4 other.csv >none.csv
om pack none.csv --check
# Limits, pools, alignment, pairs.
om pack other.csv --check --pool sram=100
om pack other.csv --check --align 64
printf 'id,lower,upper,size,offset,pool\na,0,2,8,0,fast\nb,1,3,8,0,slow\nc,1,4,8,4,slow\n' >pools.csv
om pack pools.csv --check
printf 'id,lower,upper,size,offset\na,0,2,8,0\nb,1,3,8,0\n' >two.csv
om pack two.csv --check --pool fast=64 --pool slow
printf 'a,b\n1,2\n2,3\n' >pairs.csv
om pack other.csv --check --pairs pairs.csv
om pack other.csv --check --pairs pairs.csv --ascii -q
om pack other.csv --check -o out.csv
printf 'id,lower,upper,size,offset\na,0,2,9223372036854775807,1\n' >far.csv
om pack far.csv --check
# The bound is that of the lifetimes, not of the offsets.
printf 'id,lower,upper,size,offset\na,0,2,8,0\nb,1,3,8,64\n' >wide.csv
om pack wide.csv --check
