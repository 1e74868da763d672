#!/bin/bash
# bench.sh [RUNS]: times of the commands that people wait for: CPU and wall, least and median of RUNS (20).
set -eu
runs=${1:-20}
export FAINSTALL_DATA=$PWD
host=tests/hosts/eight-a100
[ -e $host ] || host=$(find tests/hosts -mindepth 1 -maxdepth 1 2>/dev/null | head -n 1)

measure() { # measure NAME COMMAND...
	local name=$1 i
	shift
	for ((i = 0; i < runs; i++)); do
		python3 - "$@" <<-'PY'
			import resource, subprocess, sys, time
			def cpu():
			    u = resource.getrusage(resource.RUSAGE_CHILDREN)
			    return u.ru_utime + u.ru_stime
			t, c = time.perf_counter(), cpu()
			subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
			print("%.1f %.1f" % ((time.perf_counter() - t) * 1e3, (cpu() - c) * 1e3))
		PY
	done | sort -n | awk -v name="$name" '
		{ wall[NR] = $1; cpu[NR] = $2 }
		END { n = asort_numbers(cpu); printf "%-34s wall %6.1f ms (least %.1f)   CPU %6.1f ms (least %.1f)\n", name, wall[int((NR + 1) / 2)], wall[1], cpu[int((NR + 1) / 2)], cpu[1] }
		function asort_numbers(a,   i, j, t) { for (i = 2; i <= NR; i++) { t = a[i]; for (j = i - 1; j >= 1 && a[j] > t; j--) a[j + 1] = a[j]; a[j + 1] = t } return NR }'
}
measure "fainstall --version" ./fainstall --version
measure "fainstall detect" ./fainstall detect
measure "fainstall plan" ./fainstall plan
[ -z "$host" ] || measure "fainstall plan --host $(basename "$host")" ./fainstall plan --host "$host"
size=$(stat -c %s fainstall) worker=$(stat -c %s fainstall-worker 2>/dev/null || echo 0)
echo "size: fainstall $((size / 1024)) KiB, fainstall-worker $((worker / 1024)) KiB"
echo "lines of C: $(cat core/*.[ch] tui/*.[ch] cli/*.[ch] worker/*.[ch] 2>/dev/null | wc -l), of tests: $(cat tests/*/*.[ch] | wc -l)"
