# The few things one does to this checkout. Needs make, git and a Python >= 3.11; everything else installs itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
STAMP := .venv/stamp
SHELL_FILES = tutorial.sh .ci/player .ci/programs .ci/run .ci/system .ci/venv $(shell find src $(wildcard demo bench) -name '*.sh')
PYTEST_ARGS ?=
# Tests wait for other programs half of the time: one worker more than there are cores fills it.
WORKERS ?= $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))

.PHONY: help venv system programs player demo self test lint proof bench man clean bytecode

help:  ## print these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-15s %s\n", $$1, $$2 }'

venv: $(STAMP)  ## build .venv, with mngr and its development tools in it

$(STAMP): pyproject.toml requirements.txt
	@.ci/venv
	@! command -v npm >/dev/null || .ci/player || echo "Recordings do not play in the combined view until make player" >&2
	@touch $(STAMP)

system:  ## check tmux, git, groff, zsh and fish; install what is missing
	@.ci/system

programs: system  ## install the agent programs that tests/real runs, and node for them
	@.ci/system programs
	@.ci/programs >/dev/null

player:  ## put asciinema-player where `mngr e2e view` takes it from
	@.ci/player

demo: system venv bytecode  ## show the tool at work, in a home of its own
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash demo/run.sh

self: system venv bytecode  ## a swarm on a few of its own tests: the tool tests itself with itself
	@bash demo/self/run.sh

test: system venv bytecode programs player  ## run all tests; PYTEST_ARGS='tests/e2e -k rename' runs some
	@$(BIN)/python -m pytest -n $(WORKERS) $(PYTEST_ARGS)

lint: venv  ## ruff, mypy and shellcheck
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/shellcheck $(SHELL_FILES)

proof: system venv bytecode programs  ## twenty agents and two hundred messages, a hundred killed orchestrators: is anything lost?
	@$(BIN)/python bench/proof.py
	@$(BIN)/python bench/proof_swarm.py
	@ALL_BRANCHES=1 $(BIN)/python -m pytest -q tests/real/test_integrate_history.py

bench: system venv bytecode programs  ## measure the verbs against their floor
	@$(BIN)/python bench/run.py

man: venv  ## write man/ anew from the commands
	@$(BIN)/python -m mngr.cli.man man

clean:  ## remove everything that can be made again
	@rm -rf .venv .test_output src/mngr/e2e/static/player build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -prune -exec rm -rf {} +

# Where PYTHONDONTWRITEBYTECODE is set, nobody else would write it, and every start would compile every module.
bytecode: venv
	@$(BIN)/python -m compileall -q src
