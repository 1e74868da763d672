#!/bin/bash
# docs.sh [--check]: writes docs/tree.md, the decision tree of README.md and the causes of docs/diagnose.md from the knowledge;
# --check only compares.
set -eu
export FAINSTALL_DATA=$PWD
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

show() { ./fainstall matrix show "$1" --markdown; }
{
	echo "# The decision tree"
	echo
	echo "Made from \`matrix/\` by \`make docs\`; \`fainstall matrix show tree\` prints the same. In brackets the id under which a refusal appears in a plan."
	echo
	show tree
	echo
	echo "## Which architecture is served by what"
	echo
	show lines
	echo
	echo "## Ids"
	echo
	echo "Stable: scripts may rely on them."
	echo
	show ids
} >"$tmp/tree.md"

# README: the questions alone
show tree | sed -nE 's/^### ([0-9]+\.) (.*[^ ]); .*$/    \1 \2/p' >"$tmp/questions"
awk -v file="$tmp/questions" '
	/^<!-- tree -->$/ { print; print ""; while ((getline line < file) > 0) print line; print ""; skip = 1; next }
	/^<!-- end of tree -->$/ { skip = 0 }
	!skip' README.md >"$tmp/README.md"

show causes >"$tmp/causes"
awk -v file="$tmp/causes" '
	/^<!-- causes -->$/ { print; print ""; while ((getline line < file) > 0) print line; print ""; skip = 1; next }
	/^<!-- end of causes -->$/ { skip = 0 }
	!skip' docs/diagnose.md >"$tmp/diagnose.md"

if [ "${1:-}" = --check ]; then
	bad=0
	for file in tree.md diagnose.md README.md; do
		there=docs/$file
		[ $file = README.md ] && there=README.md
		diff -q "$tmp/$file" "$there" >/dev/null 2>&1 || { echo "check-docs: $there is not what the knowledge says; make docs writes it" && bad=1; }
	done
	for file in docs/*.md docs/*.1; do
		[ "$file" = docs/index.md ] || grep -q "($(basename "$file"))" docs/index.md || { echo "check-docs: $file is missing in docs/index.md" && bad=1; }
	done
	exit $bad
fi
cp "$tmp/tree.md" docs/tree.md
cp "$tmp/diagnose.md" docs/diagnose.md
cp "$tmp/README.md" README.md
