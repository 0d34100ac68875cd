# The few things one does to this checkout. Needs make, git and a Python >= 3.11; everything else installs itself.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

BIN := .venv/bin
STAMP := .venv/stamp
COLLECTED := .venv/collected
TESTS := $(shell find tests -name 'test_*.py')
SHELL_FILES = tutorial.sh .ci/player .ci/programs .ci/run .ci/system .ci/venv $(shell find src $(wildcard demo bench) tests/places -name '*.sh')
PYTEST_ARGS ?=
# Tests wait for other programs, and for links that are cut, more than half of the time: five workers fill two cores. Who has
# nothing left to do takes over from who has: the slow tests stand together.
CORES := $(shell getconf _NPROCESSORS_ONLN)
WORKERS ?= $(shell echo $$(( $(CORES) * 5 / 2 )))
# The worlds that tests make and throw away are in memory where there is plenty: a third of the time is a disk's. Nor does
# it help to measure a disk: after many files were removed, ext4 takes ten times as long to make new ones.
IN_MEMORY := $(shell df -Pk /dev/shm 2>/dev/null | awk '$$1 == "tmpfs" && $$4 > 4000000 { print $$6 }')

.PHONY: help venv system programs places player demo self test lint proof bench man clean bytecode

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

places: system  ## check sshd, podman and what else tests/places makes machines and containers of
	@.ci/system places

player:  ## put asciinema-player where `mngr e2e view` takes it from
	@.ci/player

demo: system venv bytecode  ## show the tool at work, in a home of its own
	@PATH="$(CURDIR)/$(BIN):$$PATH" bash demo/run.sh

self: system venv bytecode  ## a swarm on a few of its own tests: the tool tests itself with itself
	@bash demo/self/run.sh

test: system venv bytecode $(COLLECTED) programs places player  ## run all tests; PYTEST_ARGS='tests/e2e -k rename' runs some
	@$(if $(IN_MEMORY),MNGR_E2E_TMPDIR=$(IN_MEMORY) PYTEST_DEBUG_TEMPROOT=$(IN_MEMORY)) \
	  $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

lint: venv  ## ruff, mypy and shellcheck
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/shellcheck $(SHELL_FILES)

proof: system venv bytecode programs places  ## twenty agents and two hundred messages, a hundred killed orchestrators: is anything lost?
	@$(BIN)/python bench/proof.py
	@$(BIN)/python bench/proof_swarm.py
	@$(BIN)/python bench/proof_hosts.py
	@$(BIN)/python -m pytest -q -n 2 -m proof --ignore tests/real/test_integrate_history.py
	@ALL_BRANCHES=1 $(BIN)/python -m pytest -q -m "proof or not proof" tests/real/test_integrate_history.py

bench: system venv bytecode programs places  ## measure the verbs against their floor
	@$(if $(IN_MEMORY),TMPDIR=$(IN_MEMORY)) $(BIN)/python bench/run.py

man: venv  ## write man/ anew from the commands
	@$(BIN)/python -m mngr.cli.man man

clean:  ## remove everything that can be made again
	@rm -rf .venv .test_output src/mngr/e2e/static/player build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -prune -exec rm -rf {} +

# Where PYTHONDONTWRITEBYTECODE is set, nobody else would write it, and every start would compile every module.
bytecode: venv
	@$(BIN)/python -m compileall -q src

# The same for tests, whose assertions pytest rewrites: each worker imports all of them, and would do that for all of them.
# What is wrong with one is told when they run.
$(COLLECTED): $(STAMP) $(TESTS)
	@printf '%s\n' $(if $(filter $(STAMP),$?),$(TESTS),$?) | env -u PYTHONDONTWRITEBYTECODE \
	  xargs -P $(CORES) -n $$(( $(words $(TESTS)) / $(CORES) + 1 )) $(BIN)/python -m pytest --collect-only -qq -p no:cacheprovider >/dev/null 2>&1 || true
	@touch $@
