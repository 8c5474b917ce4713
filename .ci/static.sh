# SPDX-License-Identifier: Apache-2.0
# What .ci/musl and .ci/windows share: libraries from Debian's sources, and trials of a command that is one file.  Sourced; it takes
# top, the folder of all builds, out, that of this one, deps, where its libraries are installed, jobs, and here, the root of the tree.
suite=bookworm

log() { logged=$1; shift; "$@" >"$out/$logged.log" 2>&1 </dev/null || { tail -n 20 "$out/$logged.log" >&2; echo "failed: $*" >&2; exit 1; }; }

# sources PACKAGE...: from where this machine has its packages, by an apt that knows nothing else: its own lists stay as they are.
sources() {
	missing=
	for package; do [ -e "$top/sources/$package.complete" ] || missing="$missing $package"; done
	[ "$missing" ] || return 0
	mkdir -p "$top/sources/lists/partial" "$top/sources/parts"
	site=$(apt-get indextargets --format '$(SITE) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' | sed -n "s/ $suite main\$//p" | head -n 1)
	[ "$site" ] || { echo "skipped: no packages of $suite are known here, and so no sources" >&2; exit 77; }
	echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $site $suite main" >"$top/sources/list"
	set -- -o Dir::Etc::SourceList="$top/sources/list" -o Dir::Etc::SourceParts="$top/sources/parts" -o Dir::State::Lists="$top/sources/lists" \
		-o APT::Sandbox::User=root
	cd "$top/sources"
	log apt-update apt-get "$@" update
	for package in $missing; do
		rm -rf "$package"-*/
		log "apt-$package" apt-get "$@" source "$package"
		touch "$package.complete"
	done
}

# depend NAME ARGUMENT...: a static library.
depend() {
	name=$1; shift
	[ ! -e "$deps/$name.done" ] || return 0
	rm -rf "$out/source-$name"
	cp -a "$(find "$top/sources" -mindepth 1 -maxdepth 1 -type d -name "$name-*" | head -n 1)" "$out/source-$name"
	cd "$out/source-$name"
	[ -x configure ] || log "$name-autoreconf" autoreconf -fi
	log "$name-configure" ./configure --prefix="$deps" "$@"
	log "$name-make" make -j"$jobs"
	log "$name-install" make install
	# libtool would leave a static library that it knows out of a shared one.
	rm -f "$deps"/lib/*.la
	touch "$deps/$name.done"
}

# dependencies HOST: what the command is linked with.
dependencies() {
	sources protobuf-c jansson libmd zlib
	# The script of zlib is not of Autoconf.
	CHOST=$1 depend zlib --static
	for name in jansson libmd; do depend $name --host="$1" --disable-shared --enable-static; done
	depend protobuf-c --host="$1" --disable-shared --enable-static --disable-protoc
}

# A model: its report, its plan, which is verified, and what it computes, with a plan of the command and with that in the file.  `alone`
# runs the command in $out/empty; NATIVE is a command of this machine, whose outputs are those that are expected.
try() {
	model=$(basename "$1" .onnx)
	set -- --fill deterministic --default-dim 2 -q
	log "$model-report" alone report "$model.onnx" --default-dim 2
	log "$model-plan" alone plan "$model.onnx" "$model-planned.onnx" --default-dim 2
	log "$model-verify" alone verify "$model-planned.onnx"
	if [ "${NATIVE:-}" ]; then log "$model-native" "$NATIVE" run "$out/empty/$model.onnx" "$@" --save "$out/empty/$model.npz"
	else log "$model-save" alone run "$model.onnx" "$@" --no-reuse --save "$model.npz"
	fi
	log "$model-run" alone run "$model.onnx" "$@" --expect "$model.npz"
	log "$model-poison" alone run "$model.onnx" "$@" --poison --expect "$model.npz"
	log "$model-planned" alone run "$model-planned.onnx" "$@" --expect "$model.npz"
	for run in verify run poison planned; do
		grep -q '^PASSED' "$out/$model-$run.log" || { echo "not passed: $model, $run" >&2; exit 1; }
	done
}

# try_models COMMAND: this file in a folder that has nothing else but models, those of the tree and MODELS.
try_models() {
	rm -rf "$out/empty"
	mkdir "$out/empty"
	cp "$1" "$here/models/external.data" "$out/empty"
	tried=
	for model in trained digits decoder group_decoder quant control loop loop_collect loop_grow scans branches function dynamic sizes external; do
		tried="$tried $here/models/$model.onnx"
	done
	for model in $tried ${MODELS:-}; do
		cp "$model" "$out/empty"
		try "$model"
	done
	echo "$(basename "$1"), $triplet: $(stat -c %s "$1") bytes, static: report, plan, verify and run of $(echo $tried ${MODELS:-} | wc -w) models;" \
		"outputs as ${NATIVE:-without reuse}"
}
