#!/bin/bash
# fa4_folder.sh DIR [PYTHON [CUDA]]: FA4 with all that its import needs beyond torch, for a machine without network: fa4.tar.xz in DIR, in
# pieces of 50 MiB. PYTHON: "3.12", that of the other machine; CUDA: 13 or 12, as its torch has. There:
#   cat fa4.tar.xz.* | tar -C FOLDER -xJ
#   FA4=FOLDER:FOLDER/nvidia_cutlass_dsl/dsl_packages tests/verify/h200.sh      (the second folder is what its .pth file adds)
# What the import needs was found by leaving out one after the other: cutlass (four wheels that share one folder), quack, tvm_ffi, einops,
# and cuda.bindings, which torch brings along from 2.10 on. torch_c_dlpack_ext and protobuf are asked for and not imported; they are small.
set -euo pipefail
dir=$1 python=${2:-3.12} cuda=${3:-13}
fa4=4.0.0b36 dsl=4.8.1
pip=(python3 -m pip download --quiet --no-deps --only-binary :all: --python-version "$python" --implementation cp --abi "cp${python/./}"
	--abi abi3 --abi none --dest "$dir/wheels")
for platform in manylinux_2_28 manylinux_2_27 manylinux_2_24 manylinux_2_17 manylinux2014; do
	pip+=(--platform "${platform}_x86_64")
done
mkdir -p "$dir/wheels"
"${pip[@]}" "flash-attn-4==$fa4" "nvidia-cutlass-dsl==$dsl" "nvidia-cutlass-dsl-libs-base==$dsl" "nvidia-cutlass-dsl-libs-core==$dsl" \
	"nvidia-cutlass-dsl-libs-cu$cuda==$dsl" quack-kernels==0.6.5 apache-tvm-ffi==0.1.15.post2 torch-c-dlpack-ext==0.1.5 \
	einops==0.8.2 'protobuf<8'
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
for wheel in "$dir"/wheels/*.whl; do
	python3 -m zipfile -e "$wheel" "$unpacked"
done
rm -rf "$unpacked"/nvidia_cutlass_dsl/cu*/lib/stubs "$unpacked"/tvm_ffi/3rdparty "$unpacked"/tvm_ffi/lib/libtvm_ffi_testing.so
tar -C "$unpacked" --sort=name --owner=0 --group=0 -cf - . | xz -T1 --x86 --lzma2=preset=3 | split -b 50M -d - "$dir/fa4.tar.xz."
ls -l "$dir"/wheels/*.whl "$dir"/fa4.tar.xz.*
