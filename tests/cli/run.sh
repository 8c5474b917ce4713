# A model run in its arena.
om plan "$models/digits.onnx" planned.onnx
om run planned.onnx --formula
om run planned.onnx --formula --poison
om run planned.onnx --formula --no-reuse
om run planned.onnx --formula --save expected
ls expected
om run "$models/digits.onnx" --formula --expect expected
om run "$models/digits.onnx" --random 3 --expect expected | sed '$s/digit.*//'
om run planned.onnx
