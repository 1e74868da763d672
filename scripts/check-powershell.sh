#!/bin/bash
# Parses every PowerShell script of ours. There is no PowerShell here: the parser is the grammar of tree-sitter, from the package index,
# in an environment of its own. Without it the check is not run, and says so.
set -u
folder=build/powershell
if [ ! -e $folder/done ]; then
	rm -rf $folder
	if ! { python3 -m venv $folder && $folder/bin/python -m pip install -q --disable-pip-version-check tree-sitter==0.26.1 tree-sitter-powershell==0.26.4; } >/dev/null 2>&1; then
		echo "check-powershell: not run: the package index has no tree-sitter-powershell for this Python"
		exit 0
	fi
	touch $folder/done
fi
git ls-files '*.ps1' | xargs $folder/bin/python -c '
import sys
import tree_sitter, tree_sitter_powershell
parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_powershell.language()))
bad = 0
def faults(node):
    if node.type == "ERROR" or node.is_missing:
        yield node
        return
    for child in node.children:
        yield from faults(child)
for path in sys.argv[1:]:
    with open(path, "rb") as f:
        text = f.read()
    for node in faults(parser.parse(text).root_node):
        bad += 1
        print("%s:%d: not PowerShell: %s" % (path, node.start_point[0] + 1, text[node.start_byte:node.end_byte][:60].decode(errors="replace")))
sys.exit(1 if bad else 0)'
