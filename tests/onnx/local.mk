# Files in and out.  The Python tests need the onnx package, and say so.
check_PROGRAMS += tests/onnx/resave
TESTS += tests/onnx/annotate.test tests/onnx/operators.test tests/onnx/other_plans.test tests/onnx/roundtrip.test tests/onnx/schema.test \
	tests/onnx/versions.test
EXTRA_DIST += %D%/annotate.py %D%/annotate.test %D%/canon.py %D%/operators.py %D%/operators.test %D%/other_plans.py %D%/other_plans.test %D%/roundtrip.py \
	%D%/roundtrip.test %D%/schema.py %D%/schema.test %D%/tap.py %D%/versions.py %D%/versions.test
