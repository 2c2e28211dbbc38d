# Targets for newcomers. `make demo` and `make test` set up their own environment.

PYTHON ?= python3
VENV ?= .venv
RUN := $(VENV)/bin/
STAMP := $(VENV)/.installed
# Without compiled modules on disk, each of a hundred processes that tests start would compile all of them again.
unexport PYTHONDONTWRITEBYTECODE
FLOORS := .venv-floors
NEWEST := .venv-newest

.PHONY: help setup demo test floors newest package pythons lint format types docs notebooks bench-smoke nightly mutation server spark torch everything system-deps clean

help:
	@echo "make demo         release the bundled table of weeks worked, with its proof and a new ledger, into demo/"
	@echo "make test         format, lint, types and all tests but those of minutes"
	@echo "make floors       some tests with the lowest versions of all dependencies, in $(FLOORS)/"
	@echo "make newest       some of them with the newest versions, in $(NEWEST)/"
	@echo "make package      wheel and source archive into dist/, and the wheel tried in a fresh environment"
	@echo "make pythons      the same, and some tests, with each of Python 3.11 to 3.14 that is on this machine"
	@echo "make setup        the environment of all of these, in $(VENV)/"
	@echo "make lint         check format and lint only (make format fixes them)"
	@echo "make docs         build the documentation into docs/_build, warnings are errors, and run its examples"
	@echo "make notebooks    open the first notebook"
	@echo "make bench-smoke  every benchmark, small"
	@echo "make nightly      sweeps of hard problems, fault injection and every benchmark in small: an hour"
	@echo "make mutation     MINUTES=30 of small changes to proofs, tables, draws and ledger, listing those that no test notices"
	@echo "make spark        pyspark (500 MB), without which make test leaves the releases on Spark out"
	@echo "make torch        torch (200 MB as its CPU build), without which make test leaves the networks out"
	@echo "make server       psycopg, without which make test leaves the ledger on a PostgreSQL out"
	@echo "make everything   make setup and these three at once"
	@echo "make system-deps  chromium for a report, Java 17 for Spark, and PostgreSQL: as root, or with sudo"

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

setup: $(STAMP)

demo: $(STAMP)
	rm -rf demo && mkdir demo
	$(RUN)optrand randomize optrand/data/weeks_worked.csv.gz demo/weeks.csv --column weeks --labels 0:52 --epsilon 1 --dataset demo --ledger demo/ledger.sqlite
	$(RUN)optrand verify demo/weeks.csv.release.json --table demo/weeks.csv --gap 1e-12
	$(RUN)optrand plot demo/weeks.csv.release.json -o demo/weeks.png

test: lint types
	$(RUN)python -m pytest -n 2 --dist worksteal

# Tests of code that calls other packages. They run in one process, since other tests run beside them in CI.
FLOOR_TESTS := $(addprefix tests/test_,$(addsuffix .py,arrays backends certificate cli label_dp_classifier ledger mechanism problem \
	release saved validation vector))

FLOOR_EXTRAS := .[learning,release,report]
FLOOR_TOOLS := hypothesis pandas polars pytest pyyaml

$(FLOORS)/.installed: pyproject.toml constraints-floors.txt
	$(PYTHON) -m venv --without-pip $(FLOORS)
	$(PYTHON) -m pip --python $(FLOORS)/bin/python install --quiet --no-compile --constraint constraints-floors.txt \
		--editable '$(FLOOR_EXTRAS)' $(FLOOR_TOOLS)
	touch $@

floors: $(FLOORS)/.installed
	$(FLOORS)/bin/python -m pytest -q $(FLOOR_TESTS)

$(NEWEST)/.installed: pyproject.toml
	$(PYTHON) -m venv --without-pip $(NEWEST)
	$(PYTHON) -m pip --python $(NEWEST)/bin/python install --quiet --no-compile --upgrade --editable '$(FLOOR_EXTRAS)' $(FLOOR_TOOLS)
	touch $@

NEWEST_TESTS := $(addprefix tests/test_,$(addsuffix .py,arrays backends certificate label_dp_classifier saved vector))

newest: $(NEWEST)/.installed
	$(NEWEST)/bin/python -m pytest -q $(NEWEST_TESTS)

package:
	$(PYTHON) .ci/package.py

pythons:
	$(PYTHON) .ci/package.py --all

lint: $(STAMP)
	$(RUN)ruff format --check .
	$(RUN)ruff check .

types: $(STAMP)
	$(RUN)mypy

format: $(STAMP)
	$(RUN)ruff format .
	$(RUN)ruff check --fix .

docs: $(STAMP)
	$(RUN)python -m sphinx -W --keep-going -q -j auto -b html docs docs/_build
	$(RUN)python -m pytest -q -n 2 -m docs tests/test_docs.py tests/test_readme_commands.py tests/test_notebooks.py

notebooks: $(STAMP)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[notebooks]'
	$(RUN)python -m jupyter lab notebooks/1_the_papers_in_order.ipynb

bench-smoke: $(STAMP)
	$(RUN)python -m benchmarks --all --smoke

nightly: $(STAMP)
	HYPOTHESIS_PROFILE=nightly $(RUN)python -m pytest -m nightly -n 2 --dist loadfile --durations=20

MINUTES ?= 30

# Results stay in mutants/, so that the next run continues with the rest.
mutation: $(STAMP)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev,mutation]'
	timeout $(MINUTES)m $(RUN)mutmut run --max-children 2 > mutants.log || [ $$? = 124 ]
	$(RUN)mutmut results | grep survived || true
	$(RUN)mutmut export-cicd-stats && cat mutants/mutmut-cicd-stats.json

spark: $(STAMP)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev,spark]'

torch: $(STAMP)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev,torch]'

server: $(STAMP)
	$(RUN)python -m pip install --quiet --constraint constraints.txt --editable '.[dev,server]'

# One installation takes a minute less than four. Modules are compiled when they are imported: compiling all of them would
# double the time of an environment that is used for minutes.
everything:
	$(PYTHON) -m venv $(VENV)
	$(RUN)python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev,spark,torch,server]'
	touch $(STAMP)

system-deps:
	@missing=; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v java >/dev/null || missing="$$missing openjdk-17-jre-headless"; \
	ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing="$$missing postgresql"; \
	if [ -z "$$missing" ]; then echo "chromium, Java and PostgreSQL are installed"; exit; fi; \
	if ! command -v apt-get >/dev/null; then \
		echo "there is no apt-get here: install$$missing in this system's own way" >&2; exit 1; fi; \
	root=; [ "$$(id -u)" = 0 ] || root="sudo -n"; \
	$$root apt-get update -qq && \
	$$root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null || { \
		echo "$$missing could not be installed: run make system-deps as root, or with sudo" >&2; exit 1; }

clean:
	rm -rf $(VENV) $(FLOORS) $(NEWEST) demo dist docs/_build mutants mutants.log .pytest_cache .mypy_cache .ruff_cache .hypothesis
