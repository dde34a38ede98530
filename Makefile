# Every target sets up what it needs, from a bare clone.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: demo test lint docs bench clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[runtime,test]'
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/dpmigrate demo

test: $(STAMP)
	$(BIN)/python -m pytest -q -n 2

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/dpmigrate rules --markdown > docs/rules.md

bench: $(STAMP)
	$(BIN)/python benchmarks/startup.py

clean:
	rm -rf .venv build dist *.egg-info
