#!/bin/bash
# docs.sh [--check]: writes docs/tree.md, the decision tree and tables of README.md and the causes of docs/diagnose.md from the knowledge;
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
	echo "## Which torch gets which Flash-Attention 2"
	echo
	echo "The newest release with a ready file for Linux, by who built it, and the newest one that compiles. A file must fit Python, platform, glibc, driver and card too."
	echo
	show compat
	echo
	echo "## Features and the release that brought them"
	echo
	show needs
	echo
	echo "## Variables that builds read"
	echo
	show variables
	echo
	echo "## Ids"
	echo
	echo "Stable: scripts may rely on them."
	echo
	show ids
} >"$tmp/tree.md"

# README: the questions alone, and which card and torch gets what
show tree | sed -nE 's/^### ([0-9]+\.) (.*[^ ]); .*$/    \1 \2/p' >"$tmp/questions"
show families | grep -v '| sdpa only | sdpa only\|pre-production' >"$tmp/families"
show compat | head -n 13 >"$tmp/compat" # docs/tree.md has the older ones too
insert() { # insert NAME INTO: $tmp/NAME between the marks of that name
	awk -v name="$1" -v file="$tmp/$1" '
		$0 == "<!-- " name " -->" { print; print ""; while ((getline line < file) > 0) print line; print ""; skip = 1; next }
		$0 == "<!-- end of " name " -->" { skip = 0 }
		!skip' "$2" >"$tmp/inserted"
	mv "$tmp/inserted" "$2"
}
mv "$tmp/questions" "$tmp/tree"
cp README.md "$tmp/README.md"
for name in tree families compat; do insert $name "$tmp/README.md"; done

show causes >"$tmp/causes"
cp docs/diagnose.md "$tmp/diagnose.md"
insert causes "$tmp/diagnose.md"

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
