# SPDX-License-Identifier: Apache-2.0
# A suite of models: planned, verified, run, compared with a baseline.

# npy FILE SHAPE BYTES CHARACTER: bytes that are all the same.
npy() {
	printf '\223NUMPY\001\000\166\000%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': ($2), }" >"$1"
	head -c "$3" /dev/zero | tr '\000' "$4" >>"$1"
}

# net FILE BYTES: a sum that cannot lie where an input is.
net() {
	cat >"$1" <<END
program "net" ir 8 opset 14
^main(%x: uint8[$2]) {
	%a = Add(%x, %x)
	%b = Mul(%a, %x)
	%c = Add(%b, %a)
	%y = Add(%c, %c)
	ret %y
}
END
}

mkdir -p zoo/test_data_set_0 zoo/test_data_set_1 zoo/test_data_set_10
net zoo/net.ir 100
npy zoo/test_data_set_0/input_0.npy 100, 100 '\001'
npy zoo/test_data_set_0/output_0.npy 100, 100 '\010'
npy zoo/test_data_set_1/input_0.npy 100, 100 '\002'
npy zoo/test_data_set_1/output_0.npy 100, 100 '\030'
npy zoo/test_data_set_10/input_0.npy 100, 100 '\000'
npy zoo/test_data_set_10/output_0.npy 100, 100 '\000'
cat >zoo/suite.json <<END
{"schema": "onnxmem-suite/1", "options": ["--align", "1"],
 "models": [{"path": "net.ir", "name": "net"}, {"path": "$models/digits.onnx", "name": "digits"}]}
END

# Without a baseline nothing is compared; --update makes one.
om regress zoo/suite.json
om regress zoo/suite.json --update -j 1
om regress zoo/suite.json --update
cat zoo/suite.baseline.json
om regress zoo/suite.json

# A planted growth of one byte, in the plan and in the record.
net zoo/net.ir 101
rm zoo/test_data_set_0/input_0.npy zoo/test_data_set_0/output_0.npy
sed 's/"net"}/"net", "data": ["none"]}/' zoo/suite.json >zoo/grown.json
mkdir zoo/none
npy zoo/none/input_0.npy 101, 101 '\001'
npy zoo/none/output_0.npy 101, 101 '\010'
om regress zoo/grown.json --baseline zoo/suite.baseline.json net
net zoo/net.ir 100
npy zoo/test_data_set_0/input_0.npy 100, 100 '\001'
npy zoo/test_data_set_0/output_0.npy 100, 100 '\010'
sed '/"digits"/,/}/s/"arena_bytes": [0-9]*/"arena_bytes": 6143/' zoo/suite.baseline.json >less.json
om regress zoo/suite.json --baseline less.json
sed '/"net"/,/}/s/"lower_bound_bytes": [0-9]*/"lower_bound_bytes": 1/' zoo/suite.baseline.json >less.json
om regress zoo/suite.json --baseline less.json net
sed '/"digits"/,/}/s/"arena_bytes": [0-9]*/"arena_bytes": 9999/' zoo/suite.baseline.json >more.json
om regress zoo/suite.json --baseline more.json digits
om regress zoo/suite.json --baseline more.json digits --update
cmp more.json zoo/suite.baseline.json && echo equal

# Growth that is allowed, by the command line and by the suite; of the total alone.
sed '/"digits"/,/}/s/"arena_bytes": [0-9]*/"arena_bytes": 6100/' zoo/suite.baseline.json >less.json
om regress zoo/suite.json --baseline less.json --allow 0.5% digits
om regress zoo/suite.json --baseline less.json --allow 43 digits
om regress zoo/suite.json --baseline less.json --allow 44 digits
sed 's/"options"/"allow": "1%", "options"/' zoo/suite.json >zoo/allow.json
om regress zoo/allow.json --baseline less.json digits
om regress zoo/allow.json --baseline less.json digits --allow 0
om regress zoo/suite.json --allow 1%x
om regress zoo/suite.json --allow -1%
sed '/"digits"/,/}/s/"total_bytes": [0-9]*/"total_bytes": 16000/; /"digits"/,/}/s/"weights_bytes": [0-9]*/"weights_bytes": 9500/' \
	zoo/suite.baseline.json >less.json
om regress zoo/suite.json --baseline less.json digits
sed '/"total_bytes"/d; /"weights_bytes"/d; /"options"/d; /"peak/,/]/d; s/\("digest": ".*"\),/\1/; s/\("data_sets": 3\),/\1/' zoo/suite.baseline.json >old.json
om regress zoo/suite.json --baseline old.json

# A part is not rounded before it is taken: 29 % of 100 are 29.
net zoo/part.ir 129
echo '{"schema": "onnxmem-suite/1", "options": ["--align", "1"], "models": [{"path": "part.ir", "name": "part"}]}' >zoo/part.json
echo '{"schema": "onnxmem-baseline/1", "models": {"part": {"arena_bytes": 100, "lower_bound_bytes": 100}}}' >part.json
om regress zoo/part.json --baseline part.json --plan-only --allow 29%
om regress zoo/part.json --baseline part.json --plan-only --allow 28%

# The baseline has the options that it was made with.
cat >zoo/open.json <<END
{"schema": "onnxmem-suite/1", "models": [{"path": "$models/dynamic.onnx", "name": "a"}, {"path": "$models/dynamic.onnx", "name": "b"}]}
END
om regress zoo/open.json --update --dim N=8 --io arena --schedule bfs
sed -n '/"options"/,/]/p' zoo/open.baseline.json
om regress zoo/open.json a
om regress zoo/open.json a --io arena --allow 10
om regress zoo/open.json a --dim N=9
om regress zoo/open.json a --align 1
om regress zoo/open.json a --dim N=9 --update
om regress zoo/open.json --dim N=9 --update
sed -n '/"options"/,/]/p' zoo/open.baseline.json
for word in '"--plugin=x.so"' '"--update"' '"--nonsense"' '"word"' '7'; do
	sed "s/\"--dim=N=9\"/$word/" zoo/open.baseline.json >wrong.json
	om regress zoo/open.json --baseline wrong.json
done

# A baseline has no options that no model could be planned with; one that is damaged is no baseline.
om regress zoo/open.json --baseline never.json --update --dim M=8
ls never.json
for wrong in 's/"arena_bytes": [0-9]*/"arena_bytes": "x"/' 's/"arena_bytes": [0-9]*,//' 's/"total_bytes": /&-/' 's/"a": {/"a": 5, "c": {/'; do
	sed "$wrong" zoo/open.baseline.json >wrong.json
	om regress zoo/open.json --baseline wrong.json a
done

# Only planned: no data is read, and an operator may be unknown.
sed 's/%c = Add(%b, %a)/%c: uint8[100] = "made.up::Op"(%b, %a)/' zoo/net.ir >zoo/unknown.ir
sed 's/net.ir/unknown.ir/; s/"net"/"net", "data": ["nothing"]/' zoo/suite.json >zoo/unknown.json
om regress zoo/unknown.json net
om regress zoo/unknown.json net --plan-only
om regress zoo/suite.json --plan-only

# For GitHub.
sed 's/"name": "net"/"name": "n:e,t|<%>"/; s/"net.ir"/".\/net.ir"/; s/"digits"/"*new*"/' zoo/suite.json >zoo/names.json
GITHUB_STEP_SUMMARY=$PWD/summary.md
export GITHUB_STEP_SUMMARY
echo before >summary.md
sed 's/"net": {/"n:e,t|<%>": {/; s/"arena_bytes": 100/"arena_bytes": 101/' zoo/suite.baseline.json >less.json
om regress zoo/names.json --baseline less.json --github
cat summary.md
om regress zoo/names.json --baseline less.json --github --json all.json --junit - | sed 's/ time="[0-9.]*"/ time="T"/' | grep -v '[<]'
GITHUB_STEP_SUMMARY=$PWD/no/folder om regress zoo/suite.json --github --plan-only net | sed "s|$PWD|.|"
GITHUB_STEP_SUMMARY= om regress zoo/suite.json --github --plan-only net

# A planted wrong number; what fails is not recorded.
cp zoo/test_data_set_1/output_0.npy right.npy
printf '\021' | dd of=zoo/test_data_set_1/output_0.npy bs=1 seek=200 conv=notrunc 2>/dev/null
om regress zoo/suite.json
om regress zoo/suite.json net --update
cmp more.json zoo/suite.baseline.json && echo equal
mv right.npy zoo/test_data_set_1/output_0.npy

# Data that went away, a model that is new, one that changed.
mv zoo/test_data_set_10 away
om regress zoo/suite.json net
mv away zoo/test_data_set_10
sed 's/"digits"/"new"/' zoo/suite.json >zoo/renamed.json
om regress zoo/renamed.json --baseline zoo/suite.baseline.json
sed 's/digits.onnx/branches.onnx/' zoo/suite.json >zoo/changed.json
om regress zoo/changed.json --baseline zoo/suite.baseline.json digits

# Forms for other programs.
sed 's/"net.ir"/"no<\&>such.ir"/' zoo/suite.json >zoo/bad.json
om regress zoo/bad.json --junit - --json all.json --tap tap.txt |
	sed 's/ time="[0-9.]*"/ time="T"/'
sed 's/ms": [0-9.e-]*/ms": T/' all.json
cat tap.txt

# Too long; only planned; a folder.
om regress zoo/suite.json --model-timeout 0.0001 digits | sed 's/(.*)/(...)/'
cat >zoo/plan.json <<END
{"schema": "onnxmem-suite/1", "models": [{"path": "net.ir", "run": false}]}
END
om regress zoo/plan.json --align 64
mkdir -p folder/one/test_data_set_0 folder/two
cp "$models/branches.onnx" folder/one/model.onnx
cp "$models/quant.onnx" folder/two/
cp "$models/digits.onnx" folder/
om regress folder
om regress folder -q two --align 1

# Suites that are wrong.
suite() {
	echo "$1" >zoo/wrong.json
	om regress zoo/wrong.json
}
suite '{'
suite '{"schema": "x"}'
suite '{"schema": "onnxmem-suite/1"}'
suite '{"schema": "onnxmem-suite/1", "models": []}'
suite '{"schema": "onnxmem-suite/1", "modles": []}'
suite '{"schema": "onnxmem-suite/1", "models": [{}]}'
suite '{"schema": "onnxmem-suite/1", "models": [{"path": "a", "fetch": "b"}]}'
suite '{"schema": "onnxmem-suite/1", "models": [{"path": "a", "dta": []}]}'
suite '{"schema": "onnxmem-suite/1", "models": [{"path": "a"}, {"path": "a"}]}'
suite '{"schema": "onnxmem-suite/1", "models": [{"path": "net.ir", "options": ["--nonsense"]}]}'
suite '{"schema": "onnxmem-suite/1", "models": [{"path": "net.ir", "options": "--align"}]}'
suite '{"schema": "onnxmem-suite/1", "baseline": "none.json", "models": [{"path": "net.ir"}]}'
echo '{"models": []}' >broken.json
om regress zoo/suite.json --baseline broken.json
om regress none.json
cp "$models/digits.onnx" model.onnx
om regress model.onnx
om regress zoo/suite.json nothing
