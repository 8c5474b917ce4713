# The command and the library contain it.
noinst_LTLIBRARIES += libreport.la
libreport_la_SOURCES = \
	%D%/ascii.c %D%/c_header.c %D%/diff.c %D%/diff.h %D%/diff_text.c %D%/explain.c %D%/foreign.c %D%/foreign.h %D%/formulas.c %D%/html.c %D%/json.c %D%/json.h %D%/ladder.c %D%/loop_views.c %D%/ort.c %D%/packing.c \
	%D%/report.c %D%/report.h %D%/states.c %D%/svg.c %D%/tensor.c %D%/text.c %D%/tflite.c %D%/tflite.h %D%/tiling.c %D%/tiling.h %D%/tflm.c %D%/tflm.h %D%/tflm_names.c %D%/tflm_read.c %D%/tflm_read.h %D%/why.h %D%/why_json.c %D%/why_text.c
libreport_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(builddir)/src
libreport_la_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
libcore_la_SOURCES += %D%/find_value.c %D%/plan_report.c %D%/plan_why.c

# The page of `report --html`, as C string literals, one a line.
nodist_libreport_la_SOURCES = %D%/page.h
EXTRA_DIST += %D%/page.html
BUILT_SOURCES += %D%/page.h
CLEANFILES += %D%/page.h
src/report/page.h: src/report/page.html
	$(AM_V_GEN)$(MKDIR_P) src/report && { echo 'static const char *const om_page[] = {' && \
	sed 's/\\/\\\\/g; s/"/\\"/g; s/?/\\?/g; s/.*/"&\\n",/' $(top_srcdir)/src/report/page.html && echo '};'; } >$@
