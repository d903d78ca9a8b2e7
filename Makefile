# Thin: Meson and Ninja build (docs/adr/0002-meson-behind-make.md), scripts in
# tools/ do the rest. `make help` lists the targets.

BUILD     ?= build
JOBS      ?=
SECONDS   ?= 60
PREFIX    ?= /usr/local
NINJA      = ninja $(if $(JOBS),-j$(JOBS)) -C
# Continuous integration is stricter: any warning ends the build.
STRICT     = $(if $(CI),-Dwerror=true)
MESON_ARGS ?=

.DEFAULT_GOAL := all
.PHONY: all serve check test soak adversary lint fmt asan tsan fuzz bench bench-peers cover install clean hooks \
        setup help

all: ## build the program: build/shellyard
	@tools/setup.sh --list build
	@tools/setup.sh build # has all packages; puts the script parser's sources in place
	@tools/build.sh $(BUILD) --prefix=$(PREFIX) $(STRICT) $(MESON_ARGS)
	@$(NINJA) $(BUILD)

serve: ## install what is missing, build, start the daemon, show a first sandboxed command over MCP
	@tools/setup.sh build front node
	@$(MAKE) --no-print-directory all
	@tools/node.sh tools/serve.mjs $(abspath $(BUILD))/shellyard

check: ## install what is missing, build, run all tests
	@tools/setup.sh build front node check
	@$(MAKE) --no-print-directory all
	@tools/run_tests.py --build $(BUILD)

test: ## run some tests: make test T=WORD (part of a test's name)
	@$(MAKE) --no-print-directory all
	@tools/run_tests.py --build $(BUILD) --only "$(T)"

soak: ## long runs of sessions, some ten minutes; SOAK_RUNS and SOAK_SESSIONS say how many
	@tools/setup.sh build front node
	@$(MAKE) --no-print-directory all
	@SHELLYARD=$(abspath $(BUILD))/shellyard tools/node.sh --test $(abspath tests/soak)/sessions.soak.mjs

adversary: ## hostile acts against the sandbox, as a table: act x tier x user
	@tools/setup.sh build front check
	@$(MAKE) --no-print-directory all
	@rm -rf -- $(BUILD)/adversary
	@meson test -C $(BUILD) --no-rebuild --suite adversary --num-processes 2
	@tests/adversary/table.py $(BUILD)/adversary

lint: ## format, clang-tidy, includes, docs in step, ... (L=NAME for one check)
	@tools/setup.sh build check
	@$(MAKE) --no-print-directory all
	@tools/lint.py --build $(BUILD) $(L)

fmt: ## format all C files in place
	@tools/lint.py --fix format

asan: ## all C tests and the integration tests under AddressSanitizer and UBSan
	@tools/setup.sh build node check
	@tools/build.sh $(BUILD)-asan -Db_sanitize=address,undefined -Db_lundef=false $(STRICT) $(MESON_ARGS)
	@$(NINJA) $(BUILD)-asan
	@tools/run_tests.py --build $(BUILD)-asan --sanitizer asan

tsan: ## all C tests under ThreadSanitizer
	@tools/setup.sh build check
	@tools/build.sh $(BUILD)-tsan -Db_sanitize=thread -Db_lundef=false $(STRICT) $(MESON_ARGS)
	@$(NINJA) $(BUILD)-tsan
	@tools/run_tests.py --build $(BUILD)-tsan --sanitizer tsan

fuzz: ## fuzz one target: make fuzz F=NAME SECONDS=60 (no F: lists them)
	@tools/setup.sh build fuzz
	@tools/fuzz.sh $(BUILD)-fuzz "$(F)" $(SECONDS)

bench: ## measure, print medians and ratios to a bare spawn
	@tools/setup.sh build front node
	@$(MAKE) --no-print-directory all
	@bench/bench.py --build $(BUILD) $(BENCH_ARGS)

bench-peers: ## install the programs that `make bench` compares with, outside the tree
	@bench/peers.sh

cover: ## line coverage of the tests, as text and HTML
	@tools/setup.sh build node check cover
	@tools/build.sh $(BUILD)-cover -Db_coverage=true -Doptimization=0 $(MESON_ARGS)
	@$(NINJA) $(BUILD)-cover
	@tools/run_tests.py --build $(BUILD)-cover
	@gcovr --root . --object-directory $(BUILD)-cover --filter 'src/' --print-summary \
	    --html-details $(BUILD)-cover/coverage.html
	@echo "pages: $(BUILD)-cover/coverage.html"

install: all ## install below PREFIX (default /usr/local), honours DESTDIR
	@meson install -C $(BUILD) --no-rebuild

clean: ## remove every build directory
	@rm -rf -- $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(BUILD)-cover

hooks: ## run the quick part of lint before each commit
	@ln -sf ../../tools/pre-commit "$$(git rev-parse --git-path hooks)/pre-commit"
	@echo "commits are now checked by tools/pre-commit"

setup: ## only install what serve and check need
	@tools/setup.sh build front node check

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1 \2/p' $(MAKEFILE_LIST) | \
	    while read -r name text; do printf '  %-12s %s\n' "$$name" "$$text"; done
