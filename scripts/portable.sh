#!/bin/bash
# portable.sh BUILD OUT: a folder that runs on another Linux of the same machine type: both programs, stripped, the libraries that
# they need beside them in lib/ (found by RPATH $ORIGIN/lib), knowledge and recipes. glibc itself is taken from the system there, which
# must be as new as here.
set -eu
build=$1 out=$2
rm -rf "$out"
mkdir -p "$out/lib"
# What every Linux has, and must have in its own version: glibc and the loader.
system='^(linux-vdso|ld-linux|libc|libm|libdl|libpthread|librt|libresolv|libutil|libnss_.*|libanl)[.-]'
for program in fainstall fainstall-worker; do
	[ -x "$build/$program" ] || continue
	strip -o "$out/$program" "$build/$program"
	while read -r name _ path _; do
		[[ $name =~ $system ]] || [ ! -e "$path" ] || cp -Lu "$path" "$out/lib/$name"
	done < <(ldd "$build/$program" | grep '=>')
done
strip --strip-unneeded "$out"/lib/*.so* 2>/dev/null
for folder in matrix recipes kernels; do
	[ ! -d $folder ] || cp -R $folder "$out/"
done
[ ! -d build/kernels ] || cp -R build/kernels/. "$out/kernels/"
cp LICENSE README.md "$out/"
while read -r library; do
	echo "portable: $library is not there" >&2
	exit 1
done < <(ldd "$out"/fainstall* 2>&1 | grep 'not found')
echo "$out: $(du -sm "$out" | cut -f1) MB, glibc $(find "$out" -type f -perm /111 -exec objdump -T {} + 2>/dev/null |
	grep -oE 'GLIBC_[0-9.]+' | sort -Vu | tail -n 1 | cut -d_ -f2) or newer needed"
