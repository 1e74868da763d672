#!/bin/bash
# diagnose_bench.sh [FAINSTALL [OLD]]: CPU time and memory of diagnose for 100 MB of build log, the cause at its end; 100 MB of lines
# full of words that it looks for; 100 MB with every word; one line of 50 MB. Figures of the whole program, start included. With OLD,
# another build of fainstall, both are run in turn and the ratio of their times is told.
set -eu
cd "$(dirname "$0")/../.."
fainstall=${1:-./fainstall} old=${2:-}
unset FAINSTALL_DATA # each finds the knowledge beside itself
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

numbered() { # FILE BYTES TEXT: the text on every line, with a number, so that no two lines are the same
	awk -v text="$3" -v n=$(($2 / (${#3} + 9) + 1)) 'BEGIN { for (i = 0; i < n; i++) printf "%s %07d\n", text, i }' </dev/null |
		head -c "$2" >"$1"
}

run() { # PROGRAM FILE: "CPU seconds, KiB" into $dir/time; 1: no cause, as for random bytes; anything else is no measurement
	/usr/bin/time -f "%U %S %M" -o "$dir/time" "$1" diagnose "$2" --json >"$dir/out" 2>"$dir/err" || [ $? -eq 1 ] ||
		{ cat "$dir/err" >&2; return 1; }
	tail -n 1 "$dir/time"
}

measure() { # NAME FILE
	local now before=
	[ -z "$old" ] || before=$(run "$old" "$2")
	now=$(run "$fainstall" "$2")
	awk -v name="$1" -v now="$now" -v before="$before" -v id="$(grep -o '"id":[[:space:]]*"[a-z_0-9]*"' "$dir/out" | head -n 1)" 'BEGIN {
		split(now, n); split(before, b)
		printf "%-30s CPU %.2f s, %d KiB", name, n[1] + n[2], n[3]
		if (before != "") printf ", before %.2f s, ratio %.2f", b[1] + b[2], (n[1] + n[2]) / (b[1] + b[2])
		printf ", %s\n", id
	}'
}

numbered "$dir/log" 100000000 "[12/73] /usr/local/cuda/bin/nvcc -Icsrc/cutlass/include -gencode arch=compute_80,code=sm_80 -std=c++17 -c flash_fwd_hdim128_bf16_sm80.cu -o flash_fwd_hdim128_bf16_sm80.o"
echo "nvcc error   : 'cicc' died due to signal 9 (Kill signal)" >>"$dir/log"
measure "build log, 100 MB" "$dir/log"
numbered "$dir/log" 100000000 "error: failed: warning: undefined symbol killed ninja gcc no such file or directory cutlass/ signal 9 flash_attn"
measure "words on every line, 100 MB" "$dir/log"
grep -oE '"text": \[[^]]*\]' matrix/causes.json | sed 's/["\\]//g' | awk '{ print $0, NR }' >"$dir/words"
while cat "$dir/words"; do :; done 2>/dev/null | head -c 100000000 >"$dir/log" || :
measure "every word there is, 100 MB" "$dir/log"
head -c 50000000 /dev/zero | tr '\0' x >"$dir/log"
measure "one line, 50 MB" "$dir/log"
numbered "$dir/words" 50000000 "error: fatal killed undefined symbol ninja "
tr -d '\n' <"$dir/words" >"$dir/log"
measure "one line of words, 50 MB" "$dir/log"
yes "a beginning that looks like a log" | head -c 262144 >"$dir/log"
head -c 100000000 /dev/urandom >>"$dir/log"
measure "random bytes, 100 MB" "$dir/log"
