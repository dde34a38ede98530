# Every target sets up what it needs, from a bare clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

# how often make stress repeats what runs several processes
N ?= 30

.PHONY: demo test all-runs stress coverage lint docs bench mutation clean
.DELETE_ON_ERROR:

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[runtime,test]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/dpmigrate demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal

# every runnable fixture, proved and laid beside its trace, each process a new interpreter: slower, for releases and after changes of the probe
all-runs: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/e2e tests/trace tests/oracle tests/runtime/test_nets.py tests/verify/test_exit_abort.py --all-runs --fresh-processes

# stops at the first failure and keeps its output; ARGS go to pytest (make stress N=5 ARGS=--fresh-processes)
stress: $(STAMP)
	.ci/stress $(N) $(ARGS)

coverage: $(STAMP)
	$(BIN)/python -m pytest -q -n 2 --dist worksteal --cov --cov-report=term

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/dpmigrate rules --markdown > .venv/rules.md
	mv .venv/rules.md docs/rules.md

bench: $(STAMP)
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/repositories.py
	$(BIN)/python benchmarks/verify.py
	$(BIN)/python benchmarks/execution.py
	$(BIN)/python benchmarks/watch.py

mutation: $(STAMP)
	$(BIN)/python -m tests.mutation --run -j 2 --table mutation.md

clean:
	rm -rf .venv build dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
