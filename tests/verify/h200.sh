#!/bin/bash
# h200.sh: everything that verification can prove on a machine with a card, in one go. From the root of the repository:
#   OUT=folder PYTHON=interpreter tests/verify/h200.sh
# PYTHON's environment (or PYTHONPATH) holds torch and flash-attn. Optional: FA3=folder with an unpacked FA3 wheel, FA4=folder with
# flash-attn-4 and what it needs (as fa4_folder.sh says), RUNS=N further quick runs that look for false alarms (3), MODES="quick
# normal full" or "none", FA4_PYTHON=interpreter with torch and without flash-attn (PYTHON), UPSTREAM=folder with upstream's repository (tests/, benchmarks/, flash_attn/__init__.py) with PYTESTS=folder of pytest unpacked if the
# environment has none, TESTS=N of its parameter sets (400).
# Leaves in OUT: machine.txt, kernels.log, roofline.jsonl, verify-MODE.jsonl and .err, summary.txt; ends with the summary.
set -u
: "${OUT:?OUT=folder for the results}"
PYTHON=${PYTHON:-python3}
RUNS=${RUNS:-3}
mkdir -p "$OUT"
cd "$(dirname "$0")/../.." || exit 2
summary=$OUT/summary.txt
: >"$summary"

say() {
	printf '%s\n' "$*" | tee -a "$summary"
}

# timed NAME LIMIT COMMAND…: stdout to NAME.jsonl, stderr to NAME.err, time and exit status to the summary
timed() {
	local name=$1 limit=$2 start end status
	shift 2
	start=$(date +%s.%N)
	timeout -k 5 "$limit" "$@" >"$OUT/$name.jsonl" 2>"$OUT/$name.err" </dev/null
	status=$?
	end=$(date +%s.%N)
	say "$(awk -v a="$start" -v b="$end" -v n="$name" -v s="$status" 'BEGIN { printf "%-22s exit %d, %.1f s wall", n, s, b - a }')"
	"$PYTHON" tests/verify/summary.py "$OUT/$name.jsonl" 2>&1 | sed 's/^/    /' | tee -a "$summary"
}

{
	date -u
	uname -a
	nvidia-smi
	nvcc -V || "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc" -V
	"$PYTHON" -VV
	"$PYTHON" -m pip list 2>/dev/null | grep -iE 'torch|flash|triton|nvidia|cutlass'
} >"$OUT/machine.txt" 2>&1

export CUDA_HOME=${CUDA_HOME:-/usr/local/cuda}
export LD_LIBRARY_PATH=$CUDA_HOME/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
ARCH=${ARCH:-sm_90} scripts/kernels.sh build/kernels >"$OUT/kernels.log" 2>&1
say "kernels: $(find build/kernels -type f -perm -u+x 2>/dev/null | sort | tr '\n' ' ')"
timed roofline 60 build/kernels/roofline
verify=("$PYTHON" recipes/verify.py --kernels build/kernels --expected matrix/speed.json)
for mode in ${MODES:-quick normal full}; do
	[ "$mode" != none ] || break
	option=()
	[ "$mode" = normal ] || option=("--$mode")
	timed "verify-$mode" 240 "${verify[@]}" "${option[@]}"
done
for i in $(seq 1 "$RUNS"); do
	timed "again-$i" 60 "${verify[@]}" --quick
done
if [ -n "${UPSTREAM:-}" ]; then
	PYTHONPATH=${PYTESTS:-}${PYTESTS:+:}${PYTHONPATH:-} timed upstream 540 "${verify[@]}" --only upstream --upstream "$UPSTREAM" \
		--upstream-tests "${TESTS:-400}"
	"$PYTHON" tests/verify/agreement.py "$OUT/upstream.jsonl" | tee -a "$summary"
fi
if [ -n "${FA3:-}" ]; then
	PYTHONPATH=$FA3 timed verify-fa3 240 "${verify[@]}" --line fa3 --full
fi
if [ -n "${FA4:-}" ]; then # an interpreter without FA2: its package would hide FA4's
	PYTHONPATH=$FA4 timed verify-fa4 480 "${FA4_PYTHON:-$PYTHON}" "${verify[@]:1}" --line fa4 --full
fi
exit 0
