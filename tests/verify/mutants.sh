#!/bin/bash
# mutants.sh [-j N] [NAME…]: verification against stand-ins with planted faults, on the CPU. PYTHON: an interpreter with torch.
# PYTESTS: a folder with pytest, where the interpreter has none.
set -eu
here=$(dirname "$0")
PYTHON=${PYTHON:-python3}
if ! "$PYTHON" -c 'import torch' 2>/dev/null; then
	echo "tests/verify: $PYTHON has no torch; set PYTHON to one that has (not run)"
	exit 0
fi
exec "$PYTHON" "$here/mutants.py" "$@"
