# Everything a newcomer needs: `make demo` and `make test` set up what they use.

PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/
STAMP := $(VENV)/.installed

.PHONY: help demo test lint format types bench-smoke system-deps clean

help:
	@echo "make demo         release the bundled table of weeks worked, with its proof, into demo/"
	@echo "make test         format, lint, types, and all tests"
	@echo "make lint         format and lint only"
	@echo "make bench-smoke  every benchmark, small"
	@echo "make system-deps  Debian packages that the tests need (none so far)"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)
	mkdir -p demo
	$(RUN)optrand randomize optrand/data/weeks_worked.csv.gz demo/weeks.csv --label weeks --labels 0:52 --epsilon 1 --force
	$(RUN)optrand verify demo/weeks.csv.mechanism.json --gap 1e-12
	$(RUN)optrand plot demo/weeks.csv.mechanism.json -o demo/weeks.png --force

test: lint types
	$(RUN)python -m pytest -n 2 --dist worksteal

lint: $(STAMP)
	$(RUN)ruff format --check .
	$(RUN)ruff check .

types: $(STAMP)
	$(RUN)mypy

format: $(STAMP)
	$(RUN)ruff format .
	$(RUN)ruff check --fix .

bench-smoke: $(STAMP)
	$(RUN)python -m benchmarks exactness --smoke
	$(RUN)python -m benchmarks frontier --smoke
	$(RUN)python -m benchmarks labels --smoke
	$(RUN)python -m benchmarks lp1 --smoke
	$(RUN)python -m benchmarks mesh --smoke
	$(RUN)python -m benchmarks sampling --smoke
	$(RUN)python -m benchmarks speed --smoke
	$(RUN)python -m benchmarks structure --smoke

system-deps:
	@echo "no Debian packages are needed"

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
