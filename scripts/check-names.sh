#!/bin/bash
# check-names.sh: nothing of the machine on which this was written stands in the tree. Prints each place; fails when there is one.
set -u
git rev-parse --git-dir >/dev/null 2>&1 || exit 0
bad=0
while read -r line; do
	echo "check-names: $line"
	bad=1
done < <({
	git grep -nIF -e "$PWD/" -- .
	git grep -nIE 'PIP_(INDEX|EXTRA|TRUSTED)[A-Z_]*=[^ ]*[a-z]' -- . ':!scripts/check-names.sh' | grep -vE '\.example\b'
} | cut -c1-160)
exit $bad
