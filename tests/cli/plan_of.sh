# SPDX-License-Identifier: Apache-2.0
# Plans of other planners, by the names of values: the forms that `plan` writes are read back.
for model in digits branches nnc_residual inner; do
	"$ONNXMEM" plan "$models/$model.onnx" out.onnx --default-dim 2 --align 16 --compat onnxsim --annotate model,value -q
	"$ONNXMEM" report out.onnx --stored --json - | grep -m1 '"arena_bytes"'
	"$ONNXMEM" report out.onnx --plan-of onnxsim --json - -q | grep '"arena_bytes"\|"valid"'
done
om plan "$models/digits.onnx" out.onnx --align 16 --io arena --export tflm:plan.h --export csv:plan.csv -q
om report out.onnx --plan-of tflm:plan.h
om report out.onnx --plan-of csv:plan.csv | sed -n '/^  arena\|outside of the plan\|valid/p'
# Tensors without names are those of the graph, in its order.
sed 's|//.*||' plan.h >words.h
om report out.onnx --plan-of tflm:words.h --csv words.csv | grep valid
"$ONNXMEM" report out.onnx --plan-of tflm:plan.h --csv named.csv >named.txt
cmp named.csv words.csv && echo the same plan
# Two values that are live at once, in one place; a name that the graph has not; a value without a place.
sed 's/^\t[0-9]*,  \/\/ c3/\t0,  \/\/ c3/' plan.h >over.h
om report out.onnx --plan-of tflm:over.h --svg over.svg | grep 'NOT VALID'
grep -c 'this plan is not valid' over.svg
printf 'name,offset\nc1,0\nno such value,64\n' >few.csv
om report out.onnx --plan-of csv:few.csv | sed -n '/^  arena\|outside of the plan\|valid/p'
printf 'name,offset\nr1,2\n' >odd.csv
om report "$models/digits.onnx" --plan-of csv:odd.csv | sed -n '/not at a multiple/p;/valid/p'
# What is no plan.
om report "$models/digits.onnx" --plan-of onnxsim
om report "$models/digits.onnx" --plan-of csv
om report "$models/digits.onnx" --plan-of onnxsim:file
om report "$models/digits.onnx" --plan-of usmp:file
om report "$models/digits.onnx" --plan-of csv:none.csv
om report "$models/digits.onnx" --plan-of csv:few.csv --align 8
om report "$models/digits.onnx" --plan-of csv:few.csv --stored
printf 'name,size\nc1,0\n' >none.csv
om report "$models/digits.onnx" --plan-of csv:none.csv
printf 'name,offset,pool\nc1,0,a\nr1,0,b\n' >pools.csv
om report "$models/digits.onnx" --plan-of csv:pools.csv
printf 'name,offset\nc1,0\nc1,64\n' >twice.csv
om report "$models/digits.onnx" --plan-of csv:twice.csv
printf 'name,offset,size\nc1,9223372036854775807,2048\n' >far.csv
om report "$models/digits.onnx" --plan-of csv:far.csv
printf 'name,offset,size\nc1,0,16\n' >small.csv
om report "$models/digits.onnx" --plan-of csv:small.csv | grep -i valid
printf 'name,offset\nb,0\n' >other.csv
om report "$models/digits.onnx" --plan-of csv:other.csv
printf '{1,0,2,0,64}' >fewer.h
om report "$models/digits.onnx" --plan-of tflm:fewer.h
printf '{1,0,1}' >bad.h
om report "$models/digits.onnx" --plan-of tflm:bad.h
