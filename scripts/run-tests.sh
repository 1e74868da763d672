#!/bin/bash
# run-tests.sh BUILD: runs the test programs of BUILD/tests.list, the replays of BUILD/replays.list and every tests/*/run (but
# e2e and proof), several at once; prints what failed; the last line is `N passed, N failed`. Fails when a test failed or none ran.
set -u
build=$1
limit=${TEST_TIMEOUT_S:-150}
logs=$PWD/$build/test-logs
rm -rf "$logs"
mkdir -p "$logs"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# The same answers on every machine: nothing of the user's environment leaks in.
for name in $(compgen -e); do
	case $name in
	PATH | PWD | TMPDIR | LD_LIBRARY_PATH | *SAN_OPTIONS) ;;
	*) unset "$name" 2>/dev/null ;;
	esac
done
export LC_ALL=C.UTF-8 TERM=xterm-256color TZ=UTC HOME=$scratch/home
export XDG_DATA_HOME=$scratch/data XDG_CACHE_HOME=$scratch/cache XDG_STATE_HOME=$scratch/state XDG_CONFIG_HOME=$scratch/config
export FAINSTALL_DATA=$PWD FAINSTALL=$PWD/fainstall no_proxy=127.0.0.1,localhost,::1
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
mkdir -p "$HOME"

one() { # one NAME COMMAND...
	local name=$1 rc=0 begin=$SECONDS
	shift
	timeout -k 5 "$limit" "$@" >"$logs/$name.log" 2>&1 </dev/null || rc=$?
	echo "$rc" >"$logs/$name.rc"
	echo "$((SECONDS - begin)) s $name" >>"$logs/times"
}
names=()
start() {
	names+=("$1")
	while [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; do wait -n; done
	one "$@" &
}

while read -r program; do
	[ -n "$program" ] && start "$(basename "$(dirname "$program")")-$(basename "$program")" "$program"
done <"$build/tests.list"
while read -r program; do
	name=$(basename "$program")
	[ -n "$program" ] && start "replay-$name" "$program" "tests/fuzz/corpus/${name%_fuzz}"
done <"$build/replays.list"
for script in tests/*/run; do
	case $script in tests/e2e/* | tests/proof/*) continue ;; esac
	[ -x "$script" ] && start "$(basename "$(dirname "$script")")-run" "$script"
done
wait

passed=0 failed=0
for name in "${names[@]}"; do
	log=$logs/$name.log rc=$(cat "$logs/$name.rc" 2>/dev/null || echo 1)
	p=0 f=0
	case $name in
	*-run)
		totals=$(grep -E '^[0-9]+ passed, [0-9]+ failed$' "$log" | tail -n 1)
		read -r p _ f _ <<<"${totals:-0 passed, 0 failed}"
		;;
	replay-*) p=$((rc == 0)) ;;
	*)
		p=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) test(s)\.$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
		f=$(sed -n 's/^\[  FAILED  \] \([0-9]*\) test(s), listed below:$/\1/p' "$log" | awk '{n += $1} END {print n + 0}')
		;;
	esac
	# A program that died, ran out of time, leaked or told no totals is a failure of its own.
	if [ "$rc" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
	if [ $((p + f)) -eq 0 ]; then f=1; fi
	if [ "$f" -gt 0 ]; then
		echo "== $name: $f FAILED (exit $rc)"
		grep -vE '^\[ +(OK|RUN) +\]' "$log" | tail -n 40
	fi
	passed=$((passed + p))
	failed=$((failed + f))
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
