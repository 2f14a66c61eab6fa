# `make demo` and `make test` set everything up themselves: Python 3.11+, g++ and make are enough.
#
#   make demo       evolve a kernel on this machine's CPU, then show where it came from
#   make test       the test suite
#   make test-slow  those that take long: whole suites of tasks and modules, real runs
#   make test-gpu   the tests that need a CUDA device, with PYTHON=... as it is; installs nothing
#   make check      lint, format, types, import layers
#   make clean      remove the virtual environment and what the tools left; populations/ stays

SHELL := /bin/sh
PYTHON ?=
VENV := .venv
READY := $(VENV)/.ready
RUN := $(VENV)/bin/python -m
DEMO ?= quickstart
PICTURES := populations/$(DEMO)
JOBS ?= 3
TESTS ?= tests

.PHONY: demo test test-slow test-gpu check setup clean
.DELETE_ON_ERROR:

# `run` ends with 1 where no kernel was certified: show what there is, and end with that again.
demo: $(READY)
	@$(RUN) evo run configs/quickstart.yaml --set name=$(DEMO) >/dev/null || test $$? -eq 1
	@$(RUN) evo trajectory $(DEMO)
	@echo
	@$(RUN) evo lineage $(DEMO) -o $(PICTURES)/lineage.html
	@$(RUN) evo lineage $(DEMO) -o $(PICTURES)/lineage.svg
	@echo
	@$(RUN) evo run $(DEMO)
	@echo "another one from scratch: make demo DEMO=another-name"

test: $(READY)
	$(RUN) pytest -n $(JOBS) -m "not slow" $(TESTS)

test-slow: $(READY)
	$(RUN) pytest -n $(JOBS) -m "slow and not gpu" $(TESTS)

test-gpu:
	"$(or $(PYTHON),python3)" tests/gpu/machine.py
	KERNELEVO_TEST_AS_IS=1 "$(or $(PYTHON),python3)" -m pytest -m gpu -ra -p no:cacheprovider $(TESTS)

check: $(READY)
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(VENV)/bin/lint-imports --no-logo

setup: $(READY)

# PYTHON, where given, is the interpreter to build the virtual environment with.
$(READY): pyproject.toml constraints.txt
	@for python in $(if $(PYTHON),"$(PYTHON)",python3 python3.13 python3.12 python3.11); do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    echo "setting up $(VENV) with $$("$$python" --version); the first time takes a minute or more"; \
	    test -x "$(VENV)/bin/python" || "$$python" -m venv "$(VENV)" && exit 0; \
	    echo "that Python cannot make virtual environments; on Debian: apt install python3-venv" >&2; \
	    rm -rf "$(VENV)"; exit 1; \
	done; \
	echo "Python 3.11 or newer is needed and was not found; name it: make PYTHON=/path/to/python3" >&2; \
	exit 1
	@PIP_DISABLE_PIP_VERSION_CHECK=1 $(RUN) pip install -q -c constraints.txt -e ".[dev]"
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || \
	    echo "note: no C++ compiler here, so no CPU kernels: install g++" >&2
	@touch "$@"

clean:
	rm -rf "$(VENV)" build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
