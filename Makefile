PYTHON ?= python3
PYTEST = OMP_NUM_THREADS=1 .venv/bin/pytest

.PHONY: demo test test-all conformance planted parity presets record evidence bench clean

demo: .venv/installed  ## train and compare five models on the text that Python ships
	.venv/bin/zoo run registry.yaml quickstart

test: .venv/installed  ## the default test suite
	$(PYTEST) -n auto

test-all: .venv/installed  ## the default suite, every combination of parts and every slow run
	.venv/bin/pip install -q -c constraints.txt -e '.[dev,ray,slurm,tune,browser]'
	$(PYTEST) -n auto -m "exhaustive or not exhaustive"

planted: .venv/installed  ## plant each bug of tests/support/planted.py, check that it is found, and write docs/planted.md
	OMP_NUM_THREADS=1 PYTHONPATH=tests .venv/bin/python -m support.planted > docs/planted.new && mv docs/planted.new docs/planted.md
	cat docs/planted.md

conformance: .venv/installed  ## run the conformance checks of every variant and write reports/conformance.md
	.venv/bin/zoo --no-plugins check --format markdown --output reports/conformance.md
	cat reports/conformance.md

parity: .venv/installed  ## compare the logits of published models with transformers and write reports/parity.md
	OMP_NUM_THREADS=1 PYTHONPATH=tests .venv/bin/python -m support.parity > reports/parity.new && mv reports/parity.new reports/parity.md
	cat reports/parity.md

record: .venv/installed  ## write docs/record.md: what a folder of runs holds
	PYTHONPATH=tests .venv/bin/python -m support.record_page > docs/record.new && mv docs/record.new docs/record.md

presets: .venv/installed  ## count the published models and write reports/presets.md
	.venv/bin/zoo list models --markdown > reports/presets.new && mv reports/presets.new reports/presets.md
	cat reports/presets.md

EVIDENCE = positions rope-reach no-position-masked no-position-bert norm-place ffn ffn-longer heads norms recall-depth architectures

evidence: .venv/installed  ## train published findings again, about two hours on two cores, and write reports/evidence.md
	for name in $(EVIDENCE); do \
	  .venv/bin/zoo run examples/evidence.yaml $$name --out runs/evidence || exit 1; \
	  mkdir -p reports/$$name && cp runs/evidence/$$name/report.md runs/evidence/$$name/*.png reports/$$name || exit 1; \
	done
	.venv/bin/zoo report $(EVIDENCE) --out runs/evidence --format claims > reports/evidence.new
	mv reports/evidence.new reports/evidence.md

bench: .venv/installed  ## time every variant side by side
	$(PYTEST) benchmarks --benchmark-only

clean:
	rm -rf .venv build *.egg-info runs

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	.venv/bin/pip install -q -c constraints.txt -e '.[dev]'
	touch $@
