# The package for Python; see README.md.
PYTHON_PACKAGE = %D%/onnxmem/__init__.py %D%/onnxmem/_command.py %D%/onnxmem/_context.py %D%/onnxmem/_dlpack.py %D%/onnxmem/_eager.py %D%/onnxmem/_errors.py %D%/onnxmem/_fetch.py %D%/onnxmem/_generate.py %D%/onnxmem/_library.py \
	%D%/onnxmem/_pack.py %D%/onnxmem/_plan.py %D%/onnxmem/_program.py %D%/onnxmem/_report.py %D%/onnxmem/_run.py %D%/onnxmem/_sets.py \
	%D%/onnxmem/_structs.py %D%/onnxmem/_tensors.py %D%/onnxmem/_tile.py %D%/onnxmem/_train.py %D%/onnxmem/_trainer.py %D%/onnxmem/_tune.py %D%/onnxmem/_why.py %D%/onnxmem/interop.py %D%/onnxmem/olive.py %D%/onnxmem/pytest_plugin.py %D%/onnxmem/py.typed
PYTHON_BUILD = %D%/README.md %D%/backend.py %D%/pyproject.toml
EXTRA_DIST += $(PYTHON_PACKAGE) $(PYTHON_BUILD) %D%/tests/conftest.py %D%/tests/test_abi.py %D%/tests/test_device.py %D%/tests/test_eager.py %D%/tests/test_equal.py %D%/tests/test_fetch.py \
	%D%/tests/test_generate.py %D%/tests/test_interop.py %D%/tests/test_pack.py %D%/tests/test_plugin.py %D%/tests/test_report.py \
	%D%/tests/test_run.py %D%/tests/test_stop.py %D%/tests/test_tile.py %D%/tests/test_train.py %D%/tests/test_trainer.py \
	%D%/tests/test_tune.py %D%/tests/test_wheel.py %D%/tests/test_why.py

# `make wheel` writes a wheel with the library and the command to the folder wheel; with auditwheel, it runs on other distributions, too.
STRIP_LIBRARY = $(STRIP) --strip-unneeded
wheel: libonnxmem.la onnxmem
	rm -rf wheel && $(MKDIR_P) wheel/source/onnxmem/_lib wheel/source/onnxmem/_bin
	for f in $(PYTHON_BUILD); do cp $(srcdir)/$$f wheel/source || exit 1; done
	for f in $(PYTHON_PACKAGE); do cp $(srcdir)/$$f wheel/source/onnxmem || exit 1; done
	cp $(srcdir)/LICENSE wheel/source
	cp $(srcdir)/models/manifest.json wheel/source/onnxmem/_lib
	cp .libs/libonnxmem.so.0 wheel/source/onnxmem/_lib && $(STRIP_LIBRARY) wheel/source/onnxmem/_lib/libonnxmem.so.0
	$(CC) $(SAN_CFLAGS) $(CFLAGS) $(LDFLAGS) $(onnxmem_OBJECTS) .libs/libreport.a .libs/libonnxmem.so.0 $(JANSSON_LIBS) $(LIBMD_LIBS) $(ZLIB_LIBS) -lm \
		-Wl,-rpath,'$$ORIGIN/../_lib' -s -o wheel/source/onnxmem/_bin/onnxmem
	cd wheel/source && $(PYTHON) -B -c 'import backend; print(backend.build_wheel(".."))'
	if $(PYTHON) -c 'import auditwheel' 2>/dev/null; then \
		PATH="`$(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("scripts"))'`:$$PATH" && export PATH && \
		$(PYTHON) -m auditwheel repair --only-plat -w wheel/repaired wheel/*.whl && rm wheel/*.whl && mv wheel/repaired/*.whl wheel && \
		rmdir wheel/repaired; \
	else echo "without auditwheel, the wheel needs the libraries of this machine"; fi
	rm -rf wheel/source
.PHONY: wheel
