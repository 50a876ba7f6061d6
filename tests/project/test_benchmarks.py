"""The benchmarks measure what they say: rounds in turn, floors, bars, kept figures; and every script runs."""

import copy
import importlib
import json
import re
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from paths import ROOT

FOLDER = ROOT / "benchmarks"
sys.path.insert(0, str(FOLDER))

check, draw, floors, measure, peak, pictures, quiet, run_all, suite = map(
    importlib.import_module,
    ("check", "draw", "floors", "measure", "peak", "pictures", "quiet", "run_all", "suite"),
)
SCRIPTS = sorted(Path(name).stem for name in run_all.SUITES.values())


@pytest.fixture(autouse=True)
def one_thread(monkeypatch):
    """Run on one thread, for tests share the cores, and leave BLAS and PyTorch with those they had."""
    torch = quiet.library("torch")
    count = torch.get_num_threads()
    with quiet.threadpool_limits(1, user_api="blas"):
        torch.set_num_threads(1)
        monkeypatch.setattr(quiet, "use_threads", lambda count: None)
        yield
    torch.set_num_threads(count)


def spin(seconds: float):
    """Return a work that keeps the processor busy for a time."""

    def work():
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    return work


def pair(**changes) -> measure.Case:
    """Return a case whose candidate sleeps less than PyTorch's stand-in."""
    settings = {
        "candidates": {"backlight": lambda: lambda: time.sleep(0.001), "torch": lambda: lambda: time.sleep(0.06)},
        "bars": (measure.Bar(1.0), measure.Bar(0.001)),
        "threads": 1,
        "tolerance": None,
        "rounds": 3,
    }
    return measure.Case("a pair", **(settings | changes))


def row_of(case: measure.Case, memory: dict | None = None) -> dict:
    samples, apart = measure.run_case(case, quick=True)
    return suite.row_of("fake", case, samples, memory or {}, apart)


def test_a_row_says_how_much_faster_and_which_bar_is_met():
    row = row_of(pair())
    assert row["seconds"]["backlight"][1] < row["seconds"]["torch"][1]
    assert row["ratios"]["torch"][1] < 1
    assert [bar["met"] for bar in row["bars"]] == [True, False]
    assert "MISSED" in suite.text_of(row)
    assert json.loads(json.dumps(row))["row"] == "a pair"


def test_candidates_run_in_turn():
    order = []
    works = {name: lambda name=name: order.append(name) or time.sleep(0.06) for name in "ab"}
    samples = measure.interleaved(works, 3, pause=False)
    assert "".join(order[2:8]) == "ababab"  # after one call of each that is not counted
    assert len(samples.times["a"]) == len(samples.times["b"]) >= 2


def test_ratios_are_taken_round_by_round():
    assert measure.ratio([1, 2, 3, 4, 5], [2, 4, 6, 8, 10]) == (0.5, 0.5, 0.5)
    assert measure.quartiles([7.0]) == (7.0, 7.0, 7.0)


def test_rounds_beside_other_processes_are_dropped(monkeypatch):
    shares = iter([0.9, 0.0, 0.0, 0.9, 0.0, 0.0])
    monkeypatch.setattr(quiet, "others_share", lambda start, end: next(shares))
    samples = measure.interleaved({"a": spin(0.001)}, 4, pause=False)
    assert (len(samples.times["a"]), samples.dropped, samples.noisy) == (4, 2, False)


def test_a_row_without_a_quiet_round_says_so(monkeypatch):
    monkeypatch.setattr(quiet, "others_share", lambda start, end: 0.9)
    samples = measure.interleaved({"a": spin(0.001)}, 3, pause=False)
    assert samples.noisy and len(samples.times["a"]) == samples.dropped == 6


def test_our_own_time_is_not_taken_for_others():
    start = quiet.now()
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    end = quiet.now()
    assert end.ours - start.ours > 0.05
    alone = quiet.Moment(1.0, start.machine + 0.3, start.ours + 0.3)
    assert quiet.others_share(quiet.Moment(0.0, start.machine, start.ours), alone) == 0
    beside = quiet.Moment(1.0, start.machine + 0.8, start.ours + 0.3)
    assert quiet.others_share(quiet.Moment(0.0, start.machine, start.ours), beside) == pytest.approx(0.485, abs=0.1)


def test_candidates_that_do_other_work_are_refused():
    case = pair(candidates={"backlight": lambda: lambda: 1.0, "torch": lambda: lambda: 1.1}, tolerance=1e-4)
    with pytest.raises(AssertionError, match=r"a pair: backlight is 9\.1e-02 away from torch"):
        measure.run_case(case, quick=True)


def test_a_rival_that_is_missing_is_named_and_a_bar_against_it_stays_open():
    def missing():
        return importlib.import_module("no_such_rival")

    candidates = {"backlight": lambda: spin(0.001), "other": missing}
    row = row_of(pair(candidates=candidates, optional=("other",), bars=(measure.Bar(0.9, against=("other",)),)))
    assert "no_such_rival" in row["left_out"]["other"]
    assert row["bars"][0]["met"] is None
    with pytest.raises(ImportError):
        measure.run_case(pair(candidates=candidates), quick=True)


def test_the_best_rival_counts():
    times = {"backlight": [1.0], "torch": [4.0], "torch, other": [2.0]}
    case = pair(candidates=dict.fromkeys(times), bars=(measure.Bar(0.4, against=("torch", "torch, other")),))
    row = suite.row_of("fake", case, measure.Samples(times), {}, None)
    assert row["bars"][0] | {"against": None} == {
        "at_most": 0.4, "against": None, "of": "time", "reached": 0.5, "met": False,
    }  # fmt: skip


def test_the_floor_is_the_amount_at_the_rate_of_the_fastest_probe():
    times = {"backlight": [4.0], "the floor: slow": [2.0], "the floor: fast": [1.0]}
    case = pair(candidates={"backlight": None}, floor=measure.Floor(300.0, "FLOP", {}, 100.0), bars=())
    floor = suite.row_of("fake", case, measure.Samples(times), {}, None)["floor"]
    assert (floor["probe"], floor["rate"], floor["seconds"], floor["ratio"][1]) == ("fast", 100.0, 3.0, 4 / 3)


@pytest.mark.parametrize("floor", [floors.gemm_floor(1e6, [(8, 8, 8), (4, 8, 2)]), floors.copy_floor(1e6, 100)])
def test_probes_do_their_amount(floor):
    for make in floor.probes.values():
        work = make()
        work()
    assert floor.probe_amount in (2 * 8**3 + 2 * 4 * 8 * 2, 2 * floors.SMALLEST_COPY)


def test_peak_memory_is_that_of_the_calls(capsys):
    def make():
        wasted = np.ones(1 << 23)  # what making it takes does not count
        del wasted
        return lambda: np.ones(1 << 22).sum()

    peak.print_peak([pair(candidates={"backlight": make})], "a pair", "backlight")
    used = json.loads(capsys.readouterr().out)
    assert 30 < used["peak"] - used["before"] < 50  # an array of 32 MiB


KEPT = {"fake / a": {"time": 0.5, "memory": 0.8}, "fake / b": {"time": 1.0}}


def measured(a: float, b: float, memory: float = 0.8) -> list[dict]:
    """Return two rows as a suite writes them."""
    bar = {"at_most": 1.0, "against": ["torch"], "of": "memory", "reached": memory, "met": True}
    rows = {"a": (a, [bar]), "b": (b, [])}
    return [
        {"suite": "fake", "row": name, "ratios": {"torch": (value,) * 3}, "bars": bars, "noisy": False}
        for name, (value, bars) in rows.items()
    ]


def test_what_is_within_ten_percent_passes():
    assert check.compare(KEPT, measured(0.55, 1.09)) == []


def test_what_is_past_ten_percent_fails_in_one_line():
    failures = check.compare(KEPT, measured(0.6, 0.9, memory=1.0))
    assert [str(failure) for failure in failures] == [
        "fake / a: time is 0.60 × PyTorch, kept is 0.50: 20% worse",
        "fake / a: memory is 1.00 × PyTorch, kept is 0.80: 25% worse",
    ]


def test_a_kept_row_that_is_not_measured_fails():
    (failure,) = check.compare(KEPT, measured(0.5, 1.0)[:1])
    assert str(failure) == "fake / b: time was not measured; kept is 1.00 × PyTorch"


def test_a_failing_row_is_measured_twice_more_before_it_counts():
    asked = []

    def again(names, values=iter((0.7, 0.52))):
        asked.append(names)
        return measured(next(values), 9.0)

    assert check.confirmed(KEPT, measured(0.6, 1.0), again) == []
    assert asked == [["fake / a"], ["fake / a"]]
    (failure,) = check.confirmed(KEPT, measured(0.9, 1.0), lambda names: measured(0.7, 1.0))
    assert failure.value == 0.7


def test_the_figures_of_quiet_rows_are_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(run_all, "KEPT", tmp_path / "kept.json")
    rows = [row for row in measured(0.5, 1.0) if row["bars"]]
    assert run_all.keep({"fake": {"rows": rows}}) == 0
    assert json.loads((tmp_path / "kept.json").read_text()) == {"fake / a": {"time": 0.5, "memory": 0.8}}
    noisy = [row | {"noisy": True} for row in copy.deepcopy(rows)]
    assert run_all.keep({"fake": {"rows": noisy}}) == 1


def test_tables_are_written_between_their_markers():
    row = row_of(pair(floor=floors.copy_floor(1e6, 100)), memory={"backlight": {"peak": 10.0}, "torch": {"peak": 20.0}})
    results = {
        "date": "2000-01-01",
        "machine": {
            "processor": "P",
            "cores": 2,
            "system": "S",
            "python": "3",
            "versions": {"torch": "2"},
            "kernels": "K",
        },
        "suites": {"tiny": {"title": "a title", "rows": [row]}},
    }
    page = "".join(
        f"before\n<!-- table: {name} -->\nold\n<!-- end -->\n"
        for name in ("tiny", "bars", "machine", "epoch", "other_machine")
    )
    ratios = {"backlight": [1.0, 1.0, 1.0], "torch": [0.1, 0.25, 0.5]}
    there = [row | {"ratios": ratios}, row | {"row": "measured there alone"}]
    other = results | {
        "machine": results["machine"] | {"processor": "Q"},
        "suites": {"tiny": {"title": "a title", "rows": there}},
    }
    written = draw.page_with_tables(page, results, other)
    assert written.count("old") == 1  # no results of epoch
    assert re.search(r"\| a pair \| .* ms .*GB/s", written) and "**no**" in written and "Measured on 2000" in written
    assert "![a title](images/performance_tiny.svg)" in written
    assert "| work | row | backlight's time over | P | Q |" in written and "0.25 (0.10–0.50) |" in written
    assert "measured there alone" not in written
    assert draw.page_with_tables(written, results, other) == written
    (svg,) = draw.pictures(results["suites"]).values()
    assert svg.startswith("<svg") and "a pair" in svg and "prefers-color-scheme: dark" in svg


def test_growth_is_drawn_over_its_sizes():
    rows = []
    for size in (16, 4096):
        row = row_of(pair(), memory={"backlight": {"peak": 10.0 + size}, "torch": {"peak": 20.0}})
        rows.append(row | {"row": f"MLP, batch {size}"})
    svg = pictures.growth_picture(rows)
    assert svg.count("<polyline") == 4 and "MLP, in a batch: MiB at the peak" in svg and "4,096" in svg


def test_every_marker_of_the_page_names_a_table():
    page = (FOLDER.parent / "docs" / "performance.md").read_text()
    assert {name for _, name, _ in draw.PLACE.findall(page)} == {*run_all.SUITES, "bars", "machine", "other_machine"}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_has_rows_of_rivals(name):
    module = importlib.import_module(name)
    cases = list(module.cases(quick=False))
    assert len({case.name for case in cases}) == len(cases)
    rival = RIVALS.get(name, "torch")
    assert all({"backlight", rival} <= set(case.candidates) for case in cases)
    assert module.cases(quick=True)


RIVALS = {"lens_pictures": "torchviz + dot"}
QUICK = {
    "tiny_ops": "16",
    "elementwise": "layer_norm 8 x 12",
    "training_steps": "MLP",
    "fashion_mnist_epoch": "preloaded",
    "double_backward": "order 2, 16 floats",
    "growth": "graph, 10 ops deep",
    "encoder": "1 pair, 16 tokens",
    "saliency": "1 pair, 16 tokens",
    "explained_ranking": "rank and explain 3",
    "import_time": "import",
    "lens_pictures": "layout, 24 nodes",
    "lens_recorder": "MLP on PyTorch",
    "lens_overhead": "MLP on PyTorch, structure and order",
    "lens_doctor": "MLP on PyTorch",
    "anomaly": "MLP, gradients",
    "func": "gradients of 64 examples, width 32",
    "rare_ops": "randn 1e3",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_runs(name, tmp_path, capsys):
    module = importlib.import_module(name)
    title = next(key for key, script in run_all.SUITES.items() if script == f"{name}.py")
    arguments = ["--quick", "--only", QUICK[name], "--json", str(tmp_path / "rows.json")]
    assert suite.main(title, module.TITLE, module.cases, arguments) == 0
    (row,) = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert row["row"] == QUICK[name] and row["seconds"]["backlight"][1] > 0
    assert QUICK[name] in capsys.readouterr().out
