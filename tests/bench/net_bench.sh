#!/bin/bash
# net_bench.sh: builds and runs net_bench (hash, fetch, unpack, children) against the usual programs, on loopback.
set -eu
cd "$(dirname "$0")/../.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
make -s BUILD=build/bench build/bench/libcore.a
read -ra libs <<<"$(pkg-config --libs libcjson libcurl libgit2 libarchive) -lm"
${CC:-gcc} -std=c11 -O2 -D_GNU_SOURCE -iquote core -I. tests/bench/net_bench.c build/bench/libcore.a "${libs[@]}" -o "$out/net_bench"
"$out/net_bench"
