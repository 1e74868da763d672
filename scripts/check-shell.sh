#!/bin/bash
# check-shell.sh: shellcheck over every shell script of the tree.
set -u
files=()
while read -r file; do
	head -c 64 "$file" | head -n 1 | grep -qE '^#!.*\b(ba|da)?sh\b' && files+=("$file")
done < <(git ls-files 2>/dev/null || find . -type f -not -path './build/*')
[ ${#files[@]} -eq 0 ] || shellcheck "${files[@]}"
