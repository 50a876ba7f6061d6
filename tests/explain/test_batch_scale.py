"""The simulation of a thousand workers keeps its own promises: no unit lost, the time that the formula says."""

import importlib
import sys
from dataclasses import replace

import pytest
from paths import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
scale = importlib.import_module("batch_scale")

CALM = scale.Cost(pairs=100_000, rows=1000, workers=1, rate=50.0, spread=0.0, slow=0.0, failures=0.0)


@pytest.mark.parametrize("workers", [1, 2, 10])
def test_without_failures_the_time_is_that_of_the_formula(workers):
    found = scale.Simulation(replace(CALM, workers=workers)).run()
    assert found.work == pytest.approx(3.0 + (100_000 / 50 + 100 * 0.05) / workers, rel=0.01)
    assert found.counts["created"] == 100 and found.counts["started"] == workers


@pytest.mark.parametrize("speculate", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_whatever_dies_every_unit_is_created_once(speculate, seed):
    cost = replace(CALM, workers=20, failures=60.0, slow=0.2, spread=0.5, back=5.0, noticed=2.0, speculate=speculate)
    counts = scale.Simulation(cost, seed).run().counts
    assert counts["created"] == 100 and counts["died"] > 20 and counts["recomputed"] > 0
    assert (counts["computed twice"] > 0) == speculate and counts["dropped"] <= counts["computed twice"]


def test_the_same_seed_gives_the_same_run():
    cost = replace(CALM, workers=20, failures=10.0, slow=0.2)
    assert scale.Simulation(cost, 3).run() == scale.Simulation(cost, 3).run() != scale.Simulation(cost, 4).run()
