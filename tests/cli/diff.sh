# SPDX-License-Identifier: Apache-2.0
# What differs in the memory of two models: text, Markdown, JSON, limits.
net() {         # net WIDTH NAME OP: a program whose middle has WIDTH channels
	printf 'program "net" ir 8 opset 17\n^net(%%x: float32[1,4,8,8], %%w: float32[%d,4,1,1]) {\n' "$1"
	printf '\t%%a = Conv(%%x, %%w)\n\t%%%s = %s(%%a)\n\t%%b = GlobalAveragePool(%%%s)\n\t%%y = Relu(%%b)\n\tret %%y\n}\n' "$2" "$3" "$2"
}
net 8 r Relu >old.ir
net 12 r Relu >wide.ir
net 8 q Relu >named.ir
net 8 r Softmax >soft.ir
om diff old.ir old.ir
om diff old.ir wide.ir
om diff old.ir named.ir | sed -n '/renamed/,$p'
# Two layers of one kind are renamed together, and not taken for each other.
twice() {
	printf 'program "net" ir 8 opset 17\n^net(%%x: float32[1,4,8,8], %%w: float32[4,4,1,1]) {\n\t%%%s = Conv(%%x, %%w)\n' "$1"
	printf '\t%%%s = Conv(%%%s, %%w)\n\t%%%s = Conv(%%%s, %%w)\n\t%%y = Add(%%%s, %%%s)\n\tret %%y\n}\n' "$2" "$1" "$3" "$2" "$1" "$3"
}
twice a b c >abc.ir
twice p q r >pqr.ir
om diff abc.ir pqr.ir | sed -n '/appeared\|went/p;/renamed/,$p'
om diff old.ir wide.ir --markdown -
# Names are no mentions, formulas, entities or struck out in Markdown.
for f in old wide; do sed 's/%a/%"@a#1$x$~~y~~\&amp;"/g' $f.ir >marked-$f.ir; done
om diff marked-old.ir marked-wide.ir --markdown - | grep code
om diff old.ir soft.ir --json -
# The differences at the peaks add up to the difference of the peaks.
for pair in "old.ir wide.ir" "$models/digits.onnx $models/branches.onnx" "$models/loop_swap.onnx $models/nnc_lag.onnx"; do
	"$ONNXMEM" diff $pair --json - | tr -d ' ,' | awk -F: '/^"change":/ { change = 1 } change && /^"peak_bytes"/ { want = $2; change = 0 }
		/^"peak":/ { peak = 1 } peak && /^"change_bytes"/ { sum += $2; n++ } /^\]/ { peak = 0 } END { print (n > 0), (sum == want) }'
done
# Reports that were kept, on both sides or on one; options count for models alone.
"$ONNXMEM" report old.ir --json old.json >report.txt
"$ONNXMEM" report wide.ir --json wide.json >report.txt
"$ONNXMEM" diff old.ir wide.ir >models.txt
"$ONNXMEM" diff old.json wide.json | cmp - models.txt && echo reports tell the same as models
"$ONNXMEM" diff old.json wide.ir | cmp - models.txt && echo a report and a model, too
"$ONNXMEM" diff old.json - <wide.json | cmp - models.txt && echo from standard input
om diff old.json wide.ir --align 1024 | sed -n '/arena  /p'
# An older report lists no tensors.
sed '/"tensors": \[/,/^  \],/d' old.json >older.json
om diff older.json wide.json
# The limit.
om diff old.ir wide.ir --allow 50% -q | tail -1
om diff old.ir wide.ir --allow 49% | tail -2
om diff old.ir wide.ir --allow 1K | tail -1
om diff old.ir wide.ir --allow 1023 | tail -1
om diff wide.ir old.ir --allow 0 | tail -1
om diff old.ir wide.ir --allow 10% --of total | tail -1
om diff old.ir wide.ir --of total
om diff old.ir wide.ir --allow 1%% --of arena
om diff old.ir wide.ir --allow 1% --of peak
# Plans as they are: in the files, or in a document for the other file.
om plan "$models/digits.onnx" packed.onnx -q
om plan "$models/digits.onnx" naive.onnx --passes inline,shapes,fold,prune,liveness,pack -q
om diff packed.onnx naive.onnx --stored
om diff packed.onnx naive.onnx | sed -n '/^ *arena/p'
om diff packed.onnx "$models/digits.onnx" --stored
om plan "$models/digits.onnx" --sidecar doc.json -q
om diff doc.json "$models/digits.onnx" --align 256 | sed -n '1p;/^ *arena/p'
om diff doc.json old.json
# What is no model and no report.
echo '{"schema":"onnxmem-report/1","arena_bytes":-1}' >bad.json
om diff bad.json old.json
echo '{"schema":"onnxmem-pack/1"}' >pack.json
om diff old.json pack.json
echo '{"schema":' >cut.json
om diff cut.json old.json
printf '{"schema":"onnxmem-report/1","arena_bytes":1,"lower_bound_bytes":1,"weights_bytes":1,"io_bytes":1,"total_bytes":1,"peak":{"live":[{"bytes":9223372036854775807},{"bytes":9223372036854775807},{"bytes":2}]}}' >over.json
om diff over.json old.json
# A part of a size that has more than 64 bits.
for n in 5 9; do
	echo '{"schema":"onnxmem-report/1","arena_bytes":N,"lower_bound_bytes":1,"weights_bytes":1,"io_bytes":1,"total_bytes":N}' |
		sed "s/N/${n}000000000000000000/g" >huge$n.json
done
om diff huge5.json huge9.json --allow 1000% | tail -1
om diff old.ir none.onnx
om diff old.ir wide.ir --json wide.ir
