# Every target sets up what it needs: Python 3.11 or later, make and a C library are enough.

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	if $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then echo $$p; break; fi; done)
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
READY := $(VENV)/ready
DOCS := $(VENV)/docs
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: all docs demo bench bench-compare peers learn test test-all test-slow lint fuzz fuzz-inputs mutants completeness conformance clean
all: test

# pdojo alone. An interrupted installation leaves no stamp behind.
$(INSTALLED): pyproject.toml setup.py constraints.txt
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or later found; set PYTHON=/path/to/python3" >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile --editable .
	touch $@

# With all that tests and checks need.
$(READY): $(INSTALLED)
	$(PIP) --editable '.[dev]'
	touch $@

# With all that the site needs.
$(DOCS): $(INSTALLED)
	$(PIP) --editable '.[docs]'
	touch $@

# The documentation as a site, from build/site/index.html on; a link that leads nowhere is an error.
docs: $(DOCS)
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c docs/site -d build/doctrees . build/site

# PyTorch, ONNX Runtime and JAX, for the demo and the benchmark to compare with, and matplotlib for plots.
peers: $(INSTALLED)
	$(PIP) --editable '.[torch,onnx,jax,bench]'

# PyTorch and transformers, for the agent of PerfLLM.
learn: $(INSTALLED)
	$(PIP) --editable '.[learn]'

# Compared with PyTorch and ONNX Runtime where they are installed; DEMO='--threads 1' for other runs.
demo: $(INSTALLED)
	$(BIN)/python -m benchmarks.demo $(DEMO)

# The paper's Table 3 beside the libraries that are installed; stores the results of this processor, and writes the
# figures of README.md. BENCH='softmax:100x1000 conv --threads 1,2' measures others and stores nothing.
bench: $(INSTALLED)
	$(BIN)/python -m benchmarks.bench $(BENCH)
	$(if $(BENCH),,$(BIN)/python -m benchmarks.compare --keep && $(BIN)/python -m benchmarks.page)

# What changed since the stored results of this processor: the newest results of `make bench`, or
# COMPARE='new.json', COMPARE='new.json old.json', COMPARE='new.json --keep'.
bench-compare: $(INSTALLED)
	$(BIN)/python -m benchmarks.compare $(COMPARE)

# The quick tests, on all processors; TESTS='test/unit/transforms/test_moves.py -k fuse' for others.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal
test: $(READY)
	$(PYTEST) --quick $(TESTS)

# Everything that needs no special hardware.
test-all: $(READY)
	$(PYTEST) $(TESTS)

# With the whole grids and full sizes of which the others take samples.
test-slow: $(READY)
	$(PYTEST) --slow $(TESTS)

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/basedpyright --pythonpath $(BIN)/python
	PATH="$(abspath $(BIN)):$$PATH" lint-imports
	$(BIN)/python -m qa.budget

# Random legal moves, judged by three oracles; MINUTES=240, FUZZ='--random --seed 7' or FUZZ='--traces 10000' for other
# runs. Every failure is appended to FAILURES as it happens.
MINUTES ?= 5
FAILURES ?= fuzz-failures.txt
fuzz: $(READY)
	$(BIN)/python -m qa.fuzz --minutes $(MINUTES) --failures $(FAILURES) $(FUZZ)

# Texts that are nearly right, for everything that reads texts; FUZZ='--inputs 1000 --seed 7' for other runs.
fuzz-inputs: $(READY)
	$(BIN)/python -m qa.fuzz_inputs $(FUZZ)

# Small random changes of the code, each of which the tests must notice; MUTANTS='--within pdojo/dialect/rules --number 20'
# for other runs.
mutants: $(READY)
	$(PIP) --editable '.[mutants]'
	$(BIN)/python -m qa.mutants $(MUTANTS)

# Refused moves made all the same: which refusals are too careful? COMPLETENESS='--states 1000 --seed 7' for other runs.
completeness: $(READY)
	$(BIN)/python -m qa.completeness $(COMPLETENESS)

# ONNX's own backend tests; CONFORMANCE='--compiled --only softmax' for other runs.
conformance: $(READY)
	$(BIN)/python -W ignore -m qa.conformance $(CONFORMANCE)

clean:
	rm -rf $(VENV) build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
