# Every target makes its own .venv first; the second time that costs nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready-user
DEV := $(VENV)/.ready-dev

# Threads that spin while they wait slow each other many times where cores are shared. `import attar` sets this too, but
# tests import torch first.
export OMP_WAIT_POLICY ?= passive
# Tests start many processes, each of which would compile the library again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test slow interop lint docs site bench fuzz faults kills soak lock clean help

help: ## what there is
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/'

demo: $(READY) ## the main job on the embedded digits; ends with the path of an HTML report
	$(BIN)/attar demo

test: $(DEV) ## every test but the slow ones
	$(BIN)/python -m pytest -n 2 --dist worksteal

slow: $(DEV) ## the slow tests
	$(BIN)/python -m pytest -m slow

interop: $(DEV) ## the examples for NumPyro, PyMC, Lightning and posteriors, with the extra that they need
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,interop]'
	$(BIN)/python -m pytest tests/test_examples.py -k 'lightning or weights_as_factors or posteriors'

lint: $(DEV) ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(DEV) ## the tables that docs/ takes from the code
	$(BIN)/python docs/make.py

site: $(DEV) ## the documentation as a site in build/site; warnings and broken links are errors
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=docs $(BIN)/python -m mkdocs build --quiet --strict
	$(BIN)/python docs/site_check.py build/site

bench: $(DEV) ## every committed figure again
	$(BIN)/python -m benchmarks

MINUTES ?= 10
fuzz: $(DEV) ## mutated files of every format, for MINUTES=10
	$(BIN)/python -m tests.fuzz --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

faults: $(DEV) ## every fault at every operation on files, over reduce, experts, compare, infer, downloads
	$(BIN)/python -m tests.faults

N ?= 1000
kills: $(DEV) ## signals at random moments of all commands, N=1000 of them
	$(BIN)/python -m tests.faults.kills --kills $(N) $(if $(SEED),--seed $(SEED))

HOURS ?= 1
soak: $(DEV) ## the same work again and again, for HOURS=1: memory, files and threads stay
	$(BIN)/python -m tests.faults.soak --hours $(HOURS)

# Files are compared with their hashes where the lock is for this platform and the index offers the same files; PyTorch,
# whose builds have many files, and packages that the lock lacks have the versions of constraints.txt alone.
# HASHES=require makes any difference an error.
define hashed
test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
@if [ "$$(head -n 1 $(1))" != "# for $$($(BIN)/python lock.py --platform)" ]; then \
	echo "$(1) is for another platform: versions of constraints.txt are installed without hashes."; \
	test "$(HASHES)" != require; \
elif ! $(BIN)/python -m pip install --quiet --no-deps --require-hashes --requirement $(1); then \
	echo "The index does not offer the files of $(1): versions of constraints.txt are installed without hashes."; \
	test "$(HASHES)" != require; \
fi
endef

lock: ## the hashes of all packages again, after a change of constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python lock.py

$(READY): pyproject.toml constraints.txt requirements.lock
	$(call hashed,requirements.lock)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	touch $@

$(DEV): pyproject.toml constraints.txt requirements-dev.lock
	$(call hashed,requirements-dev.lock)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@ $(READY)

clean: ## remove what the targets made
	rm -rf $(VENV) demo build dist
