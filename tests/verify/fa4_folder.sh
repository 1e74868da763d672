#!/bin/bash
# FA4 with all that its import needs beyond torch, for a machine without network.
#   fa4_folder.sh pack DIR [PYTHON [CUDA]]   here: the wheels into DIR/fa4.tar.00, .01 of 50 MiB each. PYTHON: "3.12", that of the other
#                                            machine; CUDA: 13 or 12, as its torch has
#   fa4_folder.sh unpack DIR FOLDER          there: the pieces in DIR into FOLDER, then
#                                            FA4=FOLDER:FOLDER/nvidia_cutlass_dsl/dsl_packages tests/verify/h200.sh
# The second folder is what the .pth file of nvidia-cutlass-dsl adds. What the import needs was found by leaving out one after the other:
# cutlass (four wheels that share one folder), quack, tvm_ffi, einops, and cuda.bindings, which torch brings along from 2.10 on.
# torch_c_dlpack_ext and protobuf are asked for and not imported; they are small.
set -euo pipefail

pack() { # DIR PYTHON CUDA
	local dir=$1 python=$2 cuda=$3 fa4=4.0.0b36 dsl=4.8.1 platform pip
	pip=(python3 -m pip download --quiet --no-deps --only-binary ':all:' --python-version "$python" --implementation cp
		--abi "cp${python/./}" --abi abi3 --abi none --dest "$dir/wheels")
	for platform in manylinux_2_28 manylinux_2_27 manylinux_2_24 manylinux_2_17 manylinux2014; do
		pip+=(--platform "${platform}_x86_64")
	done
	mkdir -p "$dir/wheels"
	"${pip[@]}" "flash-attn-4==$fa4" "nvidia-cutlass-dsl==$dsl" "nvidia-cutlass-dsl-libs-base==$dsl" "nvidia-cutlass-dsl-libs-core==$dsl" \
		"nvidia-cutlass-dsl-libs-cu$cuda==$dsl" quack-kernels==0.6.5 apache-tvm-ffi==0.1.15.post2 torch-c-dlpack-ext==0.1.5 \
		einops==0.8.2 'protobuf<8'
	tar -C "$dir/wheels" --sort=name --owner=0 --group=0 -cf - . | split -b 50M -d - "$dir/fa4.tar."
	ls -l "$dir"/wheels/*.whl "$dir"/fa4.tar.*
}

unpack() { # DIR FOLDER
	local wheels wheel
	wheels=$(mktemp -d)
	cat "$1"/fa4.tar.* | tar -C "$wheels" -xf -
	for wheel in "$wheels"/*.whl; do
		python3 -m zipfile -e "$wheel" "$2"
	done
	rm -rf "$wheels"
}

case ${1:-} in
pack) pack "$2" "${3:-3.12}" "${4:-13}" ;;
unpack) unpack "$2" "$3" ;;
*)
	sed -n '2,6s/^# *//p' "$0"
	exit 2
	;;
esac
