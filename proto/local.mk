# Code that protobuf-c makes from the ONNX schema.
EXTRA_DIST += %D%/onnx.proto
BUILT_SOURCES += %D%/onnx.pb-c.h
CLEANFILES += %D%/onnx.pb-c.c %D%/onnx.pb-c.h
nodist_libcore_la_SOURCES = %D%/onnx.pb-c.c %D%/onnx.pb-c.h
proto/onnx.pb-c.c: proto/onnx.proto
	$(AM_V_GEN)$(MKDIR_P) proto && \
	$(PROTOC_C) --proto_path=$(top_srcdir)/proto --c_out=proto $(top_srcdir)/proto/onnx.proto
proto/onnx.pb-c.h: proto/onnx.pb-c.c
