# SPDX-License-Identifier: Apache-2.0
# What ./start and ./check share: packages, and one build.  Sourced in the root
# of the tree.

BUILD_PACKAGES="build-essential autoconf automake libtool autoconf-archive pkg-config
	libprotobuf-c-dev protobuf-c-compiler libjansson-dev libmd-dev zlib1g-dev
	libcurl4-openssl-dev libarchive-dev
	libpng-dev libjpeg-dev libtiff-dev libwebp-dev libopenjp2-7-dev"
CHECK_PACKAGES="libcunit1-dev clang python3-venv"

has_package() {
	dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'
}

as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# Install those of the named Debian packages that are missing.
need_packages() {
	if ! command -v dpkg-query >/dev/null; then
		echo "This is no Debian: please install what stands for: $*" >&2
		return 0
	fi
	missing=
	for package; do has_package "$package" || missing="$missing $package"; done
	[ -n "$missing" ] || return 0
	echo "installing:$missing"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing \
		>/dev/null && return 0
	as_root apt-get update >/dev/null
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $missing >/dev/null
}

jobs_here() { nproc 2>/dev/null || echo 2; }

# Run a command with its output in a file, shown only when it fails.
quietly() {
	log=$1; shift
	"$@" >"$log" 2>&1 </dev/null && return 0
	tail -n 60 "$log" >&2
	echo "failed: $* (all of it in $log)" >&2
	return 1
}

# need_build DIR [CONFIGURE ARGUMENT]...: configure where that was not done yet, build.
need_build() {
	dir=$1; shift
	mkdir -p "$dir"
	top=$(pwd)
	[ -x configure ] || quietly "$dir/autogen.log" ./autogen.sh || return 1
	if [ ! -f "$dir/Makefile" ]; then
		echo "configuring in $dir"
		(cd "$dir" && quietly configure.log "$top/configure" "$@") || return 1
	fi
	echo "building in $dir"
	quietly "$dir/make.log" make -C "$dir" -j"$(jobs_here)"
}
