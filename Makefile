# make run: set up and run the quickstart.  make test: set up and check everything.  make bench: against peers.
# make nightly: all tests with many examples for each property and a fresh seed, which is printed.
# make fuzz: 1,000 requests to every operation, 100,000 changed frames, 10 minutes of a guided fuzzer;
# shorter with make fuzz EXAMPLES=50 FRAMES=10000 SECONDS=30.
# make mutants: break the code on purpose, one change at a time, and show what finds each change;
# make mutants MUTANTS='--only clicks-raw' runs one, MUTANTS=--services those of devices over the services.
PYTHON ?= python3
VENV ?= .venv
PEERS ?= .venv-peers
BIN = $(VENV)/bin
PIP_FLAGS = --quiet --disable-pip-version-check
# One more than the two cores of a small machine: many tests wait for processes that they started.
WORKERS ?= 3
EXAMPLES ?= 1000
FRAMES ?= 100000
SECONDS ?= 600
MUTANTS ?=

.PHONY: run test nightly bench fuzz mutants clean

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

# The stamp is made last: an interrupted installation starts over.
$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e '.[dev]'
	touch $@

$(VENV)/fuzzer: $(VENV)/installed
	$(BIN)/pip install $(PIP_FLAGS) -c constraints.txt -e '.[dev,fuzz]'
	touch $@

# Peers get an environment of their own: their pins and ours do not resolve together.
$(PEERS)/installed: bench/peers.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/pip install $(PIP_FLAGS) -r bench/peers.txt
	touch $@

clean:
	rm -rf $(VENV) $(PEERS) build runs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
