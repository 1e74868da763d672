# fainstall. The two commands: `make run` (install what is missing, build, start) and `make test`.
# `make help` lists the rest. DEV=1 turns warnings into errors; SAN=address,undefined (or -fsanitize=...) builds with
# sanitizers; CC=clang works too.

ifeq ($(origin CC),default)
CC = gcc
endif
PREFIX ?= /usr/local
BUILD ?= build/$(notdir $(lastword $(CC)))$(if $(SAN),-san)$(if $(DEV),-dev)
PKG_CONFIG ?= pkg-config
CORES := $(shell nproc 2>/dev/null || echo 2)
ifeq ($(MAKELEVEL),0)
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(CORES)
endif
endif

WARN = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wundef -Wformat=2
CFLAGS ?= -O2 -g
LIB_CFLAGS := $(shell $(PKG_CONFIG) --cflags ncursesw libcjson libcurl libgit2 libarchive 2>/dev/null)
CPPFLAGS += -D_GNU_SOURCE -iquote core -I. $(LIB_CFLAGS)
ALL_CFLAGS = -std=c11 $(WARN) $(CFLAGS) -fno-strict-aliasing -fstack-protector-strong -MMD -MP
ifdef DEV
ALL_CFLAGS += -Werror
endif
ifdef SAN
SANFLAGS = $(if $(filter -fsanitize%,$(SAN)),$(SAN),-fsanitize=$(SAN)) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
ALL_CFLAGS += $(SANFLAGS)
LDFLAGS += $(SANFLAGS)
endif

# Each program is linked from one archive: it takes the objects that it uses, so fainstall pulls in no curl, git or archive.
LIBS_MAIN := $(shell $(PKG_CONFIG) --libs ncursesw libcjson 2>/dev/null || echo -lncursesw -lcjson) -ldl -lm
LIBS_WORKER := $(shell $(PKG_CONFIG) --libs libcjson libcurl libgit2 libarchive 2>/dev/null || \
	echo -lcjson -lcurl -lgit2 -larchive) -ldl -lm
# The portable folder carries its libraries. libarchive goes in whole, since its shared one wants libxml2 and 33 MB of libicu for
# formats that we never read. RPATH, not RUNPATH: it must hold for the libraries' own libraries too.
ifdef PORTABLE
LDFLAGS += -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib' -Wl,--as-needed
LIBS_WORKER := -Wl,-Bstatic -larchive -Wl,-Bdynamic -lcjson -lcurl -lgit2 $(addprefix -l:lib,z.so.1 bz2.so.1.0 lzma.so.5 zstd.so.1 lz4.so.1 nettle.so.8 acl.so.1 crypto.so.3) -ldl -lm
endif
LIBS_TEST = -lcmocka -lvterm -lutil

CORE = $(wildcard core/*.c)
TUI = $(wildcard tui/*.c)
CLI = $(wildcard cli/*.c)
TESTS = $(wildcard tests/core/*_test.c tests/tui/*_test.c tests/cli/*_test.c)
FUZZ = $(wildcard tests/fuzz/*_fuzz.c)
# V=1 shows whole commands.
Q = $(if $(V),,@)
say = @$(if $(V),:,printf '  %-4s %s\n' $(1) $(2))
obj = $(patsubst %.c,$(BUILD)/%.o,$(1))

all: $(BUILD)/libcore.a fainstall $(if $(wildcard worker/main.c),fainstall-worker)
.DEFAULT_GOAL := all
.SECONDARY:

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/libcore.a: $(call obj,$(CORE))
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/libtui.a: $(call obj,$(TUI))
	@mkdir -p $(@D) && rm -f $@
	@$(if $^,$(AR) rcs $@ $^,printf '!<arch>\n' >$@)

$(BUILD)/libcli.a: $(call obj,$(filter-out cli/main.c,$(CLI)))
	@rm -f $@
	@$(AR) rcs $@ $^

$(BUILD)/fainstall: $(BUILD)/cli/main.o $(BUILD)/libcli.a $(BUILD)/libtui.a $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_MAIN)

$(BUILD)/fainstall-worker: $(call obj,worker/main.c) $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_WORKER)

# The programs at the root are copies of the last build, whatever its flags were.
fainstall fainstall-worker: %: $(BUILD)/% FORCE
	@cmp -s $< $@ || { cp -f $< $@.tmp && mv -f $@.tmp $@; }
FORCE:

# ---- the two commands
run:
	@scripts/need.sh run
	@$(MAKE) --no-print-directory all
	@./fainstall; s=$$?; case $$s in 0|3|4) ;; *) exit $$s ;; esac

test:
	@scripts/need.sh test
	@$(MAKE) --no-print-directory tests
	@scripts/run-tests.sh $(BUILD)

# ---- tests: one program per tests/*/*_test.c, linked with what it uses; one per fuzz target that replays its corpus
TEST_BINS = $(patsubst %.c,$(BUILD)/%,$(TESTS))
REPLAY_BINS = $(patsubst %.c,$(BUILD)/%,$(FUZZ))
tests: all $(TEST_BINS) $(REPLAY_BINS)
	@printf '%s\n' $(TEST_BINS) >$(BUILD)/tests.list
	@printf '%s\n' $(REPLAY_BINS) >$(BUILD)/replays.list

$(BUILD)/tests/cli/%_test: $(BUILD)/tests/cli/%_test.o $(BUILD)/libcli.a $(BUILD)/libtui.a $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_MAIN) $(LIBS_TEST)

$(BUILD)/tests/%_test: $(BUILD)/tests/%_test.o $(BUILD)/libtui.a $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_MAIN) $(LIBS_WORKER) $(LIBS_TEST)

$(BUILD)/tests/fuzz/%_fuzz: $(BUILD)/tests/fuzz/%_fuzz.o $(BUILD)/tests/fuzz/replay.o $(BUILD)/libcore.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_MAIN) $(LIBS_WORKER)

e2e:
	@scripts/need.sh e2e
	@$(MAKE) --no-print-directory all
	@tests/e2e/run

proof: all
	@for p in tests/proof/*; do [ -x "$$p" ] || continue; echo "== $$p"; "$$p" || exit 1; done

bench: all
	@scripts/bench.sh

FUZZ_SECONDS ?= 20
fuzz:
	@scripts/need.sh fuzz
	@$(MAKE) --no-print-directory -s CC=clang BUILD=build/fuzz SAN=-fsanitize=fuzzer-no-link,address,undefined fuzz-programs
	@scripts/run-fuzz.sh build/fuzz $(FUZZ_SECONDS)

FUZZ_BINS = $(patsubst tests/fuzz/%.c,$(BUILD)/%,$(FUZZ))
fuzz-programs: $(FUZZ_BINS)
$(BUILD)/%_fuzz: $(BUILD)/tests/fuzz/%_fuzz.o $(BUILD)/libcore.a
	$(CC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS_MAIN) $(LIBS_WORKER)

# For a machine with many cores and without clang: unpack build/fuzz-bundle/bundle.tar.xz there, run go.sh. It traces no comparisons,
# which is three times as fast; the dictionary stands in for that.
fuzz-bundle:
	@scripts/need.sh fuzz
	@$(MAKE) --no-print-directory -s CC=clang BUILD=build/fuzz-bundle SAN=-fsanitize=fuzzer-no-link,address,undefined \
		CFLAGS="-O2 -g1 -fno-sanitize-coverage=trace-cmp" \
		LIBS_MAIN="-static-libsan -static-libstdc++ -static-libgcc -Wl,--as-needed,--disable-new-dtags,-rpath,'\$$\$$ORIGIN/lib' -lcjson -ldl -lm" \
		LIBS_WORKER= build/fuzz-bundle/diagnose_fuzz
	@scripts/fuzz-bundle.sh build/fuzz-bundle

# ---- checks of the shape
SOURCES = $(wildcard core/*.[ch] tui/*.[ch] cli/*.[ch] worker/*.[ch] tests/*/*.[ch])
HEADERS = $(wildcard core/*.h tui/*.h cli/*.h)
check:
	@scripts/need.sh check
	@$(MAKE) --no-print-directory -s check-layers check-headers check-names check-format check-shell check-powershell check-docs check-tidy
	@echo "check: everything in order"

check-layers check-names check-shell check-powershell:
	@scripts/$@.sh

check-headers: $(patsubst %,$(BUILD)/%.ok,$(HEADERS))
$(BUILD)/%.h.ok: %.h
	@mkdir -p $(@D)
	@printf '#include "%s"\nint compiled;\n' $< | \
		$(CC) $(CPPFLAGS) -iquote cli -iquote tui $(filter-out -MMD -MP,$(ALL_CFLAGS)) -Werror -fsyntax-only -x c -
	@touch $@

check-docs: all
	@scripts/docs.sh --check
docs: all
	@scripts/docs.sh

# fainstall beside its peers: these come from the package index. WRITE=1 writes docs/peers.md.
peers: all
	@tests/peers/table $(if $(WRITE),--write docs/peers.md)

# The tables that come from a folder of facts (tools/carry.py); CHECK=1 only compares.
DATA ?= ../shared/data
carry:
	@python3 tools/carry.py $(DATA) $(if $(CHECK),--check)

check-format:
	@clang-format --dry-run -Werror $(SOURCES)
format:
	clang-format -i $(SOURCES)

check-tidy: $(patsubst %.c,$(BUILD)/%.tidy,$(filter-out tests/%,$(filter %.c,$(SOURCES))))
$(BUILD)/%.tidy: %.c .clang-tidy
	@mkdir -p $(@D)
	@clang-tidy --quiet --warnings-as-errors='*' $< -- -std=c11 $(CPPFLAGS) 2>$@.log || { cat $@.log; exit 1; }
	@touch $@

# ---- the CUDA programs of verify: only where nvcc is
kernels:
	@scripts/kernels.sh build/kernels

# ---- install; a folder that runs on another Linux
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/libexec/fainstall $(DESTDIR)$(PREFIX)/share/fainstall \
		$(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/doc/fainstall
	install -m 755 fainstall $(DESTDIR)$(PREFIX)/bin/
	install -m 755 fainstall-worker $(DESTDIR)$(PREFIX)/libexec/fainstall/
	cp -R $(wildcard matrix recipes kernels) $(DESTDIR)$(PREFIX)/share/fainstall/
	install -m 644 docs/fainstall.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -m 644 README.md LICENSE CHANGELOG.md $(DESTDIR)$(PREFIX)/share/doc/fainstall/

portable:
	@$(MAKE) --no-print-directory PORTABLE=1 BUILD=build/portable-objects portable-programs
	@scripts/portable.sh build/portable-objects build/portable
portable-programs: $(BUILD)/fainstall $(if $(wildcard worker/main.c),$(BUILD)/fainstall-worker)

help:
	@echo "make run        install what is missing, build, start the wizard (without a terminal: print the plan)"
	@echo "make test       the same for the tests; SAN=-fsanitize=address,undefined with sanitizers"
	@echo "make e2e        the whole way with real components: venv, torch, compiler; no card needed"
	@echo "make check      layers, headers, format, clang-tidy, shellcheck, names"
	@echo "make docs       docs/tree.md, the tree and the tables of README.md, from the knowledge"
	@echo "make carry      the tables of matrix/ that come from a folder of facts, DATA=DIR; CHECK=1 only compares"
	@echo "make fuzz       every fuzz target for FUZZ_SECONDS (20) with clang"
	@echo "make fuzz-bundle  the target of diagnose as an archive for a machine with many cores"
	@echo "make proof      the proofs of tests/proof"
	@echo "make kernels    CUDA programs of verify, where nvcc is"
	@echo "make peers      the table of docs/peers.md: other tools on the same cases (they come from the package index)"
	@echo "make bench      times of the commands"
	@echo "make install    into DESTDIR and PREFIX (/usr/local)"
	@echo "make portable   build/portable: a folder that runs on another Linux without our libraries"

clean:
	rm -rf build fainstall fainstall-worker

.PHONY: all run test tests e2e proof bench fuzz fuzz-bundle fuzz-programs check check-layers check-names check-shell check-powershell check-headers \
	check-docs docs carry peers check-format format check-tidy kernels install portable portable-programs help clean FORCE

-include $(wildcard $(BUILD)/*/*.d $(BUILD)/*/*/*.d)
