# Each target sets up what it needs: a virtual environment `.venv` in the checkout.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: gate test lint bench gate-nacos proto docs clean

gate: $(READY)
	@$(BIN)/distrocheck gate --budget quick

test: $(READY)
	@$(BIN)/python -m pytest -q

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/generate.py --check

bench: $(READY)
	@for name in explore simulate lockstep; do $(BIN)/python bench/$$name.py --json --quick || exit 1; done

gate-nacos: $(READY)
	@rm -rf distrocheck-out/nacos-2.2.4
	@$(BIN)/distrocheck gate --budget quick --target nacos:2.2.4 --out distrocheck-out/nacos-2.2.4

proto docs: $(READY)
	@$(BIN)/python tools/generate.py

$(READY): pyproject.toml tools/preflight.sh
	@sh tools/preflight.sh "$(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) distrocheck-out
