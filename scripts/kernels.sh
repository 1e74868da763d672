#!/bin/bash
# kernels.sh OUT: builds kernels/*.cu with nvcc for the architectures of all majors. Without nvcc it says so and is content:
# verification then leaves those checks out and says which.
set -eu
out=$1
nvcc=$(command -v nvcc || true)
for dir in "${CUDA_HOME:-}" /usr/local/cuda; do
	[ -n "$nvcc" ] || [ -z "$dir" ] || [ ! -x "$dir/bin/nvcc" ] || nvcc=$dir/bin/nvcc
done
if [ -z "$nvcc" ]; then
	echo "kernels: no nvcc here (looked in PATH, CUDA_HOME and /usr/local/cuda); everything else is built without it"
	exit 0
fi
mkdir -p "$out"
for source in kernels/*.cu; do
	[ -e "$source" ] || continue
	program=$out/$(basename "$source" .cu)
	if [ "$source" -nt "$program" ]; then
		echo "  NVCC $source"
		# The libraries that a program of ours needs stand in its first lines: // link: -lcublas
		links=$(sed -n 's|^// link: ||p' "$source")
		# shellcheck disable=SC2086
		"$nvcc" -O2 -arch="${ARCH:-all-major}" -o "$program" "$source" $links
	fi
done
