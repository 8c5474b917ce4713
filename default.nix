# SPDX-License-Identifier: Apache-2.0
# onnxmem for Nix: `nix-build` in the tree; the result has the command, the library, its headers and manual pages.
{ pkgs ? import <nixpkgs> { } }:

pkgs.stdenv.mkDerivation {
  pname = "onnxmem";
  version = "0.1.0";
  src = pkgs.lib.cleanSource ./.;

  nativeBuildInputs = with pkgs; [ autoconf automake libtool autoconf-archive pkg-config protobufc ];
  buildInputs = with pkgs; [ protobufc jansson libmd zlib curl libarchive libpng libjpeg libtiff libwebp openjpeg ];
  nativeCheckInputs = with pkgs; [ cunit ];

  preConfigure = "./autogen.sh";
  configureFlags = [ "--without-opencl" "--without-mpi" ];
  enableParallelBuilding = true;

  # The tests that need nothing else; ./check runs all.
  doCheck = true;
  checkTarget = "check";
  checkFlags = [ "TESTS=tests/unit/run" "check_PROGRAMS=tests/unit/run" ];

  meta = {
    description = "Memory plans for ONNX models: reports, plans, verification, a packer, and an executor in a fixed arena";
    license = pkgs.lib.licenses.asl20;
    platforms = pkgs.lib.platforms.linux;
    mainProgram = "onnxmem";
  };
}
