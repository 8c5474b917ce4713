libcore_la_SOURCES += %D%/comm.c %D%/local.c %D%/module.h %D%/open.c %D%/queue.c %D%/sum.c %D%/sum.h

# The communicator over MPI, which the library loads when a run asks for it.
if HAVE_MPI
pkglib_LTLIBRARIES += onnxmem-mpi.la
onnxmem_mpi_la_SOURCES = %D%/mpi/mpi_module.c
onnxmem_mpi_la_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
onnxmem_mpi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared -no-undefined
onnxmem_mpi_la_LIBADD = $(MPI_LIBS)
endif
