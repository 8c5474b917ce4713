bin_PROGRAMS += onnxmem
onnxmem_SOURCES += \
	%D%/baseline.c %D%/bytes.h %D%/checkpoint.c %D%/checkpoint.h %D%/cli.h %D%/compare.c %D%/complete.c %D%/data.c \
	%D%/data.h %D%/dataset.c %D%/dataset.h %D%/dump.c %D%/evaluate.c %D%/evaluate.h %D%/export.c %D%/fetch.c \
	%D%/grad.c %D%/hash.c %D%/help.c %D%/help.h %D%/help_topics.c %D%/main.c %D%/man.c %D%/model.c \
	%D%/model_source.c %D%/model_source.h %D%/npy.c %D%/npy.h %D%/npz.c %D%/ops.c %D%/options.c %D%/pack.c \
	%D%/pack_csv.c %D%/pack_csv.h %D%/passes.c %D%/pipeline.c %D%/plan.c %D%/plan_options.c %D%/process_pool.c \
	%D%/process_pool.h %D%/progress.c %D%/regress.c %D%/regress_case.c %D%/regress_report.c %D%/report.c %D%/run.c \
	%D%/strategies.c %D%/strip.c %D%/suite.c %D%/suite.h %D%/table.c %D%/table.h %D%/terminal.c %D%/train.c \
	%D%/verify.c
# What the command shares with the library, which exports its public functions only.
onnxmem_SOURCES += src/alloc/byte_liveness.c src/base/map.c src/base/map.h src/base/sha256.c src/base/sha256.h
onnxmem_CPPFLAGS = $(AM_CPPFLAGS) -I$(builddir)/src -DOM_PAGEDIR='"$(passpagesdir)"' -DOM_MANIFEST='"$(manifestdir)/manifest.json"'
onnxmem_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS) $(LIBMD_CFLAGS) $(ZLIB_CFLAGS) $(CURL_CFLAGS) $(ARCHIVE_CFLAGS)
onnxmem_LDADD = libonnxmem.la $(JANSSON_LIBS) $(LIBMD_LIBS) $(ZLIB_LIBS) $(CURL_LIBS) $(ARCHIVE_LIBS) -lm

# Manual pages and completions are what the command says of itself.
MADE_BY_COMMAND = onnxmem$(EXEEXT) help
if !CROSS_COMPILING
all-local: man/stamp
endif
man/stamp: onnxmem$(EXEEXT)
	$(AM_V_GEN)rm -rf man && $(MKDIR_P) man && ./$(MADE_BY_COMMAND) --man >man/onnxmem.1 && \
	for c in `./$(MADE_BY_COMMAND) --commands`; do ./$(MADE_BY_COMMAND) --man $$c >man/onnxmem-$$c.1 || exit 1; done && \
	for s in bash zsh fish; do ./$(MADE_BY_COMMAND) --completion $$s >man/completion.$$s || exit 1; done && : >$@
manpagedir = $(mandir)/man1
bashdir = $(datadir)/bash-completion/completions
zshdir = $(datadir)/zsh/site-functions
fishdir = $(datadir)/fish/vendor_completions.d
install-data-local:
	if test -f man/stamp; then \
	$(MKDIR_P) "$(DESTDIR)$(manpagedir)" "$(DESTDIR)$(bashdir)" "$(DESTDIR)$(zshdir)" "$(DESTDIR)$(fishdir)" && \
	$(INSTALL_DATA) man/*.1 "$(DESTDIR)$(manpagedir)" && \
	$(INSTALL_DATA) man/completion.bash "$(DESTDIR)$(bashdir)/onnxmem" && \
	$(INSTALL_DATA) man/completion.zsh "$(DESTDIR)$(zshdir)/_onnxmem" && \
	$(INSTALL_DATA) man/completion.fish "$(DESTDIR)$(fishdir)/onnxmem.fish"; fi
uninstall-local:
	rm -f "$(DESTDIR)$(manpagedir)"/onnxmem.1 "$(DESTDIR)$(manpagedir)"/onnxmem-*.1 "$(DESTDIR)$(bashdir)/onnxmem" \
		"$(DESTDIR)$(zshdir)/_onnxmem" "$(DESTDIR)$(fishdir)/onnxmem.fish"
clean-local:
	rm -rf man docs/html
