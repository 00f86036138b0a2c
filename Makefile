# Each target sets up what it needs: a virtual environment `.venv` in the checkout.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SPARK_CLASSES := $(VENV)/spark-classes.jsa
# The gate needs no tool for tests and no Spark, which take longer to install than the gate runs.
GATE_READY := $(VENV)/.gate-ready

.PHONY: gate test test-all test-tables lint bench gate-nacos nightly proto docs clean

gate: $(GATE_READY)
	@$(BIN)/distrocheck gate --budget quick

# Four processes side by side, also on two cores: many tests wait for a server or for real time to pass. The tests that
# share a Spark session stay in one of them (conftest.py).
# Durations are kept: the slowest are printed, and all of them are in the JUnit file.
# These processes and many commands load the same modules: bytecode is kept even where the environment says otherwise.
PYTEST = PYTHONDONTWRITEBYTECODE= SPARK_SUBMIT_OPTS="-XX:SharedArchiveFile=$(CURDIR)/$(SPARK_CLASSES) -Xlog:cds*=off" \
  $(BIN)/python -m pytest -q -n 4 --dist loadgroup --durations=20 --junitxml=distrocheck-out/tests/$@.xml

test: $(READY)
	@sh tools/preflight.sh java
	@$(PYTEST) -m "not slow"

test-all: $(READY) $(SPARK_CLASSES)
	@sh tools/preflight.sh java
	@$(PYTEST)

# Folders in plain English, held to the spelling of codespell and to the words of tools/plain-words.txt.
PLAIN := bench/[!e]*.py conformance/distro_interop/sdks/*.py impl/distro_impl impl/tests model/tests protos tools/*.py tools/pages tools/preflight.sh traces spark conformance/distro_conformance/report conformance/distro_conformance/requirements conformance/distro_conformance/wire conformance/distro_conformance/plugin conformance/distro_conformance/exploration conformance/distro_conformance/diagrams conformance/distro_conformance/language conformance/distro_conformance/drivers conformance/distro_conformance/node conformance/distro_conformance/ui/templates conformance/distro_conformance/ui/walk.py conformance/distro_conformance/ui/stories.py conformance/distro_conformance/ui/recorded.py conformance/distro_conformance/ui/app.py conformance/distro_conformance/ui/__init__.py conformance/distro_conformance/cli conformance/distro_conformance/node_mutants conformance/tests docs/*.md docs/protocol scenarios docs/reference docs/explanation CHANGELOG.md README.md CONTRIBUTING.md SECURITY.md Makefile conformance/distro_conformance/audit conformance/distro_conformance/findings conformance/distro_conformance/gate conformance/distro_conformance/recording conformance/distro_conformance/mutation conformance/distro_conformance/targets conformance/distro_conformance/walks conformance/distro_conformance/*.py docs/how-to

# Tables of which the other targets test a sample; hours.
test-tables: $(READY)
	@DISTROCHECK_WHOLE_TABLES=1 $(PYTEST) model/tests/test_under_faults.py

lint: $(READY)
	@$(BIN)/codespell -D - -D tools/plain-words.txt $(PLAIN)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/generate.py --check
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows docs/ci/github-actions.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.gitlab-ci docs/ci/gitlab-ci.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	@[ ! -x $(BIN)/hadolint ] || $(BIN)/hadolint Dockerfile
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

BENCHES := distrocheck-out/bench
bench: $(READY)
	@mkdir -p $(BENCHES)
	@for name in explore simulate lockstep node abuse; do \
	  $(BIN)/python bench/$$name.py --json --quick > $(BENCHES)/$$name.json || exit 1; cat $(BENCHES)/$$name.json; done
	@$(BIN)/python bench/charts.py $(BENCHES)/*.json --html $(BENCHES)/index.html

gate-nacos: $(READY)
	@rm -rf distrocheck-out/nacos-2.2.4
	@$(BIN)/distrocheck gate --budget quick --target nacos:2.2.4 --out distrocheck-out/nacos-2.2.4
	@$(BIN)/python tools/track_record.py --release 2.2.4 --only scenarios

# Hours; goes on where it was interrupted. `make nightly JOBS="--only 'mutants node'"` runs one.
nightly: $(READY)
	@$(BIN)/python tools/nightly.py $(JOBS)

# Wheel, source distribution, and the list of all that an installation of the wheel brings (docs/releasing.md).
RELEASE := distrocheck-out/release
release: $(READY)
	@rm -rf $(RELEASE)
	@$(BIN)/python -m build --outdir $(RELEASE) .
	@$(PYTHON) -m venv --without-pip $(RELEASE)/environment
	@$(BIN)/python -m pip --python $(RELEASE)/environment/bin/python install --quiet --disable-pip-version-check $(RELEASE)/*.whl
	@$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file $(RELEASE)/sbom.json $(RELEASE)/environment/bin/python
	@rm -rf $(RELEASE)/environment
	@ls -l $(RELEASE)

proto: $(READY)
	@$(BIN)/python tools/generate.py

docs: proto
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "distrocheck-out/site/index.html"

$(READY): pyproject.toml tools/preflight.sh
	@sh tools/preflight.sh python "$(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(GATE_READY) $@

# With it a start of Spark takes half of the processor time.
$(SPARK_CLASSES): pyproject.toml tools/spark_classes.py | $(READY)
	@sh tools/preflight.sh java
	@$(BIN)/python tools/spark_classes.py $@ > /dev/null

$(GATE_READY): pyproject.toml tools/preflight.sh
	@sh tools/preflight.sh python "$(PYTHON)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[explore,fast,report,traces]'
	@touch $@

clean:
	rm -rf $(VENV) distrocheck-out
