# The guide, and pages of the headers: `make docs` leaves them in docs/html.
EXTRA_DIST += %D%/Doxyfile %D%/doxygen.awk %D%/guide \
	%D%/architecture.md %D%/baselines.md %D%/cli.md %D%/digits.svg %D%/element-types.md %D%/executor.md %D%/export-formats.md %D%/fetch.md %D%/fuzz.md %D%/fuzz-readers.md %D%/glossary.md %D%/gradients.md \
	%D%/html-report.md %D%/html-report-large.png %D%/html-report-loop.png %D%/html-report-small.png %D%/loops.md \
	%D%/operators.md %D%/parts.md %D%/plan-format.md %D%/plan-quality.md %D%/rematerialize.csv %D%/rematerialize.svg %D%/regress.md \
	%D%/scaling.csv %D%/scaling.md %D%/scaling.svg %D%/shapes.md %D%/tiling.md %D%/torch.csv %D%/totals.md %D%/training.md %D%/trust.md %D%/trust.tsv
.PHONY: docs
docs:
	@if ! command -v doxygen >/dev/null; then \
		echo "There is no doxygen here, which makes the pages of the headers (Debian: doxygen)." >&2; \
	else \
		$(MKDIR_P) docs && srcdir='$(srcdir)' AWK='$(AWK)' OUTPUT=docs doxygen '$(srcdir)/docs/Doxyfile' && \
		echo "docs/html/index.html"; fi
