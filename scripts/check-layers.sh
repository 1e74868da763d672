#!/bin/bash
# check-layers.sh: which file may include what. Prints each offence; fails when there is one.
set -u
bad=0
offence() {
	echo "check-layers: $1"
	bad=1
}
# only LIBRARY FILE: the library's header is included by that file of ours and no other
only() {
	local pattern=$1 allowed=$2 file
	while read -r file; do
		[ "$file" = "$allowed" ] || offence "$file includes <$pattern>; only $allowed may"
	done < <(grep -lE "#[[:space:]]*include[[:space:]]*<([a-z]+/)?$pattern" core/*.[ch] tui/*.[ch] cli/*.[ch] worker/*.[ch] 2>/dev/null)
}
only 'curl\.h>' core/fetch.c
only 'curl/' core/fetch.c
only 'git2' core/clone.c
only 'archive' core/archive.c
only 'cJSON' core/json.c
only 'n?curses' tui/term.c
only 'term\.h>' tui/term.c

# A screen knows core by one header and its own folder; nothing of core knows a front end.
while IFS=: read -r file header; do
	case $header in
	fainstall.h | core/fainstall.h) ;;
	*) [ -e "tui/${header#tui/}" ] || offence "$file includes \"$header\"; tui/ takes core/fainstall.h and its own headers" ;;
	esac
done < <(grep -HoP '#\s*include\s*"\K[^"]+' tui/*.[ch] 2>/dev/null)
while IFS=: read -r file header; do
	[ -e "core/$header" ] || offence "$file includes \"$header\", which is not in core/"
done < <(grep -HoP '#\s*include\s*"\K[^"]+' core/*.[ch] 2>/dev/null)

# core never prints, asks or exits: out of memory, and the worker's and the gate's own output, aside.
while read -r line; do
	offence "core prints or exits: $line"
done < <(grep -nE '\b(printf|puts|putchar|perror|exit|getchar|fgets)\(|\b(stdout|stderr)\)' core/*.c 2>/dev/null |
	grep -vE '^core/(buf|gate[a-z_]*|supervise|job_worker|worker[a-z_]*)\.c:' | grep -vE ':[[:space:]]*(/?\*|//)')

# No shell between us and a command.
while read -r line; do
	offence "a shell is started: $line"
done < <(grep -nE '\b(system|popen|execlp?|wordexp)\(' core/*.c tui/*.c cli/*.c worker/*.c 2>/dev/null | grep -vE 'open_|_popen')
exit $bad
