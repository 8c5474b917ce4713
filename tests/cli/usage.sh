# SPDX-License-Identifier: Apache-2.0
# What is said about wrong use: status 2.
om
om nonsense
om --nonsense
om report
om report a b
om report "$models/digits.onnx" --nonsense=3
om report "$models/digits.onnx" --json
om report "$models/digits.onnx" --ascii=yes
om report "$models/digits.onnx" -x
om report "$models/digits.onnx" --align 48
om report "$models/digits.onnx" --align=many
om report "$models/digits.onnx" --passes nonsense
om report "$models/digits.onnx" --passes fold=1=2
om report "$models/digits.onnx" --passes fold:size=2
om report "$models/digits.onnx" --passes shapes
om report "$models/digits.onnx" --plugin "$models/digits.onnx" | sed 's|: .*: |: ... |'
om help nonsense

# What fills the inputs is said once.
om run "$models/digits.onnx" --fill deterministic --random 3
om run "$models/digits.onnx" --fill picture=2
# A web page instead of a model.
printf '<!DOCTYPE html>\n<html><body>404</body></html>\n' >page.onnx
om report page.onnx
# Standard input has no name.
"$ONNXMEM" report - <"$models/digits.onnx" | head -n 1
om help exit-codes
