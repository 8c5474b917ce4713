# The guide, and pages of the headers: `make docs` leaves them in docs/html.
EXTRA_DIST += %D%/Doxyfile %D%/doxygen.awk %D%/gallery.py %D%/gallery.tsv %D%/man3.awk %D%/site.sh %D%/guide
# Installed as they lie in the tree, so that their links hold.
nobase_dist_doc_DATA = README.md NEWS LICENSE \
	docs/architecture.md docs/baselines.md docs/cli.md docs/decoder-operators.md docs/digits.svg docs/distributed.md docs/eager.md \
	docs/element-types.md docs/executor.md docs/export-formats.md docs/fetch.md docs/fuzz-readers.md docs/fuzz.md docs/gallery.md docs/gallery.svg \
	docs/glossary.md docs/gradients.md docs/html-report-large.png docs/html-report-loop.png docs/html-report-small.png \
	docs/html-report.md docs/loops.md docs/operators.md docs/parts.md docs/plan-format.md docs/plan-quality.md \
	docs/regress.md docs/rematerialize.csv docs/rematerialize.svg docs/scaling.csv docs/scaling.md docs/scaling.svg \
	docs/seeds.md docs/sets.md docs/shapes.md docs/streams.md docs/systems.md docs/tiling-executor.md docs/tiling.md docs/torch.csv docs/tuning.md docs/totals.md docs/training.md docs/trust.md \
	docs/trust.tsv docs/guide/README.md docs/guide/ci.md docs/guide/decoder.md docs/guide/fit.md \
	docs/guide/packer.md docs/guide/pass.md docs/guide/python.md docs/guide/report.md docs/guide/shrink.md \
	docs/guide/suites.md docs/guide/train.md
.PHONY: docs
docs:
	@if ! command -v doxygen >/dev/null; then \
		echo "There is no doxygen here, which makes the pages of the headers (Debian: doxygen)." >&2; \
	else \
		$(MKDIR_P) docs && srcdir='$(srcdir)' AWK='$(AWK)' OUTPUT=docs doxygen '$(srcdir)/docs/Doxyfile' && \
		echo "docs/html/index.html"; fi

# A site in the folder site: the headers, the guide and the pages by Doxygen, the package for Python by pydoc, and a gallery of
# reports, of the models in GALLERY and of those of the tree.
GALLERY =
.PHONY: site
site: all
	rm -rf site && $(MKDIR_P) site/gallery site/python
	AWK='$(AWK)' DOXYGEN='$(DOXYGEN)' PYTHON='$(PYTHON)' ONNXMEM='$(abs_top_builddir)/onnxmem$(EXEEXT)' LIBRARY='$(abs_top_builddir)/.libs/libonnxmem.so.0' \
		$(SHELL) $(srcdir)/docs/site.sh site $(srcdir)/models/*.onnx $(GALLERY)

# A page and a map for each of the models of docs/gallery.tsv, which are in the folder GALLERY_MODELS.
GALLERY_MODELS = $(srcdir)/../shared/data/models
.PHONY: gallery
gallery: all
	ONNXMEM='$(abs_top_builddir)/onnxmem$(EXEEXT)' $(PYTHON) $(srcdir)/docs/gallery.py $(GALLERY_MODELS) gallery
