#!/bin/bash
# run-fuzz.sh BUILD SECONDS: every fuzz target for so long, from its corpus. What it finds is left in BUILD/findings.
set -u
build=$1 seconds=$2 failed=0 n=0
mkdir -p "$build/findings"
for program in "$build"/*_fuzz; do
	[ -x "$program" ] || continue
	name=$(basename "$program" _fuzz)
	mkdir -p "$build/corpus/$name"
	log=$build/$name.log
	if "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -artifact_prefix="$build/findings/$name-" \
		"$build/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
		echo "ok      $name: $(grep -oE '^Done [0-9]+ runs' "$log")"
	else
		echo "FAILED  $name: $(grep -E '^(SUMMARY|==[0-9]+== ?ERROR)' "$log" | head -n 1) (log $log)"
		failed=$((failed + 1))
	fi
	n=$((n + 1))
done
echo "$((n - failed)) passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$n" -gt 0 ]
