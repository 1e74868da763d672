# fainstall. The two commands: `make run` (install what is missing, build, start) and `make test`.
# DEV=1 turns warnings into errors; SAN=address,undefined (or -fsanitize=...) builds with sanitizers; CC=clang works too.

ifeq ($(origin CC),default)
CC = gcc
endif
PREFIX ?= /usr/local
BUILD ?= build/$(notdir $(lastword $(CC)))$(if $(SAN),-san)$(if $(DEV),-dev)
PKG_CONFIG ?= pkg-config

WARN = -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla -Wundef -Wformat=2
CFLAGS ?= -O2 -g
CPPFLAGS += -D_GNU_SOURCE -iquote core -I. $(shell $(PKG_CONFIG) --cflags ncursesw libcjson libcurl libgit2 libarchive 2>/dev/null)
ALL_CFLAGS = -std=c11 $(WARN) $(CFLAGS) -fno-strict-aliasing -MMD -MP
ifdef DEV
ALL_CFLAGS += -Werror
endif
ifdef SAN
SANFLAGS = $(if $(filter -fsanitize%,$(SAN)),$(SAN),-fsanitize=$(SAN)) -fno-omit-frame-pointer -fno-sanitize-recover=undefined
ALL_CFLAGS += $(SANFLAGS)
LDFLAGS += $(SANFLAGS)
endif

# Each program is linked from one archive: it takes the objects that it uses, so fainstall pulls in no curl, git or archive.
LIBS_MAIN = $(shell $(PKG_CONFIG) --libs ncursesw libcjson 2>/dev/null || echo -lncursesw -lcjson) -ldl
LIBS_WORKER = $(shell $(PKG_CONFIG) --libs libcjson libcurl libgit2 libarchive 2>/dev/null) -ldl
LIBS_TEST = -lcmocka -lvterm -lutil

CORE = $(wildcard core/*.c)
TUI = $(wildcard tui/*.c)
CLI = $(wildcard cli/*.c)
TESTS = $(wildcard tests/core/*_test.c tests/tui/*_test.c tests/cli/*_test.c)
obj = $(patsubst %.c,$(BUILD)/%.o,$(1))

# A program is built once its main() is there.
all: $(BUILD)/libcore.a $(if $(wildcard cli/main.c),fainstall) $(if $(wildcard worker/main.c),fainstall-worker)
.PHONY: all
.DEFAULT_GOAL := all

$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -c $< -o $@

$(BUILD)/libcore.a: $(call obj,$(CORE))
	@rm -f $@
	$(AR) rcs $@ $^

$(BUILD)/libtui.a: $(call obj,$(TUI))
	@mkdir -p $(@D) && rm -f $@
	$(if $^,$(AR) rcs $@ $^,printf '!<arch>\n' >$@)

$(BUILD)/fainstall: $(call obj,$(CLI)) $(BUILD)/libtui.a $(BUILD)/libcore.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_MAIN)

$(BUILD)/fainstall-worker: $(call obj,worker/main.c) $(BUILD)/libcore.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_WORKER)

fainstall fainstall-worker: %: $(BUILD)/%
	@cp -f $< $@.tmp && mv -f $@.tmp $@

# ---- tests: one program per tests/*/*_test.c, linked with what it uses
TEST_BINS = $(patsubst %.c,$(BUILD)/%,$(TESTS))
$(BUILD)/tests/%_test: $(BUILD)/tests/%_test.o $(BUILD)/libtui.a $(BUILD)/libcore.a
	$(CC) $(LDFLAGS) -o $@ $^ $(LIBS_MAIN) $(LIBS_WORKER) $(LIBS_TEST)

-include $(wildcard $(BUILD)/*/*.d $(BUILD)/*/*/*.d)

clean:
	rm -rf build fainstall fainstall-worker
.PHONY: clean
