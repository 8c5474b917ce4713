# SPDX-License-Identifier: Apache-2.0
# The packer on tables.
cat >small.csv <<'END'
id,lower,upper,size
b1,0,3,4
b2,3,9,4
b3,0,9,4
b4,9,21,4
b5,0,21,4
END
om pack small.csv
om pack - -o - -q <small.csv
om pack small.csv --output out.csv --json out.json --align 8
cat out.csv out.json
om pack out.csv -o - -q
om pack out.csv --ignore-offsets -q -o -
om pack small.csv -o small.csv
# Columns in any order, comments, quotes, other names for them.
cat >all.csv <<'END'
# what it is,of no use
size,"alignment",id,note,begin,end,offset,gaps,access_bytes,pool,group
100,16,"a, or b","he said ""no""",0,9,,3-5 6-8@0:10,1000,,
64,64,fixed,,0,9,64,,10,slow,
90,,late,,3,4,,,,,
12, 4 ,first,,2,7,,,500,,together
6,2,second,,4,9,,,500,,together
END
om pack all.csv -o - --pool fast=128 --pool slow=1K,align=32
om pack all.csv --pool fast=64 --pool slow=100
om pack all.csv --pool fast=64 --pool medium
# Only pairs count.
printf 'a,b\nx,y\ny,z\n' >pairs.csv
printf 'id,size\nx,10\ny,20\nz,15\nw,30\n' >sizes.csv
om pack sizes.csv --pairs pairs.csv -o -
om pack sizes.csv
om pack small.csv --pairs pairs.csv
# What is wrong is said where it is.
wrong() {
	printf "$1" >wrong.csv
	om pack wrong.csv -q
}
wrong ''
wrong 'id,lower,upper\n'
wrong 'id,lower,upper,size\na,1,2\n'
wrong 'id,lower,upper,size,Size\n'
wrong 'id,lower,upper,size\n\na,1,1,5\n'
wrong 'id,lower,upper,size\na,1,-2,5\n'
wrong 'id,lower,upper,size\na,1,4294967296,5\n'
wrong 'id,lower,upper,size\na,1,2,9223372036854775808\n'
wrong 'id,lower,upper,size\na,1,2,9223372036854775807\nb,1,2,9223372036854775807\n'
wrong 'id,lower,upper,size\na,1,2,5x\n'
wrong 'id,lower,upper,size\na,1,2,"5"x\n'
wrong 'id,lower,upper,size\na,1,2,"5\n'
wrong 'id,lower,upper,size\na,1,2,\n'
wrong 'id,lower,upper,size,alignment\na,1,2,4,48\n'
wrong 'id,lower,upper,size,gaps\na,1,9,4,2-3 4\n'
wrong 'id,lower,upper,size,gaps\na,1,9,4,2-5 4-6\n'
wrong 'id,lower,upper,size,gaps\na,1,9,4,1-9\n'
wrong 'id,lower,upper,size,gaps\na,1,9,4,2-3@0:5\n'
wrong 'id,lower,upper,size,offset\na,1,9,4,0\nb,3,4,4,2\n'
wrong 'id,lower,upper,size,offset,alignment\na,1,9,4,2,4\n'
wrong 'id,lower,upper,size,group,alignment\na,1,9,3,g,1\nb,1,9,4,g,4\n'
om pack small.csv --pool fast=0
om pack small.csv --pool fast=8,align=3
om pack small.csv --pool fast=4 --pool fast
om pack small.csv --align 3
om pack nothing.csv
om pack "$models/digits.onnx"
om pack small.csv -o
om pack small.csv -o no/such/folder.csv
om report "$models/digits.onnx" --csv report.csv -q | tail -1
om pack report.csv --ignore-offsets --align 64
om report "$here/ir/inplace/concat.ir" --csv concat.csv -q | tail -1
cat concat.csv
om pack concat.csv --align 64
