#!/bin/sh
# shellcheck disable=SC2317 # the probes are called through `want`
# need.sh GROUP: what GROUP of make targets needs is here, or gets installed. As root apt-get installs it; otherwise the exact
# line is printed and, on a terminal, the question is asked whether to run it. Exit 4: something is still missing.
set -eu

missing=
want() { # want PACKAGE COMMAND...: PACKAGE is missing when COMMAND fails
	package=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $package"
}
library() { pkg-config --exists "$1"; }
program() { command -v "$1"; }
compiles() { printf '#include <stdio.h>\nint main(void){return 0;}\n' | gcc -x c -fsyntax-only -; }
compiles_cxx() { printf '#include <string>\nint main(){return 0;}\n' | g++ -x c++ -fsyntax-only -; }
fuzzes() {
	made=$(mktemp) && printf 'int LLVMFuzzerTestOneInput(void){return 0;}\n' | clang -x c -fsanitize=fuzzer,address -o "$made" -
	works=$?
	rm -f "$made"
	return "$works"
}
python_headers() { test -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"; }

build() {
	want gcc program gcc
	want libc6-dev compiles
	want pkg-config program pkg-config
	want libncurses-dev library ncursesw
	want libcjson-dev library libcjson
	want libcurl4-openssl-dev library libcurl
	want libgit2-dev library libgit2
	want libarchive-dev library libarchive
}

group=${1:-run}
build
case $group in
run) ;;
test)
	want libcmocka-dev library cmocka
	want libvterm-dev library vterm
	want g++ compiles_cxx # what a build of Flash-Attention looks for first
	want python3 program python3
	want openssl program openssl # a certificate for the loopback server
	want openssh-client program ssh-keygen # signs the knowledge of tests/matrix
	;;
e2e)
	want libvterm-dev library vterm
	want git program git
	want g++ compiles_cxx
	want python3 program python3
	want python3-venv python3 -m ensurepip --version
	want python3-dev python_headers
	;;
check)
	want libcmocka-dev library cmocka
	want libvterm-dev library vterm
	want clang-format program clang-format
	want clang-tidy program clang-tidy
	want shellcheck program shellcheck
	;;
fuzz)
	want clang program clang
	want libclang-rt-dev fuzzes
	;;
*)
	echo "need.sh: unknown group \"$group\"; known are run, test, e2e, check, fuzz" >&2
	exit 2
	;;
esac
[ -n "$missing" ] || exit 0

if ! command -v apt-get >/dev/null; then
	echo "fainstall: to build, this machine needs what Debian calls:$missing" >&2
	echo "next: install them with this system's package manager, then run make again" >&2
	exit 4
fi
install="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
	echo "Installing:$missing"
	export DEBIAN_FRONTEND=noninteractive
	log=$(mktemp)
	# A mirror that hiccups once should not end the day.
	for try in 1 2 3; do
		if apt-get update -qq >"$log" 2>&1 && $install -qq >>"$log" 2>&1; then
			rm -f "$log"
			exit 0
		fi
		echo "apt-get, try $try of 3: $(grep -E '^(E|W|Err)' "$log" | tail -n 1)" >&2
	done
	rm -f "$log"
	echo "fainstall: apt-get could not install:$missing" >&2
	echo "next: apt-get update && $install" >&2
	exit 4
fi
echo "To build, this machine needs:$missing"
echo
echo "    sudo apt-get update && sudo $install"
echo
if [ -t 0 ] && [ -t 1 ] && command -v sudo >/dev/null; then
	printf 'Run it now? [y/N] '
	read -r answer || answer=n
	case $answer in
	y | Y)
		sudo apt-get update -qq
		# shellcheck disable=SC2086
		sudo $install && exit 0
		;;
	esac
fi
echo "next: run the line above, then the same make command again" >&2
exit 4
