# OM_WITH_MODULES
# ---------------
# Build the modules, which are loaded when they are needed: decoders of images, fetching, devices.  --without-modules
# leaves them out, as for a static command, which can load nothing.  Sets the conditional HAVE_MODULES.
AC_DEFUN([OM_WITH_MODULES], [
om_optional=check
AC_ARG_WITH([modules],
	[AS_HELP_STRING([--without-modules], [no decoders of PNG, JPEG, ..., no fetching, no devices: nothing that is loaded at run time])],
	[], [with_modules=yes])
AS_IF([test "$with_modules" = no], [
	om_optional=no
], [test "$enable_shared" != yes], [
	AC_MSG_ERROR([modules are shared libraries: --disable-shared takes --without-modules])
])
AM_CONDITIONAL([HAVE_MODULES], [test "$with_modules" = yes])
])

# OM_ENABLE_CHECKED
# -----------------
# Verify the program after every pass.
AC_DEFUN([OM_ENABLE_CHECKED], [
AC_ARG_ENABLE([checked],
	[AS_HELP_STRING([--enable-checked], [verify the program after every pass])],
	[], [enable_checked=no])
AS_IF([test "$enable_checked" = yes],
	[AC_DEFINE([OM_CHECKED], [1], [Verify the program after every pass.])])
])

# OM_ENABLE_SANITIZERS
# --------------------
# Set SAN_CFLAGS, for compiling and linking alike.
AC_DEFUN([OM_ENABLE_SANITIZERS], [
AC_ARG_ENABLE([sanitizers],
	[AS_HELP_STRING([--enable-sanitizers@<:@=LIST@:>@],
		[build with sanitizers @<:@address,undefined@:>@])],
	[], [enable_sanitizers=no])
AS_IF([test "$enable_sanitizers" = yes], [enable_sanitizers=address,undefined])
SAN_CFLAGS=
AS_IF([test "$enable_sanitizers" != no], [
	SAN_CFLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer"
	AX_CHECK_LINK_FLAG([$SAN_CFLAGS], [],
		[AC_MSG_ERROR([this compiler has no -fsanitize=$enable_sanitizers])])
])
AC_SUBST([SAN_CFLAGS])
])

# OM_WITH_IMAGES(NAME, MODULE, WHAT)
# ----------------------------------
# ImageDecoder reads WHAT by the library that pkg-config calls MODULE, where it
# is found, unless --without-NAME.  Sets the conditional HAVE_NAME, defines
# OM_WITH_NAME, and adds to IMAGE_CFLAGS and IMAGE_LIBS.
AC_DEFUN([OM_WITH_IMAGES], [
AC_ARG_WITH([$1],
	[AS_HELP_STRING([--without-$1], [do not read $3 @<:@read where $2 is found@:>@])],
	[], [with_$1=$om_optional])
AS_IF([test "$with_$1" != no], [
	PKG_CHECK_MODULES(m4_toupper([IMAGE_$1]), [$2], [
		AC_DEFINE(m4_toupper([OM_WITH_$1]), [1], [ImageDecoder reads $3.])
		IMAGE_CFLAGS="$IMAGE_CFLAGS $m4_toupper([IMAGE_$1])_CFLAGS"
		IMAGE_LIBS="$IMAGE_LIBS $m4_toupper([IMAGE_$1])_LIBS"
		image_formats="$image_formats $1"
		with_$1=yes
	], [
		AS_IF([test "$with_$1" = yes], [AC_MSG_ERROR([--with-$1 was given, but $2 was not found])])
		with_$1=no
	])
])
AM_CONDITIONAL(m4_toupper([HAVE_$1]), [test "$with_$1" = yes])
AC_SUBST([IMAGE_CFLAGS])
AC_SUBST([IMAGE_LIBS])
])

# OM_WITH_OPENCL
# --------------
# Build the module for `--device opencl` where the headers and the loader of OpenCL are found, unless
# --without-opencl.  Sets the conditional HAVE_OPENCL, OPENCL_CFLAGS and OPENCL_LIBS.
AC_DEFUN([OM_WITH_OPENCL], [
AC_ARG_WITH([opencl],
	[AS_HELP_STRING([--without-opencl], [no device of OpenCL @<:@built where OpenCL is found@:>@])],
	[], [with_opencl=$om_optional])
AS_IF([test "$with_opencl" != no], [
	PKG_CHECK_MODULES([OPENCL], [OpenCL >= 1.2], [with_opencl=yes], [
		AS_IF([test "$with_opencl" = yes], [AC_MSG_ERROR([--with-opencl was given, but OpenCL was not found])])
		with_opencl=no
	])
])
AM_CONDITIONAL([HAVE_OPENCL], [test "$with_opencl" = yes])
])

# OM_WITH_MPI
# -----------
# Build the module for runs of many ranks over MPI where it is found, unless --without-mpi.  Sets the conditional HAVE_MPI,
# MPI_CFLAGS and MPI_LIBS.
AC_DEFUN([OM_WITH_MPI], [
AC_ARG_WITH([mpi],
	[AS_HELP_STRING([--without-mpi], [no runs over MPI @<:@built where MPI is found@:>@])],
	[], [with_mpi=check])
AS_IF([test "$with_mpi" != no], [
	PKG_CHECK_MODULES([MPI], [mpi-c], [with_mpi=yes], [
		PKG_CHECK_MODULES([MPI], [ompi-c], [with_mpi=yes], [
			PKG_CHECK_MODULES([MPI], [mpich], [with_mpi=yes], [
				AS_IF([test "$with_mpi" = yes], [AC_MSG_ERROR([--with-mpi was given, but MPI was not found])])
				with_mpi=no
			])
		])
	])
])
AM_CONDITIONAL([HAVE_MPI], [test "$with_mpi" = yes])
])

# OM_CHECK_FUZZER
# ---------------
# Set FUZZ_LDFLAGS and the conditional HAVE_FUZZER when the compiler links
# programs with libFuzzer.
AC_DEFUN([OM_CHECK_FUZZER], [
AC_CACHE_CHECK([whether $CC has libFuzzer], [om_cv_fuzzer], [
	om_save_LDFLAGS=$LDFLAGS
	LDFLAGS="$LDFLAGS -fsanitize=fuzzer"
	AC_LINK_IFELSE([AC_LANG_SOURCE([[
		#include <stddef.h>
		int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);
		int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
		{ return size && *data == 255; }
	]])], [om_cv_fuzzer=yes], [om_cv_fuzzer=no])
	LDFLAGS=$om_save_LDFLAGS
])
AS_IF([test "$om_cv_fuzzer" = yes], [FUZZ_LDFLAGS=-fsanitize=fuzzer], [FUZZ_LDFLAGS=])
AC_SUBST([FUZZ_LDFLAGS])
AM_CONDITIONAL([HAVE_FUZZER], [test "$om_cv_fuzzer" = yes])
])
