# make demo   rank a dozen passages with the built-in reranker and explain the best, in the terminal and as a page
# make test   install what the tests need and run them all
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
NATIVE := setup.py $(wildcard csrc/*/*)
QUERY ?= how did the romans make concrete that lasts

.PHONY: demo demo-train machine test test-clusters test-lowest-numpy asan tsan soak bench bench-check bench-reranker reranker-sources \
	reranker-pairs reranker faithfulness lint docs lessons pictures seeds clean

$(BIN)/python:
	@$(PYTHON) tools/prepare_machine.py venv compiler
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml $(NATIVE) | $(BIN)/python
	$(PIP) --editable '.[explain]'
	@touch $@

$(VENV)/.test: pyproject.toml $(NATIVE) | $(BIN)/python
	$(PIP) torch==2.13.0
	$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/.bench: $(VENV)/.test
	$(PIP) --editable '.[bench]'
	@touch $@

demo: $(VENV)/.demo
	@mkdir -p out
	@$(BIN)/backlight explain "$(QUERY)" examples/passages --top 5 --html out/report.html

# Trains on FashionMNIST, whose images Debian packages; RESUME=--resume goes on where a run was stopped.
RESUME ?= --replace
demo-train: $(VENV)/.demo
	@test -d /usr/share/datasets/fashion-mnist || { apt-get update -qq && apt-get install -y -qq dataset-fashion-mnist; } \
		|| echo "apt cannot install dataset-fashion-mnist here: put FashionMNIST's idx files into data/FashionMNIST/raw"
	$(BIN)/backlight train examples/train/fashion_mnist_mlp.toml $(RESUME)

# First of all what the machine lacks: Chromium, which draws the pages, is installed where that is possible.
machine:
	@$(PYTHON) tools/prepare_machine.py venv compiler browser

test: machine $(VENV)/.test
	HF_HUB_OFFLINE=1 $(BIN)/python -m pytest -n 2

# Ray and Spark (1 GB; Spark needs Java 17 or later: apt-get install default-jre-headless) in an environment of their own.
CLUSTERS := .venv-clusters
$(CLUSTERS)/.installed: pyproject.toml $(NATIVE)
	$(PYTHON) -m venv $(CLUSTERS)
	$(CLUSTERS)/bin/pip install --quiet --disable-pip-version-check torch==2.13.0
	$(CLUSTERS)/bin/pip install --quiet --disable-pip-version-check --editable '.[test,ray,spark]'
	@touch $@

test-clusters: $(CLUSTERS)/.installed
	HF_HUB_OFFLINE=1 $(CLUSTERS)/bin/python -m pytest -rs tests/engines_cluster

# Crashes, hangs, leaks, lost rows and lost state under hostile arguments, threads, forks, interrupts and kills:
# make soak SECONDS=3600 SEED=7; docs/guarantees.md says what each program holds.
SECONDS ?= 300
SEED ?= 0
soak: $(VENV)/.test
	$(BIN)/python tests/soak/run_all.py --seconds $(SECONDS) --seed $(SEED)

# The C code with GCC's sanitizers: the native tests, and random programs against PyTorch; see tools/sanitize.py.
# SHORT=--short takes about five minutes.
asan tsan: $(VENV)/.test
	$(BIN)/python tools/sanitize.py $(SHORT) $(if $(filter asan,$@),address,thread)

# Builds with the lowest NumPy declared and with the newest, each in an environment of its own, and runs both with both.
test-lowest-numpy:
	$(PYTHON) tools/lowest_numpy.py

# Takes about twenty minutes on an idle machine; writes benchmarks/results.json and the tables of docs/performance.md.
# The lens's rivals need Graphviz's program dot; a row says so where it is missing.
bench: $(VENV)/.bench
	$(BIN)/python benchmarks/run_all.py
	$(BIN)/python benchmarks/draw.py

# Compares the rows that have a bar with benchmarks/kept.json, as ratios to PyTorch; fails past 10 % worse.
bench-check: $(VENV)/.bench
	$(BIN)/python benchmarks/check.py

# Measures how far each method's explanations of the built-in model can be believed, and writes docs/faithfulness.md's
# tables; takes about half an hour on two idle cores and goes on where it was stopped: make faithfulness DATA=../shared/data
faithfulness: $(VENV)/.test
	$(BIN)/python benchmarks/faithfulness.py $(DATA)

# Ranks BM25's candidates on the articles that the built-in reranker never saw: make bench-reranker DATA=../shared/data
bench-reranker: $(VENV)/.test
	$(BIN)/python benchmarks/reranker_quality.py $(DATA) $(if $(SAMPLE),--sample $(SAMPLE))

# Unpacks handbooks of Debian's packages into out/debian, without installing them; examples/reranker_sources/handbooks.py
# lists them with their licences. Then makes of them and of the data folder what the built-in reranker is trained on:
# make reranker-pairs DATA=../shared/data
DEBIAN ?= out/debian
reranker-sources: $(VENV)/.test
	mkdir -p out/packages $(DEBIAN)
	cd out/packages && apt-get download -qq $$(PYTHONPATH=../../examples ../../$(BIN)/python -m reranker_sources.handbooks)
	for file in out/packages/*.deb; do dpkg-deb -x $$file $(DEBIAN) || exit 1; done
	ls out/packages > $(DEBIAN)/packages.txt

ROWS = squad=1895 question_sentence=2525 medquad=1808 tldr=1363 wordnet=1083 postgresql=821 python=750 apache=642 \
	django=613 sqlite=607 covid_qa=501 jargon=495 cmake=471 gnome=462 debian_handbook=301 rust=240
reranker-pairs: $(VENV)/.test
	$(BIN)/python examples/reranker_pairs.py $(DATA) --debian $(DEBIAN) --out out/pairs.jsonl --rows $(ROWS)

# Trains the built-in reranker again, from nothing but the sources, in under three hours on two cores, and writes its model
# folder to out/builtin; called again after an interruption it goes on: make reranker DATA=../shared/data
reranker: $(VENV)/.test
	test -f $(DEBIAN)/packages.txt || $(MAKE) reranker-sources
	test -f out/pairs.jsonl || $(MAKE) reranker-pairs
	$(BIN)/python examples/train_reranker.py $(DATA) --out out/reranker --resume
	$(BIN)/python examples/broaden_reranker.py out/pairs.jsonl --from out/reranker/stage-2/model --out out/breadth --resume
	$(BIN)/python examples/fuse_reranker.py out/breadth --out out/fused
	$(BIN)/python examples/package_reranker.py out/reranker out/breadth out/fused --out out/builtin

lint: $(VENV)/.test
	$(BIN)/ruff check src tests benchmarks examples tools
	$(BIN)/ruff format --check src tests benchmarks examples tools

docs: $(VENV)/.test
	$(BIN)/python -m pytest tests/project/test_docs.py

# Writes the lessons' programs and the pages that step through them to out/lessons; PICTURES=--pictures also the pictures
# of docs/lessons.
lessons: $(VENV)/.demo
	$(BIN)/python tools/lessons.py out/lessons $(PICTURES)

# The pictures of `backlight explain` in README.md and docs/explain.md, by the command that README.md prints; needs Chromium.
pictures: $(VENV)/.test
	PYTHONPATH=src:tests/support $(BIN)/python tools/explain_pictures.py

# Runs the code blocks of the founding documents under PyTorch and under backlight: make seeds SEEDS=../shared/seeds
seeds: $(VENV)/.test
	$(BIN)/python tools/seeds.py $(SEEDS)

clean:
	rm -rf $(VENV) $(CLUSTERS) build dist out src/*.egg-info
