# The passes that are built in: the one list of them.  Adding a pass takes its file, its name here,
# its page NAME.md and its tests in tests/ir/NAME.
PASSES = \
	passes/alias-io.c passes/annotate.c passes/backward.c passes/branches.c passes/capacity.c passes/convert-opset.c passes/cse.c passes/fold.c passes/fuse-attention.c passes/fuse-elementwise.c passes/fuse-epilogue.c passes/fuse-norm.c passes/fuse-qdq.c passes/fuse.c \
	passes/inline.c passes/inplace.c passes/liveness.c passes/loops.c passes/lower-layout.c passes/lower-rnn.c passes/merge-products.c passes/open-rows.c passes/pack.c passes/place-devices.c passes/prune.c passes/rematerialize.c \
	passes/schedule.c passes/shapes.c passes/shard.c passes/stage.c passes/tile.c passes/views.c

# Each file says OM_PASS(...) as a module of a third party does; in the library its entry
# is called after its file, with an underscore for a hyphen.
noinst_LTLIBRARIES += libpasses.la
libpasses_la_SOURCES = $(PASSES)
libpasses_la_CPPFLAGS = $(AM_CPPFLAGS) -DOM_PASS_ENTRY=om_pass_get_`basename $< .c | tr - _`

# The list, for the table of the library.
BUILT_SOURCES += src/library/passes.h
CLEANFILES += src/library/passes.h
src/library/passes.h: $(srcdir)/passes/local.mk
	$(AM_V_GEN)$(MKDIR_P) src/library && { echo '#define OM_PASSES(_) \' && \
	for p in $(PASSES); do echo "	_(`basename $$p .c | tr - _`) \\"; done && echo; } >$@

passpagesdir = $(pkgdatadir)/passes
# The pages that there are.
dist_passpages_DATA = $(srcdir)/passes/*.md
