#!/bin/bash
# fuzz-bundle.sh BUILD: BUILD/bundle.tar.xz, the fuzz target of diagnose for a machine with many cores and without clang. It holds the
# target, its libraries, the knowledge, a corpus made of the cases and logs of tests/diagnose, a dictionary of the words that are
# looked for, and go.sh.
set -euo pipefail
build=$1 out=$1/bundle
rm -rf "$out" "$build/seeds"
mkdir -p "$out/lib" "$out/corpus" "$build/seeds"
cp "$build/diagnose_fuzz" "$out/"
# The C library too, with the one character set that is read: the other machine may have an older one.
for lib in libcjson.so.1 libstdc++.so.6 libgcc_s.so.1 libc.so.6 libm.so.6 ld-linux-x86-64.so.2; do
	cp -L "$(/sbin/ldconfig -p | awk -v l="$lib" '$1 == l && /x86-64/ { print $NF; exit }')" "$out/lib/"
done
mkdir "$out/gconv"
cp "$(dirname "$(/sbin/ldconfig -p | awk '$1 == "libc.so.6" && /x86-64/ { print $NF; exit }')")/gconv/GB18030.so" "$out/gconv/"
printf 'module\tGB18030//\tINTERNAL\tGB18030\t1\nmodule\tINTERNAL\tGB18030//\tGB18030\t1\n' >"$out/gconv/gconv-modules"
cp -r matrix recipes "$out/"
cp tests/fuzz/go.sh "$out/"
# A word of the table is a word of the dictionary.
grep -oE '"text": \[[^]]*\]' matrix/causes.json | sed 's/^"text": //' | grep -oE '"([^"\\]|\\.)*"' | LC_ALL=C grep -vE '[^ -~]|\\[^"\\]' |
	LC_ALL=C sort -u >"$out/words.dict"
awk -v to="$build/seeds/case-" '/^== / { close(f); f = to sprintf("%04d", n++); next } f { print >f }' \
	tests/diagnose/kinds.cases tests/diagnose/reports.cases
for log in tests/diagnose/logs/*.log tests/diagnose/clean/*.log; do
	name=$(basename "$log" .log)
	head -c 6000 "$log" >"$build/seeds/head-$name"
	tail -c 6000 "$log" >"$build/seeds/tail-$name"
done
for text in "$build"/seeds/case-00[0-4]*; do # as PowerShell writes
	iconv -f UTF-8 -t UTF-16 "$text" >"$build/seeds/utf16-$(basename "$text")"
done
cp tests/fuzz/corpus/diagnose/* "$build/seeds/"
FAINSTALL_DATA=$out "$build/diagnose_fuzz" -merge=1 -max_len=8192 "$out/corpus" "$build/seeds" 2>"$build/merge.log" ||
	{ tail "$build/merge.log" >&2; exit 1; }
tar -C "$build" -cJf "$build/bundle.tar.xz" bundle
ls -l "$build/bundle.tar.xz"
