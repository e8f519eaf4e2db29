# make run: set up and run the quickstart.  make test: set up and check everything.  make bench: against peers.
# make nightly: all tests with many examples for each property and a fresh seed, which is printed.
# make fuzz: 1,000 requests to every operation, 100,000 changed frames, 10 minutes of a guided fuzzer;
# shorter with make fuzz EXAMPLES=50 FRAMES=10000 SECONDS=30.
# make mutants: break the code on purpose, one change at a time, and show what finds each change;
# make mutants MUTANTS='--only clicks-raw' runs one, MUTANTS=--services those of devices over the services.
# make lock: write the locks (locks/*.txt: versions and hashes) anew from pyproject.toml and constraints.txt.
# make supply: check that the locks are those of the index, install what ships by its hashes into .venv-shipped,
# and list it in build/sbom.json (CycloneDX). Without torch: make supply SHIPPED='-r locks/shipped.txt'.
PYTHON ?= python3
VENV ?= .venv
PEERS ?= .venv-peers
SUPPLY ?= .venv-supply
BIN = $(VENV)/bin
PIP_FLAGS = --quiet --disable-pip-version-check
# One more than the two cores of a small machine: many tests wait for processes that they started.
WORKERS ?= 3
EXAMPLES ?= 1000
FRAMES ?= 100000
SECONDS ?= 600
MUTANTS ?=
SHIPPED ?= -r locks/shipped.txt -r locks/torch.txt
LOCKS = locks
# Files that were uploaded later are left out: a new wheel of an old version does not change a lock.
LOCK_DATE = 2026-11-18
LOCK = $(SUPPLY)/bin/uv pip compile --quiet --python-version 3.11 --exclude-newer $(LOCK_DATE) --generate-hashes \
	--no-emit-package torch --custom-compile-command 'make lock' -c constraints.txt
HASHED = install $(PIP_FLAGS) --require-hashes --only-binary :all:

.PHONY: run test nightly bench fuzz mutants lock supply clean

run: $(VENV)/installed
	$(BIN)/noisefloor run quickstart --force

test: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n $(WORKERS) --dist loadfile

nightly: $(VENV)/installed
	NOISEFLOOR_PROFILE=nightly $(BIN)/pytest -n $(WORKERS) --dist loadfile

bench: $(VENV)/installed $(PEERS)/installed
	$(BIN)/python bench/run.py --peers $(PEERS)/bin/python

fuzz: $(VENV)/fuzzer
	NOISEFLOOR_PROFILE=nightly $(BIN)/pytest tests/services/http/test_interfaces.py --examples=$(EXAMPLES)
	$(BIN)/python tests/fuzz_frames.py --frames=$(FRAMES) --seconds=$(SECONDS)

mutants: $(VENV)/installed
	PYTHONPATH=tests $(BIN)/python -m mutants.run $(MUTANTS)

lock: $(SUPPLY)/installed
	$(LOCK) locks/build.in -o $(LOCKS)/build.txt
	$(LOCK) locks/supply.in -o $(LOCKS)/supply.txt
	$(LOCK) pyproject.toml --extra services -o $(LOCKS)/services.txt
	$(LOCK) pyproject.toml --extra services --extra collection --extra models \
		--extra text-models --extra text --extra text-lm -o $(LOCKS)/shipped.txt
	$(LOCK) pyproject.toml --extra dev -o $(LOCKS)/dev.txt

supply: $(SUPPLY)/installed
	rm -rf build/locks .venv-shipped
	mkdir -p build/locks
	cp locks/*.in locks/torch.txt build/locks
	$(MAKE) --no-print-directory lock LOCKS=build/locks
	diff -r locks build/locks
	$(PYTHON) -m venv --without-pip .venv-shipped
	$(SUPPLY)/bin/pip --python .venv-shipped/bin/python $(HASHED) $(SHIPPED)
	$(SUPPLY)/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --validate \
		--output-format JSON --output-file build/sbom.json .venv-shipped/bin/python
	@echo 'The locks are current, and what they name was installed by its hashes: build/sbom.json.'
	@echo 'Known vulnerabilities are not looked up here, as that needs an outside service: see SECURITY.md.'

# The stamp is made last: an interrupted installation starts over.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/fuzzer: $(VENV)/installed
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e '.[dev,fuzz]'
	touch $@

$(SUPPLY)/installed: locks/supply.txt
	$(PYTHON) -m venv $(SUPPLY)
	$(SUPPLY)/bin/pip $(HASHED) -r locks/supply.txt
	touch $@

# Peers get an environment of their own: their pins and ours do not resolve together.
$(PEERS)/installed: bench/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install $(PIP_FLAGS) -r bench/peers.txt
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) $(SUPPLY) .venv-shipped build runs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
