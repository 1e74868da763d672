#!/bin/bash
# diagnose_bench.sh [FAINSTALL]: time and memory of diagnose for 100 MB of build log, the cause at its end; 50 MB in one line; 100 MB
# of lines full of words that it looks for. Figures of the whole program, start included.
set -eu
cd "$(dirname "$0")/../.."
fainstall=${1:-./fainstall}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fill() { # FILE BYTES TEXT
	yes "$3" | head -c "$2" >"$1"
}

measure() { # NAME FILE
	/usr/bin/time -f "%e s (CPU %U), %M KiB" -o "$dir/time" "$fainstall" diagnose "$2" --json >"$dir/out" 2>"$dir/err" || [ $? -eq 1 ] # 1: no cause, as for random bytes; anything else is no measurement
	printf '%-28s %s, %s\n' "$1" "$(tail -n 1 "$dir/time")" "$(grep -o '"id":[[:space:]]*"[a-z_0-9]*"' "$dir/out" | head -n 1)"
}

fill "$dir/build" 100000000 "[12/73] /usr/local/cuda/bin/nvcc -Icsrc/cutlass/include -gencode arch=compute_80,code=sm_80 -std=c++17 -c flash_fwd_hdim128_bf16_sm80.cu -o flash_fwd_hdim128_bf16_sm80.o"
echo "nvcc error   : 'cicc' died due to signal 9 (Kill signal)" >>"$dir/build"
measure "build log, 100 MB" "$dir/build"
fill "$dir/words" 100000000 "error: failed: warning: undefined symbol killed ninja gcc no such file or directory cutlass/ signal 9 flash_attn"
measure "words on every line, 100 MB" "$dir/words"
head -c 50000000 /dev/zero | tr '\0' x >"$dir/line"
measure "one line, 50 MB" "$dir/line"
fill "$dir/wordline" 100000000 "error: fatal killed undefined symbol ninja "
tr -d '\n' <"$dir/wordline" | head -c 50000000 >"$dir/wordline1"
measure "one line of words, 50 MB" "$dir/wordline1"
head -c 100000000 /dev/urandom >"$dir/random"
measure "random bytes, 100 MB" "$dir/random"
