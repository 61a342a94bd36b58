# SPDX-License-Identifier: GPL-2.0-or-later
#
# make [all]       build/braid                      OUTPUT=DIR  build elsewhere
# make demo        set up, build, profile, draw      V=1         show the commands
# make check       set up, build, test: minutes      DEBUG=1     -O0
# make check-quick unit and replay tests, no root    SAN=address,undefined
# make check-live  the live gate only, as root       CC=clang works too
# make check-long  other releases, statistics: hours, as root
# make install uninstall deb     DESTDIR=DIR PREFIX=/usr/local
# make fuzz lint clean           The tests: docs/internals/testing.md

OUTPUT ?= build
CC     ?= gcc
CLANG  ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PREFIX ?= /usr/local
DESTDIR ?=

ifeq ($(V),1)
Q   =
msg =
else
Q   = @
msg = @printf '  %-8s %s\n' "$(1)" "$(2)";
endif

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

ARCH_INCLUDE := $(shell $(CC) -print-multiarch 2>/dev/null)
WARN     = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes
OPT      = $(if $(DEBUG),-O0 -DDEBUG,-O2)
SANFLAGS = $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer)
CPPFLAGS += -D_GNU_SOURCE -I. -I$(OUTPUT)
CFLAGS   ?= -g
ALL_CFLAGS = -std=gnu11 $(WARN) $(OPT) $(SANFLAGS) $(CFLAGS) $(if $(WERROR),-Werror)
LIBS     = -lbpf -ldw -lelf -lunwind-x86_64 -lunwind -lsqlite3 -liberty -lcapstone -lz -llzma -lzstd -lncursesw -ltinfo -lm
BPF_CFLAGS = -g -O2 -mcpu=v3 --target=bpf -D__TARGET_ARCH_x86 -Wall -I. \
	$(if $(ARCH_INCLUDE),-I/usr/include/$(ARCH_INCLUDE))

# The kernel half on the host (below) is written for a compiler that does not reason by types and the
# sizes of objects.
HOST_CFLAGS = -fno-strict-aliasing -Wno-array-bounds -fno-sanitize=object-size
HOST_LIKE = $(HOST_SRC) $(wildcard tests/unit/t_unwind_jvm*.c) # these include what writes records

# What the flags were: a change of them rebuilds everything.
FLAGS_STAMP := $(OUTPUT)/.flags
$(shell mkdir -p $(OUTPUT) && \
	echo '$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(BPF_CFLAGS)' | cmp -s - $(FLAGS_STAMP) || \
	echo '$(CC) $(CPPFLAGS) $(ALL_CFLAGS) $(BPF_CFLAGS)' > $(FLAGS_STAMP))

BPF_SRC  := $(sort $(wildcard bpf/*.bpf.c))
BPF_OBJ  := $(BPF_SRC:%.c=$(OUTPUT)/%.o)
SKEL     := $(OUTPUT)/bpf/braid.skel.h
SYSCALLS := $(OUTPUT)/core/base/syscalls.inc
LIB_SRC  := $(sort $(filter-out core/cli/main.c,$(wildcard core/*/*.c probes/*.c runtimes/*.c runtimes/*/*.c bench/*.c)))
HOST_SRC := $(sort $(wildcard bpf/host/*.c))
LIB_OBJ  := $(LIB_SRC:%.c=$(OUTPUT)/%.o) $(HOST_SRC:%.c=$(OUTPUT)/%.o)
ASSETS   := $(sort $(wildcard core/*/assets/* bench/assets/*))
ASSET_OBJ := $(ASSETS:%=$(OUTPUT)/%.o)
TEST_SRC := $(sort $(wildcard $(foreach room,unit replay long,tests/$(room)/t_*.c)))
TEST_BIN := $(TEST_SRC:%.c=$(OUTPUT)/%)
TOOL_SRC := $(sort $(wildcard tests/tools/*.c))
TOOL_BIN := $(TOOL_SRC:%.c=$(OUTPUT)/%)
FIXTURE_SRC := $(sort $(wildcard fixtures/native/*.c))
FIXTURE_CXX := $(sort $(wildcard fixtures/native/*.cc))
FIXTURE_GO  := $(if $(shell command -v go),$(sort $(wildcard fixtures/go/*)))
FIXTURE_BIN := $(FIXTURE_SRC:%.c=$(OUTPUT)/%) $(FIXTURE_CXX:%.cc=$(OUTPUT)/%) \
	$(FIXTURE_GO:%=$(OUTPUT)/%)

# The two programs of the replay corpus have the kernel half built for the host instead of the
# kernel's, and see what is read of images. Extracts of these have neither all frame descriptions nor
# the code that these leave out.
REPLAY_MAIN := replay record note stops
REPLAY_OBJ := $(patsubst %.c,$(OUTPUT)/%.o,$(filter-out $(REPLAY_MAIN:%=tests/replay/%.c) \
	tests/replay/t_%.c,$(wildcard tests/replay/*.c)))
REPLAY_BIN := $(OUTPUT)/tests/replay/replay $(OUTPUT)/tests/replay/record
CODE_WRAP   := -Wl,--wrap=insn_ranges__find -Wl,--wrap=insn_padding__has_code
REPLAY_WRAP := -Wl,--wrap=elf_file__read $(CODE_WRAP)
REPLAY_LD  = $(CC) $(ALL_CFLAGS) $(LDFLAGS) $(REPLAY_WRAP)

VERIFIED := $(OUTPUT)/.verified
SHARED   := share/braid/braid_hook.rb
HEAP     := lib/braid/libbraid-heap.so
HEAP_SRC := $(sort $(wildcard probes/heap/*.c))

.PHONY: all setup tests fixtures demo check check-quick check-live check-long corpus fuzz fuzz-build \
	fuzz-quick sanitized sanitized-quick lint install uninstall deb clean
all: $(OUTPUT)/braid $(OUTPUT)/$(SHARED) $(OUTPUT)/$(HEAP) $(VERIFIED)

setup:
	$(Q)scripts/setup

tests: $(TEST_BIN) $(TOOL_BIN) $(REPLAY_BIN) fixtures
fixtures: $(FIXTURE_BIN)

# --- kernel half: one object, linked from all bpf/*.bpf.c ---
$(OUTPUT)/%.bpf.o: %.bpf.c $(FLAGS_STAMP)
	$(call msg,BPF,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(BPF_CFLAGS) -MMD -MP -c $< -o $@

$(OUTPUT)/bpf/braid.linked.o: $(BPF_OBJ)
	$(call msg,BPFLINK,$@)
	$(Q)$(BPFTOOL) gen object $@ $^

$(SKEL): $(OUTPUT)/bpf/braid.linked.o
	$(call msg,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name braid_bpf > $@

# Names of system calls, from the kernel's headers.
$(SYSCALLS): $(FLAGS_STAMP)
	$(call msg,GEN,$@)
	$(Q)mkdir -p $(@D)
	$(Q)echo '#include <asm/unistd.h>' | $(CC) -E -dM - | \
		sed -n 's/^#define __NR_\([a-z][a-z0-9_]*\) \([0-9][0-9]*\)$$/[\2] = "\1",/p' | sort -u > $@
	$(Q)grep -q '"read"' $@

$(OUTPUT)/core/base/syscalls.o $(OUTPUT)/fuzz/core/base/syscalls.o: | $(SYSCALLS)

$(VERIFIED): $(OUTPUT)/tests/tools/verifier_cost $(SKEL)
	$(Q)$<
	$(Q)touch $@

# --- user half ---
$(LIB_OBJ) $(OUTPUT)/core/cli/main.o $(TOOL_SRC:%.c=$(OUTPUT)/%.o) $(TEST_SRC:%.c=$(OUTPUT)/%.o): | $(SKEL)
$(OUTPUT)/%.o: %.c $(FLAGS_STAMP)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(HOST_LIKE:%.c=$(OUTPUT)/%.o): ALL_CFLAGS += $(HOST_CFLAGS)

# Text files that go into the program as they are: symbols asset_NAME_start and asset_NAME_end.
$(ASSET_OBJ): $(OUTPUT)/%.o: % $(FLAGS_STAMP)
	$(call msg,ASSET,$@)
	$(Q)mkdir -p $(@D)
	$(Q)n=$$(echo '$(notdir $<)' | tr -c 'A-Za-z0-9\n' _); \
	printf '.section .rodata\n.global asset_%s_start\n.global asset_%s_end\nasset_%s_start:\n.incbin "$<"\nasset_%s_end:\n.byte 0\n.section .note.GNU-stack,"",@progbits\n' $$n $$n $$n $$n | \
	$(CC) -x assembler -c - -o $@

$(OUTPUT)/libbraid.a: $(LIB_OBJ) $(ASSET_OBJ)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(OUTPUT)/braid: $(OUTPUT)/core/cli/main.o $(OUTPUT)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@

# Where the program looks for it: beside itself, or installed.
$(OUTPUT)/$(SHARED): runtimes/ruby/$(notdir $(SHARED))
	$(Q)install -Dm644 $< $@

# The library for LD_PRELOAD runs in any process: it has no sanitizer, and requires only libc. A jump across
# a boundary of 32 bytes is slow on some CPUs: a pair of malloc and free took 2.2 ns more.
$(OUTPUT)/$(HEAP): $(HEAP_SRC) $(wildcard probes/heap/*.h) bpf/alloc.h $(FLAGS_STAMP)
	$(call msg,LIB,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu11 $(WARN) -O2 $(CFLAGS) $(if $(WERROR),-Werror) -fPIC -shared \
		-fvisibility=hidden -fno-builtin -fno-reorder-blocks-and-partition -falign-functions=32 \
		-ftls-model=initial-exec $(LDFLAGS) -Wl,-z,nodelete,-z,now \
		$(HEAP_SRC) -o $@

$(OUTPUT)/tests/unit/t_heap: | $(OUTPUT)/$(HEAP)

$(TEST_BIN): $(OUTPUT)/%: $(OUTPUT)/%.o $(OUTPUT)/tests/tap.o $(OUTPUT)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -o $@

$(OUTPUT)/tests/replay/t_%: LDFLAGS += $(CODE_WRAP)
$(OUTPUT)/tests/replay/t_core: $(REPLAY_OBJ) $(OUTPUT)/tests/replay/stops.o
$(OUTPUT)/tests/replay/t_routing: $(REPLAY_OBJ)

$(OUTPUT)/tests/replay/t_records: $(REPLAY_OBJ)

$(OUTPUT)/tests/replay/replay: $(OUTPUT)/tests/replay/replay.o $(REPLAY_OBJ) $(OUTPUT)/tests/tap.o $(OUTPUT)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(REPLAY_LD) $^ $(LIBS) -o $@

$(OUTPUT)/tests/replay/record: $(OUTPUT)/tests/replay/record.o $(OUTPUT)/tests/replay/note.o $(OUTPUT)/tests/replay/stops.o $(REPLAY_OBJ) $(OUTPUT)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(REPLAY_LD) -Wl,--wrap=elf_file__find_symbol $^ $(LIBS) -o $@

$(OUTPUT)/tests/tools/load_each: $(OUTPUT)/tests/tap.o
$(TOOL_BIN): $(OUTPUT)/%: $(OUTPUT)/%.o $(OUTPUT)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(LDFLAGS) $^ $(LIBS) -o $@

# A directory is a package. All that it needs is in Go's own library: nothing is fetched. What is C in
# there is for gcc, as the fixtures below.
.SECONDEXPANSION:
$(FIXTURE_GO:%=$(OUTPUT)/%): $(OUTPUT)/%: $$(wildcard %/*)
	$(call msg,FIXTURE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)cd $* && CC=gcc GO111MODULE=off go build -o $(abspath $@) .

# Fixtures are built as users build programs: no frame pointers, no sanitizer. A first line
# `/* build: FLAGS */` in the source adds flags.
$(FIXTURE_SRC:%.c=$(OUTPUT)/%): $(OUTPUT)/%: %.c
	$(call msg,FIXTURE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)gcc -std=gnu11 -O2 -g -fomit-frame-pointer $< -o $@ \
		$$(sed -n '1s,^/\* build: \(.*\) \*/$$,\1,p' $<)

$(FIXTURE_CXX:%.cc=$(OUTPUT)/%): $(OUTPUT)/%: %.cc
	$(call msg,FIXTURE,$@)
	$(Q)mkdir -p $(@D)
	$(Q)g++ -O2 -g -fomit-frame-pointer $< -o $@ \
		$$(sed -n '1s,^/\* build: \(.*\) \*/$$,\1,p' $<)

# --- tests ---
# Compiled and written ones of a room: $(call tests_in,ROOM).
tests_in = $(filter $(OUTPUT)/tests/$(1)/%,$(TEST_BIN)) $(sort $(wildcard tests/$(1)/*.t))
# What takes longest comes first, so that no processor is idle at the end.
slow  = %/python.t %/flame.t %/t_python_build %/t_ruby_build %/t_jvm_attach %/t_pprof %/t_python_lines
order = $(foreach test,$(slow),$(filter $(test),$(1))) $(filter-out $(slow),$(1))
QUICK_TESTS = $(call tests_in,unit) $(filter-out %/sanitized.t,$(call tests_in,replay))
LIVE_TESTS  = $(call tests_in,live)
JOBS ?= $(shell nproc)
IN_TESTS = LSAN_OPTIONS=suppressions=$(CURDIR)/tests/lsan.supp OUTPUT=$(abspath $(OUTPUT))
PROVE = $(IN_TESTS) prove --timer --exec ''

demo: setup
	$(Q)$(MAKE) --no-print-directory all fixtures
	$(Q)OUTPUT=$(abspath $(OUTPUT)) scripts/demo

# One run of prove, the last thing: its verdict is that of all tests. What failed tests say comes
# once more behind it, where a log is read first.
check: setup
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all tests
	$(Q)$(MAKE) --no-print-directory lint
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) fuzz-build sanitized-quick
	$(Q)$(IN_TESTS) scripts/prove --timer --exec '' -j$(JOBS) tests/replay/sanitized.t $(LIVE_TESTS) $(call order,$(QUICK_TESTS)) tests/fuzz/quick.t $(SAN_QUICK)

check-quick: all tests
	$(Q)$(PROVE) -j$(JOBS) $(call order,$(QUICK_TESTS))

check-live: all tests
	$(Q)$(PROVE) $(LIVE_TESTS)

check-long: setup
	$(Q)scripts/test-roots
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) all tests
	$(Q)$(MAKE) --no-print-directory -j$(JOBS) sanitized
	$(Q)$(IN_TESTS) scripts/check-long

# --- fuzzing: the library and the targets once more, by clang with sanitizers and coverage ---
FUZZ     := $(OUTPUT)/fuzz
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(FUZZ)/%,$(sort $(wildcard tests/fuzz/f_*.c)))
FUZZ_COMMON := $(patsubst %.c,$(FUZZ)/%.o,$(filter-out tests/fuzz/f_%,$(wildcard tests/fuzz/*.c)))
FUZZ_SAN = address,undefined
FUZZ_CFLAGS = -std=gnu11 $(WARN) -O1 -gline-tables-only -fno-omit-frame-pointer \
	-fno-sanitize-recover=all $(if $(WERROR),-Werror)
FUZZ_SECONDS ?= 30
FUZZ_STAMP := $(FUZZ)/.flags
$(shell mkdir -p $(FUZZ) && \
	echo '$(CPPFLAGS) $(FUZZ_CFLAGS) $(FUZZ_SAN) $(HOST_CFLAGS)' | cmp -s - $(FUZZ_STAMP) || \
	echo '$(CPPFLAGS) $(FUZZ_CFLAGS) $(FUZZ_SAN) $(HOST_CFLAGS)' > $(FUZZ_STAMP))

$(FUZZ)/%.o: %.c $(FUZZ_STAMP) | $(SKEL)
	$(call msg,CC,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) $(FUZZ_CFLAGS) -fsanitize=$(FUZZ_SAN),fuzzer-no-link $(FUZZ_MORE) -MMD -MP -c $< -o $@

$(HOST_LIKE:%.c=$(FUZZ)/%.o): FUZZ_MORE = $(HOST_CFLAGS)

$(FUZZ)/libbraid.a: $(LIB_SRC:%.c=$(FUZZ)/%.o) $(HOST_SRC:%.c=$(FUZZ)/%.o) $(ASSET_OBJ)
	$(call msg,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(FUZZ_BIN): $(FUZZ)/%: $(FUZZ)/tests/fuzz/%.o $(FUZZ_COMMON) $(FUZZ)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(CLANG) $(FUZZ_CFLAGS) -fsanitize=$(FUZZ_SAN),fuzzer $(LDFLAGS) $^ $(LIBS) -o $@

fuzz-build: $(FUZZ_BIN)

# Unit tests, but for those that mostly run compilers, have no end with sanitizers, or have a core
# file made of themselves (with all the shadow memory), and the replay of the corpus, once more over
# that library.
SAN_NOT   = python_build ruby_build pprof python_lines ruby_walk jvm_vm memory target_view heap
SAN_UNIT  = $(filter-out $(foreach test,$(SAN_NOT),%/t_$(test)),$(filter $(OUTPUT)/tests/unit/%,$(TEST_BIN)))
SAN_BIN   = $(SAN_UNIT:$(OUTPUT)/%=$(FUZZ)/%)
# Those that take most of the time with sanitizers have check-long.
SAN_SLOW  = sent_stacks cached_unwind output shadow recording_survival load_damage recording jvm_attach jit_index \
	    python_qualname
SAN_QUICK = $(filter-out $(foreach test,$(SAN_SLOW),%/t_$(test)),$(SAN_BIN))

SAN_LD    = $(CLANG) $(FUZZ_CFLAGS) -fsanitize=$(FUZZ_SAN) $(LDFLAGS)

$(SAN_BIN): $(FUZZ)/%: $(FUZZ)/%.o $(FUZZ)/tests/tap.o $(FUZZ)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(SAN_LD) $^ $(LIBS) -o $@

$(FUZZ)/tests/replay/replay: $(FUZZ)/tests/replay/replay.o $(REPLAY_OBJ:$(OUTPUT)/%=$(FUZZ)/%) $(FUZZ)/tests/tap.o $(FUZZ)/libbraid.a
	$(call msg,LD,$@)
	$(Q)$(SAN_LD) $(REPLAY_WRAP) $^ $(LIBS) -o $@

sanitized: $(SAN_BIN) $(FUZZ)/tests/replay/replay
sanitized-quick: $(SAN_QUICK) $(FUZZ)/tests/replay/replay

# Keeps what it finds on the way in $(FUZZ)/corpus, to start from there the next time.
fuzz: fuzz-build
	$(Q)FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_CORPUS=$(FUZZ)/corpus scripts/fuzz $(FUZZ_BIN)

# Two seconds from the seeds alone.
fuzz-quick: fuzz-build
	$(Q)FUZZ_SECONDS=2 scripts/fuzz $(FUZZ_BIN)

# Records the replay corpus again, from the interpreters that are here: CORPUS=PATTERN for some.
corpus: all $(REPLAY_BIN) fixtures
	$(Q)$(IN_TESTS) scripts/corpus $(CORPUS)

lint:
	$(Q)scripts/lint

# --- man pages and completions, from the program's option tables ---
$(OUTPUT)/man/.stamp: $(OUTPUT)/braid scripts/man scripts/options docs/reference/man.in
	$(call msg,MAN,$(@D))
	$(Q)scripts/man $(OUTPUT)/braid docs/reference/man.in $(@D)
	$(Q)touch $@

SHELLS = bash zsh fish
$(SHELLS:%=$(OUTPUT)/completions/%): $(OUTPUT)/completions/%: $(OUTPUT)/braid scripts/completions scripts/options
	$(call msg,COMPL,$@)
	$(Q)mkdir -p $(@D)
	$(Q)scripts/completions $(OUTPUT)/braid $* > $@

MAN_DIR   = $(DESTDIR)$(PREFIX)/share/man/man1
UNIT_DIR  = $(DESTDIR)$(PREFIX)/lib/systemd/system
COMPL_DIR = $(DESTDIR)$(PREFIX)/share
ZSH_DIR   = $(COMPL_DIR)/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)
install: all $(OUTPUT)/man/.stamp $(SHELLS:%=$(OUTPUT)/completions/%)
	install -Dm755 $(OUTPUT)/braid $(DESTDIR)$(PREFIX)/bin/braid
	install -Dm644 $(OUTPUT)/$(SHARED) $(DESTDIR)$(PREFIX)/$(SHARED)
	install -Dm644 $(OUTPUT)/$(HEAP) $(DESTDIR)$(PREFIX)/$(HEAP)
	install -d $(MAN_DIR)
	install -m644 $(OUTPUT)/man/*.1 $(MAN_DIR)
	install -Dm644 $(OUTPUT)/completions/bash $(COMPL_DIR)/bash-completion/completions/braid
	install -Dm644 $(OUTPUT)/completions/zsh $(ZSH_DIR)/_braid
	install -Dm644 $(OUTPUT)/completions/fish $(COMPL_DIR)/fish/vendor_completions.d/braid.fish
	install -d $(UNIT_DIR)
	sed 's|@BINDIR@|$(PREFIX)/bin|' scripts/braid.service >$(UNIT_DIR)/braid.service
	chmod 644 $(UNIT_DIR)/braid.service

# What install has put there, with the pages of commands that there are no longer.
uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/braid $(DESTDIR)$(PREFIX)/$(SHARED) $(DESTDIR)$(PREFIX)/$(HEAP) $(MAN_DIR)/braid.1 $(MAN_DIR)/braid-*.1 \
		$(COMPL_DIR)/bash-completion/completions/braid $(ZSH_DIR)/_braid \
		$(COMPL_DIR)/fish/vendor_completions.d/braid.fish $(UNIT_DIR)/braid.service
	-rmdir $(DESTDIR)$(PREFIX)/share/braid $(DESTDIR)$(PREFIX)/lib/braid

# A Debian package: build/braid_VERSION_ARCH.deb.
deb:
	$(Q)$(MAKE) --no-print-directory all $(OUTPUT)/man/.stamp $(SHELLS:%=$(OUTPUT)/completions/%)
	$(Q)scripts/deb $(OUTPUT)

clean:
	rm -rf $(OUTPUT)

-include $(shell find $(OUTPUT) -name '*.d' 2>/dev/null)
