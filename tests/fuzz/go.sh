#!/bin/bash
# go.sh [OUT]: the fuzz target beside this file in many processes, each with its own seed and corpus, until they have run
# TOTAL (10,000,000) inputs together or SECONDS (280) are over. OUT (default $OUT, else ./out) gets summary.txt, the end of each log and
# findings/. Exit 1: something was found, or too few inputs were run.
set -u
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-${OUT:-$here/out}} total=${TOTAL:-10000000} seconds=${SECONDS_MAX:-280} n=${PROCESSES:-$(nproc)}
work=$(mktemp -d)
stop() { # what still runs would write into the folder that goes
	touch "$work/stop"
	local pid
	for pid in "$work"/pid*; do
		[ -e "$pid" ] && kill -INT "$(cat "$pid")" 2>/dev/null
	done
	wait
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 130' INT TERM
mkdir -p "$out/findings"
export FAINSTALL_DATA=$here ASAN_OPTIONS=malloc_context_size=3:quarantine_size_mb=8:detect_leaks=1 UBSAN_OPTIONS=print_stacktrace=1
program=("$here/lib/ld-linux-x86-64.so.2" --library-path "$here/lib" "$here/diagnose_fuzz")
export GCONV_PATH=$here/gconv
end=$((SECONDS + seconds))

# Most take small inputs; every eighth takes large ones.
worker() {
	local i=$1 round=0 max=2048 left runs status
	case $((i % 8)) in 1 | 2) max=8192 ;; 7) max=65536 ;; esac
	mkdir "$work/corpus$i"
	cp "$here"/corpus/* "$work/corpus$i/"
	while left=$((end - SECONDS)) && [ "$left" -gt 3 ] && [ ! -e "$work/stop" ]; do
		"${program[@]}" -seed=$((1000 * round + i)) -max_len=$max -max_total_time="$left" -timeout=20 -rss_limit_mb=2048 \
			-dict="$here/words.dict" -print_final_stats=1 -artifact_prefix="$out/findings/$i-" "$work/corpus$i" \
			>"$work/log$i.$round" 2>&1 &
		echo $! >"$work/pid$i"
		wait $!
		status=$?
		case $status in
		0 | 72) ;; # done, interrupted
		*)
			echo "process $i round $round: exit $status" >>"$work/failed"
			cp "$work/log$i.$round" "$out/findings/"
			;;
		esac
		runs=$(awk '/stat::number_of_executed_units/ { print $2 }' "$work/log$i.$round")
		[ -n "$runs" ] || runs=$(last_count "$work/log$i.$round")
		echo "$runs" >>"$work/runs$i"
		tail -n 40 "$work/log$i.$round" >"$out/log$i.txt"
		[ "$round" -lt 20 ] || return
		round=$((round + 1))
	done
}

last_count() {
	awk '/^#[0-9]+/ { n = substr($1, 2) + 0 } END { print n + 0 }' "$1"
}

count_now() {
	local sum=0 f
	for f in "$work"/log*; do
		[ -e "$f" ] && sum=$((sum + $(last_count "$f")))
	done
	echo $sum
}

for ((i = 0; i < n; i++)); do
	worker "$i" &
	pids[i]=$!
done
while sleep 5 && [ $SECONDS -lt $end ]; do
	[ "$(count_now)" -ge "$total" ] || continue
	touch "$work/stop"
	for pid in "$work"/pid*; do
		kill -INT "$(cat "$pid")" 2>/dev/null
	done
	break
done
wait "${pids[@]}"

sum=0
{
	for ((i = 0; i < n; i++)); do
		runs=$(awk '{ n += $1 } END { print n + 0 }' "$work/runs$i")
		sum=$((sum + runs))
		echo "process $i: $runs executions, $(grep -c . "$work/runs$i") rounds"
	done
	cat "$work/failed" 2>/dev/null
	found=$(find "$out/findings" -type f | wc -l)
	echo "executions $sum, findings $found, $SECONDS s, $n processes"
	[ "$found" -eq 0 ] && [ ! -e "$work/failed" ] && [ "$sum" -ge "$total" ] && echo PASSED || echo "NOT PASSED"
} | tee "$out/summary.txt"
grep -qx PASSED "$out/summary.txt"
