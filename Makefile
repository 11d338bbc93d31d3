# `make demo` and `make test` set up what they need on their own; what is there already is not done again.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# The two long suites take every core, as many files at once as there are; what else there is takes one at a time, so that
# two of those run side by side. What they measure is the memory of processes of their own, which that does not change.
ifndef TWO
.NOTPARALLEL:
endif

VENV := .venv
OLDEST := .venv-oldest
CUDA := .venv-cuda
STATIC := inspector/donation_inspector/static
PIP := -m pip install --quiet --disable-pip-version-check --no-input
SIDE_BY_SIDE := $(MAKE) --no-print-directory TWO=1 -j2 --output-sync=target
# The order is that of the folders: a file of few tests that take long would be last if the number of tests decided.
FILES_AT_ONCE := -n logical --dist loadfile --no-loadscope-reorder --max-worker-restart 0 -p no:nbval
BUILD_BACKEND := hatchling editables

export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
export PIP_USER := 0
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

# ---- what people run

.PHONY: demo
demo: $(VENV)/.done-demo ## inspect a real training step, measure it, open the quickstart notebook (LAB=0: stop after the report)
	@python scripts/demo.py
ifneq ($(LAB),0)
	@python scripts/lab.py notebooks/01_quickstart.ipynb
endif

.PHONY: test
test: ## set up everything, then every test
	@$(SIDE_BY_SIDE) setup
	@$(MAKE) --no-print-directory test-bundle
	@$(SIDE_BY_SIDE) test-browser lint test-notebooks test-cuda test-frontend
	@$(MAKE) --no-print-directory test-core test-oldest

.PHONY: bench
bench: $(VENV)/.done-dev ## from trace to toggle: the ratios and their growth; what a call of di.jit takes
	@python scripts/bench.py

.PHONY: bundle
bundle: widgets/node_modules/.done ## build the front end into $(STATIC), which is committed
	@npm --prefix widgets run --silent build

.PHONY: setup
setup: $(VENV)/.done-dev $(OLDEST)/.done $(CUDA)/.done widgets/node_modules/.done ## everything that the tests need
	@scripts/mlir.sh
	@scripts/chromium.sh > /dev/null

.PHONY: clean
clean: ## remove everything that was installed or built, except the committed bundle
	rm -rf $(VENV) $(OLDEST) $(CUDA) widgets/node_modules build dist demo.html .pytest_cache .ruff_cache .import_linter_cache .hypothesis

# ---- the parts of `make test`

.PHONY: lint
lint: $(VENV)/.done-dev widgets/node_modules/.done ## ruff, pyright, import-linter, biome, tsc
	ruff check .
	ruff format --check .
	pyright
	lint-imports
	npm --prefix widgets run --silent lint
	npm --prefix widgets run --silent check

.PHONY: test-bundle
test-bundle: bundle ## the committed bundle is what the sources build
	@git diff --stat --exit-code -- $(STATIC) && test -z "$$(git status --porcelain -- $(STATIC))" || \
		{ echo "$(STATIC) is not what widgets/ builds: commit the bundle that 'make bundle' makes" >&2; exit 1; }

.PHONY: test-frontend
test-frontend: widgets/node_modules/.done ## vitest
	npm --prefix widgets test

.PHONY: test-core
test-core: $(VENV)/.done-dev ## pytest and filecheck
	@scripts/mlir.sh
	JAX_PLATFORMS=cpu python -m pytest $(FILES_AT_ONCE) tests --ignore=tests/browser --ignore=tests/xla/targets/cuda $(ARGS)

.PHONY: test-exhaustive
test-exhaustive: $(VENV)/.done-dev ## the rest of the long sweeps of which `make test` takes a sample
	JAX_PLATFORMS=cpu python -m pytest $(FILES_AT_ONCE) -m exhaustive tests --ignore=tests/browser --ignore=tests/xla/targets/cuda $(ARGS)

.PHONY: test-oldest
test-oldest: $(OLDEST)/.done ## the core tests against the oldest jax and xdsl declared
	@scripts/mlir.sh
	JAX_PLATFORMS=cpu $(OLDEST)/bin/python -m pytest $(FILES_AT_ONCE) -o cache_dir=$(OLDEST)/.pytest_cache $(OF_VERSIONS) --ignore=tests/xla/hlo --ignore=tests/xla/targets $(ARGS)

.PHONY: test-cuda
test-cuda: $(VENV)/.done-dev $(CUDA)/.done ## programs for GPUs that are not here, by the compiler in jax's CUDA plugin
	PYTHONPATH=$(CURDIR)/$(CUDA) JAX_PLATFORMS=cpu python -m pytest tests/xla/targets/cuda $(ARGS)

.PHONY: test-notebooks
test-notebooks: $(VENV)/.done-dev ## nbval: the tutorials give the outputs they show
	@scripts/mlir.sh
	JAX_PLATFORMS=cpu python -m pytest --nbval --nbval-current-env --nbval-sanitize-with=notebooks/sanitize.cfg notebooks $(ARGS)

.PHONY: test-browser
test-browser: $(VENV)/.done-dev ## the widget in a real JupyterLab and Notebook 7
	chromium="$$(scripts/chromium.sh)"; CHROMIUM="$$chromium" JAX_PLATFORMS=cpu python -m pytest tests/browser $(ARGS)

# What stands on JAX or xDSL; the rest cannot tell one version from the other. Of tests/inspection that is what takes over
# JAX's own calls, looks at its arrays, lowers the cases and has a child compile them. tests/xla/hlo is held to the live
# ranges that XLA itself writes, which the oldest jaxlib does not; what needs the compilers of other platforms is left out,
# since a second libtpu would be another 600 MB.
OF_VERSIONS := $(addprefix tests/,ir analysis donating passes filecheck xla frameworks bufferized) \
	$(patsubst %,tests/inspection/test_%.py,cases compiling inspection outside verifying watching)

# ---- set-up: a stamp is written last, so that an interrupted step is taken again

$(VENV)/.done-venv: scripts/venv.sh
	@scripts/venv.sh $(VENV)
	@touch $@

$(VENV)/.done-demo: $(VENV)/.done-venv pyproject.toml constraints.txt
	@echo "installing the inspector into $(VENV) (about a minute the first time)"
	@python $(PIP) -c constraints.txt $(BUILD_BACKEND)
	@python $(PIP) -c constraints.txt --no-build-isolation -e '.[demo]'
	@touch $@

$(VENV)/.done-dev: $(VENV)/.done-demo
	@echo "installing the test tools into $(VENV)"
	@python $(PIP) -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

$(OLDEST)/.done: scripts/venv.sh pyproject.toml constraints-oldest.txt
	@scripts/venv.sh $(OLDEST)
	@echo "installing the oldest jax and xdsl declared into $(OLDEST)"
	@$(OLDEST)/bin/python $(PIP) -c constraints-oldest.txt $(BUILD_BACKEND)
	@$(OLDEST)/bin/python $(PIP) -c constraints-oldest.txt --no-build-isolation -e '.[test]'
	@touch $@

# Packages beside those of $(VENV), not among them: where the plugin is, JAX looks for a GPU whenever it starts.
$(CUDA)/.done: $(VENV)/.done-venv constraints-cuda.txt
	@echo "installing jax's CUDA plugin into $(CUDA)"
	@rm -rf $(CUDA)
	@python $(PIP) --no-deps --target $(CUDA) -r constraints-cuda.txt
	@touch $@

$(VENV)/.done-node: $(VENV)/.done-venv scripts/node.sh
	@scripts/node.sh
	@touch $@

# Where there is no Node.js it is installed into the same environment, by one pip at a time.
ifdef TWO
$(VENV)/.done-node: $(VENV)/.done-dev
endif

widgets/node_modules/.done: $(VENV)/.done-node widgets/package.json widgets/package-lock.json
	@echo "installing the front end's tools into widgets/node_modules"
	@npm --prefix widgets ci --no-audit --no-fund --loglevel=error
	@touch $@
