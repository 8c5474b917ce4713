/* Plan documents for models/control.onnx, read and verified. */
#include <config.h>

#include <sys/mman.h>
#include <unistd.h>

#include "onnxmem/onnx.h"
#include "onnxmem/plan.h"
#include "reader.h"

static om_model *
load_model(void)
{
	om_session *s = om_session_new();
	om_model *m;

	if (om_model_load(s, OM_SRCDIR "/models/control.onnx", &m) != OM_OK) {
		fprintf(stderr, "%s\n", om_message(s));
		abort();
	}
	om_session_free(s);
	return m;
}

/* A file that is rewritten for every input. */
static const char *
document(const uint8_t *data, size_t size)
{
	static char path[64];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("plan", MFD_CLOEXEC);
		snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	}
	if (ftruncate(fd, 0) != 0 || pwrite(fd, data, size, 0) != (ssize_t)size) {
		perror("memfd");
		abort();
	}
	return path;
}

bool
reader_takes(const uint8_t *data, size_t size)
{
	static om_model *m;
	om_session *s = om_session_new();
	bool good = false;
	om_prog *p;

	if (!m)
		m = load_model();
	if (reader_says(s, om_model_import(s, m, &p))) {
		good = reader_says(s, om_model_read_plan(s, m, p, document(data, size)))
		    && reader_says(s, om_plan_verify(s, p, p->plan));
		om_prog_free(p);
	}
	om_session_free(s);
	return good;
}
