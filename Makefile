# OpenNeuronCore. `make help` lists the targets; every recipe is a command that a person could type.

CONFIG ?= mini
TOP    ?= tensor
SET    ?=
TEST   ?=
SEED   ?=
LIBERTY ?=
SRAM    ?=
SWEEP   ?=
M       ?= 64
N       ?= 64
K       ?= 64
FORMAT  ?= bf16
TIMELINE ?= no
PROGRAMS ?= 100

VENV := .venv
RUN  := $(VENV)/bin/python -m
SELECTION = CONFIG='$(CONFIG)' SET='$(SET)'

.DEFAULT_GOAL := help
.PHONY: help setup demo gemm softmax fuzz test test-long verilog header bench bench-full utilisation area power sweep waves clean

help: ## list the targets
	@echo 'OpenNeuronCore: make <target> [CONFIG=mini] [SET="rows=16 formats=bf16"] [TOP=tensor]'
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo
	@echo 'Presets (CONFIG=): nano mini small inf1 trn1 inf2 trn2. Reports go to build/reports/, Verilog to build/verilog/.'

setup: $(VENV)/ready ## make the virtual environment (the first target that needs it does so too)

$(VENV)/ready: requirements.lock
	@sh sim/check_system.sh
	@echo 'Setting up .venv from requirements.lock (about a minute, once) …'
	@rm -rf $(VENV)
	@python3 -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $@

demo: $(VENV)/ready ## classify handwritten digits on the RTL core, every bit checked
	@$(RUN) sim.demo $(SELECTION)

gemm: $(VENV)/ready ## one product M x N x K in FORMAT, memory to memory, on the RTL core of CONFIG; TIMELINE=yes draws it
	@$(RUN) sim.gemm $(SELECTION) M=$(M) N=$(N) K=$(K) FORMAT=$(FORMAT) TIMELINE=$(TIMELINE)

softmax: $(VENV)/ready ## masked softmax and statistics of rows on the vector engine of CONFIG, RTL and golden core
	@$(RUN) sim.softmax $(SELECTION)

fuzz: $(VENV)/ready ## PROGRAMS=100 random programs from SEED=1 on the RTL and the golden core of a small preset
	@$(RUN) sim.fuzz PROGRAMS=$(PROGRAMS) SEED=$(or $(SEED),1)

test: $(VENV)/ready ## run the tests (10 to 25 minutes on two cores)
	@$(RUN) pytest

test-long: $(VENV)/ready ## run the tests and the long campaigns
	@$(RUN) pytest -m 'long or not long'

verilog: $(VENV)/ready ## write Verilog of CONFIG, TOP (pe, tile, array, tensor, psum, …) and SET
	@$(RUN) sim.verilog $(SELECTION) TOP='$(TOP)'

header: $(VENV)/ready ## write a C header of the core's registers to build/onc_registers.h
	@$(RUN) sim.header

bench: $(VENV)/ready ## measure generation, build and simulation speed at 8 x 8 and 32 x 32
	@$(RUN) sim.speed

bench-full: $(VENV)/ready ## the same, and a full 128 x 128 array
	@$(RUN) sim.speed FULL=yes

utilisation: $(VENV)/ready ## small and ragged products on a 16 x 16 array: cycles and use
	@$(RUN) sim.utilisation

area: $(VENV)/ready ## area and clock of CONFIG, TOP and SET on a 45 nm library, or on LIBERTY=<file>
	@$(RUN) area.cost $(SELECTION) TOP='$(TOP)' LIBERTY='$(LIBERTY)' SRAM='$(SRAM)'

power: $(VENV)/ready ## energy of a cycle and power of CONFIG, TOP=pe (or another small block) and SET, gates simulated
	@$(RUN) area.power $(SELECTION) TOP='$(TOP)' LIBERTY='$(LIBERTY)'

sweep: $(VENV)/ready ## cost and speed of every point of SWEEP=<file.toml>, such as examples/sweeps/arrays.toml
	@$(RUN) area.sweep SWEEP='$(SWEEP)'

waves: $(VENV)/ready ## trace one cocotb bench into an FST file: TEST=<bench>[.<test>]
	@$(RUN) sim.waves TEST='$(TEST)' SEED='$(SEED)'

clean: ## remove what was generated here; the build cache in your cache folder stays
	rm -rf build .pytest_cache .hypothesis $(VENV)
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
