"""What the scripts share: their command line, their rows as plain data, and the table they print."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import measure
import peak
import quiet
from measure import FLOOR, OURS, Bar, Case, Samples, quartiles, ratio

UNITS = {"us": 1e6, "ms": 1e3, "s": 1.0}
IDLE_LIMIT = 60.0  # seconds to wait for an idle moment


def rows(suite: str, cases: Sequence[Case], script: Path, options: argparse.Namespace) -> list[dict]:
    """Measure the cases that the options ask for and return a row for each, as it is written to JSON."""
    found = []
    for case in chosen(cases, options):
        samples, apart = measure.run_case(case, quick=options.quick)
        memory = {} if options.quick else {name: peak.in_child(script, case.name, name) for name in case.memory}
        found.append(row_of(suite, case, samples, memory, apart))
        print(text_of(found[-1]), flush=True)
    return found


def chosen(cases: Sequence[Case], options: argparse.Namespace) -> list[Case]:
    """Return the cases whose row was named, or that have a bar, or all."""
    cases = [case for case in cases if case.bars] if options.barred else cases
    if not options.only:
        return list(cases)
    unknown = set(options.only) - {case.name for case in cases}
    if unknown:
        raise SystemExit(f"no row is called {', '.join(sorted(unknown))}: {', '.join(case.name for case in cases)}")
    return [case for case in cases if case.name in options.only]


def row_of(suite: str, case: Case, samples: Samples, memory: dict, apart: float | None) -> dict:
    """Return what was measured as plain data; times in seconds, memory in MiB."""
    times = {
        name: [case.scale * one for one in samples.times[name]] for name in case.candidates if name in samples.times
    }
    row = {
        "suite": suite,
        "row": case.name,
        "threads": case.threads,
        "unit": case.unit,
        "seconds": {name: quartiles(values) for name, values in times.items()},
        "ratios": {name: ratio(times[OURS], values) for name, values in times.items() if name != OURS},
        "memory": memory,
        "rounds": len(samples.times[OURS]),
        "dropped": samples.dropped,
        "noisy": samples.noisy,
        "left_out": samples.left_out,
        "apart": apart,
    }
    if case.floor:
        row["floor"] = _floor(case, samples, times[OURS])
        row["ratios"][FLOOR] = row["floor"]["ratio"]
    row["bars"] = [judged(bar, row) for bar in case.bars]
    return row


def _floor(case: Case, samples: Samples, ours: list[float]) -> dict:
    """Return the floor's time at the rate of its fastest probe, and our time over it, round by round."""
    probes = {name: values for name, values in samples.times.items() if name.startswith(FLOOR)}
    name, values = min(probes.items(), key=lambda probe: quartiles(probe[1])[1])
    work = case.scale * case.floor.amount / case.floor.probe_amount
    least = [work * value for value in values]
    return {
        "probe": name.removeprefix(f"{FLOOR}: "),
        "unit": case.floor.unit,
        "amount": case.floor.amount * case.scale,
        "rate": case.floor.probe_amount / quartiles(values)[1],
        "seconds": quartiles(least)[1],
        "ratio": ratio(ours, least),
    }


def judged(bar: Bar, row: dict) -> dict:
    """Return a bar with what the row reached; None where no rival was there to compare with."""
    result = {"at_most": bar.at_most, "against": list(bar.against), "of": bar.of, "reached": None, "met": None}
    if bar.of == "memory":
        rivals = [row["memory"][name]["peak"] for name in bar.against if name in row["memory"]]
        if rivals and OURS in row["memory"]:
            result["reached"] = row["memory"][OURS]["peak"] / min(rivals)
    elif bar.of == "extra":
        result["reached"] = row["seconds"][OURS][1] - row["seconds"][bar.against[0]][1]
    else:
        reached = [row["ratios"][name][1] for name in bar.against if name in row["ratios"]]
        result["reached"] = max(reached, default=None)  # the best rival gives the largest ratio
    if result["reached"] is not None:
        result["met"] = result["reached"] <= bar.at_most
    return result


def text_of(row: dict) -> str:
    """Return a row for people, a line for each candidate: median (quartiles), our ratio to it, its peak memory."""
    size = UNITS[row["unit"]]
    lines = []
    for name, (low, middle, high) in row["seconds"].items():
        spread = f"({low * size:.4g}–{high * size:.4g})"
        against = "{1:7.2f} ({0:.2f}–{2:.2f})".format(*row["ratios"][name]) if name in row["ratios"] else ""
        memory = f"{row['memory'][name]['peak']:6.0f} MiB" if name in row["memory"] else ""
        lines.append(f"{name:26} {middle * size:9.4g} {row['unit']:2} {spread:19} {against:22} {memory}")
    if "floor" in row:
        floor = row["floor"]
        against = "{1:7.3g} ({0:.3g}–{2:.3g})".format(*floor["ratio"])
        lines.append(f"{FLOOR:26} {floor['seconds'] * size:9.4g} {row['unit']:2} {'':19} {against:22} {rate_of(floor)}")
    kept = [(name, used) for name, used in row["memory"].items() if name not in row["seconds"]]
    lines += [f"{name:26} {used['peak']:9.4g} MiB" for name, used in kept]
    lines += [f"{name:26} left out: {reason}" for name, reason in row["left_out"].items()]
    lines += [f"MISSED: {bar_text(bar)}" for bar in row["bars"] if bar["met"] is False]
    if row["noisy"]:
        lines.append("noisy: other processes used the CPU in nearly every round")
    names = [row["row"], *[""] * (len(lines) - 1)]
    return "\n".join(f"{name:27} {line.rstrip()}" for name, line in zip(names, lines))


def rate_of(floor: dict) -> str:
    """Return the machine's rate for people.

    >>> rate_of({"rate": 1.613e11, "unit": "FLOP", "probe": "np.matmul"})
    '161 GFLOP/s (np.matmul)'
    """
    return f"{floor['rate'] / 1e9:.3g} G{floor['unit'].replace('byte', 'B')}/s ({floor['probe']})"


def bar_text(bar: dict) -> str:
    """Return a bar and what was reached for people."""
    unit = " s over" if bar["of"] == "extra" else " ×"
    of = " in memory" if bar["of"] == "memory" else ""
    reached = "not measured" if bar["reached"] is None else f"{bar['reached']:.2f}"
    return f"{reached}, at most {bar['at_most']:.2f}{unit} {' or '.join(bar['against'])}{of}"


def main(
    suite: str,
    title: str,
    cases_of: Callable[[bool], Sequence[Case]],
    argv: Sequence[str] | None = None,
    *,
    sizes_of: Callable[[], list[dict]] = list,
) -> int:
    """Run a suite from the command line; return 1 with --check if a bar is missed.

    Args:
        cases_of: returns the cases; given True, small ones for a smoke run.
        sizes_of: returns rows that need no timing.
    """
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    script = Path(sys.argv[0] if argv is None else sys.modules[cases_of.__module__].__file__).resolve()
    options = parsed(title, argv)
    cases = cases_of(options.quick)
    if options.peak:
        peak.print_peak(cases, *options.peak)
        return 0
    share = 0.0 if options.quick else quiet.wait_for_idle(IDLE_LIMIT)
    print(f"{title}: median (quartiles); {OURS}'s time over each, round by round (quartiles)", flush=True)
    if share > quiet.BUSY:
        print(f"the machine is not idle: others use {share:.2f} of a core", flush=True)
    found = rows(suite, cases, script, options)
    if not options.only and not options.barred:
        sizes = sizes_of()
        for row in sizes:
            print(text_of(row))
        found += sizes
    if options.json:
        options.json.write_text(json.dumps({"suite": suite, "title": title, "rows": found}, indent=1) + "\n")
    missed = [bar for row in found for bar in row["bars"] if bar["met"] is False]
    return int(bool(missed) and options.check)


def parsed(title: str, argv: Sequence[str] | None) -> argparse.Namespace:
    """Return the options that every script takes."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="small sizes, two rounds, no memory: does it run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the rows there as well")
    parser.add_argument("--only", action="append", metavar="ROW", help="measure this row only; may be repeated")
    parser.add_argument("--barred", action="store_true", help="measure only the rows that have a bar")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a bar is missed")
    parser.add_argument("--peak", nargs=2, metavar=("ROW", "CANDIDATE"), help="print one candidate's peak memory")
    return parser.parse_args(argv)
