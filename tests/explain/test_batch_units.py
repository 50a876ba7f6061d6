"""Planned jobs: any worker does any unit in any order, parts are created once, and the merged job is one machine's."""

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from batch_inputs import WAYS, bytes_of, many, parts_of, records, small_files_only, write_lines
from batch_units import (
    PLANNED,
    do,
    files_but_of_plan,
    make_case,
    merged,
    processes_below,
    units_of,
    wait_until,
)
from tiny_bert import write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch import Reading, Settings, run_batch
from backlight.explain.batch.checksums import read_record, write_record
from backlight.explain.batch.sharding.merge import finish_batch
from backlight.explain.batch.sharding.model_reference import ModelReference
from backlight.explain.batch.sharding.packed_parts import packed_file, units_done
from backlight.explain.batch.sharding.plan import plan_batch
from backlight.explain.batch.sharding.stores import FolderStore
from backlight.explain.batch.sharding.unit_worker import this_process
from backlight.explain.batch.sharding.units import units_named
from soak.engine_kills import difference, play

UNITS = 6


@pytest.fixture(scope="module", params=["jsonl", "parquet"])
def either(request, tmp_path_factory):
    """A job of six units, in either format."""
    return make_case(tmp_path_factory.mktemp(request.param), 60, 10, request.param)


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A job of six units."""
    return make_case(tmp_path_factory.mktemp("case"), 60, 10)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A model."""
    return ModelReference(str(write_cross_encoder(tmp_path_factory.mktemp("tiny"))))


# --- cutting -----------------------------------------------------------------------------------------------------


def planned_as_whole(given, tiny: ModelReference, folder: Path, reading: Reading, settings: Settings) -> None:
    """Do a planned job backwards, and compare it with the same job on one machine."""
    out = folder / "out"
    plan_batch(given, out, tiny, settings, reading=reading)
    count = len(units_of(out))
    assert [one.error for one in do(out, range(count)[::-1])] == [None] * count
    found = merged(out)
    run_batch(given, folder / "whole", tiny.load(), settings, reading=reading)
    assert found == bytes_of(folder / "whole")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("rows", [1, 3])
def test_every_way_in_is_cut_so_that_the_merged_job_is_that_of_one_machine(way, rows, tiny, tmp_path):
    (tmp_path / "in").mkdir()
    given, reading = way(tmp_path / "in")
    planned_as_whole(given, tiny, tmp_path, Reading(**reading), Settings(rows=rows, options={"words": 1}))


def test_a_table_with_a_mark_quoted_lines_and_bad_bytes_is_cut_between_its_rows(tiny, tmp_path):
    lines = [f'"food {n}\nä","a ""leaf""\r\nof, {n}"' if n % 3 else "food,leaf" + ",x" * (n % 2) for n in range(12)]
    content = b"\xef\xbb\xbf" + "\r\n".join(["query,document", "", *lines]).encode() + b"\r\nfood,\xff leaf\r\n"
    (tmp_path / "a.csv").write_bytes(content)
    for rows in (1, 5):
        planned_as_whole(tmp_path / "a.csv", tiny, tmp_path / str(rows), Reading(), Settings(method="none", rows=rows))


def test_row_groups_and_files_of_parquet_are_read_from_the_middle(tiny, tmp_path):
    for number in range(3):
        rows = [{"query": "food", "documents": [one["document"] for one in many(3, seed=n)]} for n in range(5)]
        table = pyarrow.Table.from_pylist(rows if number != 1 else [], schema=pyarrow.Table.from_pylist(rows).schema)
        (tmp_path / "in").mkdir(exist_ok=True)
        pyarrow.parquet.write_table(table, tmp_path / "in" / f"{number}.parquet", row_group_size=2)
    planned_as_whole(tmp_path / "in", tiny, tmp_path, Reading(), Settings(method="none", rows=4))


def test_a_packed_file_is_cut_where_its_content_is(tiny, tmp_path):
    lines = "".join(json.dumps(one) + "\n" for one in many(20)).encode()
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(lines[:500]) + gzip.compress(lines[500:]))
    planned_as_whole(tmp_path / "a.jsonl.gz", tiny, tmp_path, Reading(), Settings(method="none", rows=7))


def test_planning_again_writes_the_same_plan_and_another_job_is_refused(case, tmp_path):
    out = case.plan(tmp_path / "out")
    before = bytes_of(out)
    assert bytes_of(case.plan(out)) == before
    with pytest.raises(InputError, match="holds another job, where settings rows was 10 and is 9"):
        plan_batch(case.file, out, ModelReference(str(case.model)), Settings(rows=9, options={"words": 2}))
    assert bytes_of(out) == before


@pytest.mark.parametrize("lines, said", [([], "must hold a row at least"), (["?", "?"], "of the first 2 none can")])
def test_an_input_without_a_usable_row_is_refused_by_the_plan_and_leaves_none(lines, said, tiny, tmp_path):
    with pytest.raises(InputError, match=said):
        plan_batch(write_lines(tmp_path / "a.jsonl", lines), tmp_path / "out", tiny)
    assert not (tmp_path / "out" / "job.json").exists() and not (tmp_path / "out" / "plan.json").exists()


def test_shares_of_any_number_hold_each_unit_once():
    for count in (1, 7, 400):
        for shares in (1, 3, 400):
            found = [number for k in range(shares) for number in units_named(f"{k + 1}/{shares}", count)]
            assert found == list(range(count))
    for text, said in [
        ("0/4", "a share from 1/4"),
        ("5/4", "a share from"),
        ("7", "from 0 to 6"),
        ("x", "must be like"),
    ]:
        with pytest.raises(InputError, match=said):
            units_named(text, 7)


# --- doing and merging -------------------------------------------------------------------------------------------


def test_units_done_in_any_order_by_overlapping_workers_merge_to_the_job_of_one_machine(either, tmp_path):
    out = either.plan(tmp_path / "out")
    numbers = [*range(UNITS), *range(UNITS)]
    random.Random(0).shuffle(numbers)
    outcomes = do(out, numbers)
    assert sum(one.created for one in outcomes) == UNITS
    assert sum(one.rows for one in outcomes if one.created) == 60
    assert sum(one.bad for one in outcomes if one.created) == len(range(0, 60, 7))
    assert merged(out) == either.whole
    assert merged(out) == either.whole, "finishing twice"
    assert [one.created for one in do(out)] == [False] * UNITS, "what is merged is done"


TWO = """
import sys
from backlight.explain.batch.sharding.plan import read_plan, read_units
from backlight.explain.batch.sharding.unit_worker import UnitTask, worker_for
out = sys.argv[1]
task = UnitTask(out)
worker_for(task)
print(flush=True)
sys.stdin.readline()
for unit in read_units(out, read_plan(out)):
    print(int(task(unit).created))
"""


def test_a_unit_that_two_processes_do_at_once_is_there_once(case, tmp_path):
    out = case.plan(tmp_path / "out")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    racers = [subprocess.Popen([sys.executable, "-c", TWO, str(out)], **pipes) for _ in range(2)]
    for racer in racers:
        racer.stdout.readline()
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    created = [racer.communicate()[0].split() for racer in racers]
    assert [sorted(of_unit) for of_unit in zip(*created, strict=True)] == [["0", "1"]] * UNITS
    assert merged(out) == case.whole


def test_a_file_is_created_once_by_many_threads_and_keeps_the_first_content(tmp_path):
    store, ready = FolderStore(tmp_path), threading.Barrier(8)
    won: list[tuple[int, int]] = []

    def race(number: int) -> None:
        for name in range(20):
            ready.wait()
            if store.create(f"units/{name}", str(number).encode() * 1000):
                won.append((name, number))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(name for name, _ in won) == list(range(20))
    assert all(store.read(f"units/{name}") == str(number).encode() * 1000 for name, number in won)
    assert len(store.names("units")) == 20


def test_a_job_that_one_machine_began_is_done_by_workers_and_the_reverse(case, tmp_path):
    model = ModelReference(str(case.model))

    def stop(stand):
        if stand.rows > 25:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_batch(case.file, tmp_path / "one", model.load(), case.settings, watch=stop)
    case.plan(tmp_path / "one")
    assert sum(one.created for one in do(tmp_path / "one")) == UNITS - 2
    assert merged(tmp_path / "one") == case.whole
    case.plan(tmp_path / "other")
    do(tmp_path / "other", [1, 4])
    found = run_batch(case.file, tmp_path / "other", model.load(), case.settings)
    assert found.resumed == 20
    assert files_but_of_plan(tmp_path / "other") == case.whole


def test_records_from_standard_input_can_be_planned(tiny, tmp_path):
    planned_as_whole(records(), tiny, tmp_path, Reading(), Settings(method="none", rows=3))


# --- what goes wrong ---------------------------------------------------------------------------------------------


def test_finishing_names_the_units_that_are_not_done(case, tmp_path, capsys):
    out = case.plan(tmp_path / "out")
    do(out, [0, 3])
    assert main(["batch", "finish", str(out), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert f"4 of 6 units are not done: give backlight batch work {out} --units 1-2,4-5, then finish again" in said
    assert not (out / "summary.json").exists() and said.count("\n") == 1
    assert main(["batch", "finish", str(out), "--quiet"]) == 2
    assert capsys.readouterr().err == said, "what is merged stays so, and what is missing is no damage"
    assert main(["batch", "work", str(out), "--units", "1-2,4-5", "--quiet"]) == 0
    assert merged(out) == case.whole


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    file.write_bytes(content)


def copy_another(file: Path) -> None:
    shutil.copyfile(file.with_name("part-00004.packed"), file)


@pytest.mark.parametrize("damage", [cut_short, empty, lengthen, flip_a_byte, copy_another])
def test_a_damaged_part_is_named_removed_and_done_again(damage, case, tmp_path):
    out = case.plan(tmp_path / "out")
    do(out)
    damage(out / packed_file(2))
    repairs = []
    with pytest.raises(InputError, match=r"1 of 6 unit is not done: .* --units 2, then"):
        finish_batch(out, notice=repairs.append)
    (repair,) = repairs
    assert repair.file == packed_file(2) and repair.repair == "removed, and its unit is to be done again"
    assert [one.created for one in do(out)] == [False, False, True, False, False, False]
    assert merged(out) == case.whole


def test_a_part_that_was_damaged_after_it_was_merged_is_done_again(case, tmp_path):
    out = case.plan(tmp_path / "out")
    do(out)
    finish_batch(out)
    cut_short(out / "parts" / "part-00003.jsonl")
    repairs = []
    with pytest.raises(InputError, match="--units 3, then finish again"):
        finish_batch(out, notice=repairs.append)
    assert [repair.file for repair in repairs] == ["parts/part-00003.jsonl"]
    assert sum(one.created for one in do(out)) == 1
    assert merged(out) == case.whole


def test_an_input_that_was_changed_since_the_plan_is_named_with_unit_worker_and_lines(tiny, tmp_path):
    file = write_lines(tmp_path / "a.jsonl", many(30))
    out = tmp_path / "out"
    plan_batch(file, out, tiny, Settings(method="none", rows=10))
    content = file.read_bytes()
    file.write_bytes(content[:-40] + b"x" + content[-39:])
    first, second, third = do(out)
    assert first.error is None and second.error is None
    assert third.error == (
        f"unit 2, worker {this_process()}: lines 21 to 30 of {file} are not as they were planned: restore the file, or "
        "plan a new job in another folder"
    )
    file.write_bytes(content)
    assert [one.created for one in do(out)] == [False, False, True]
    file.rename(tmp_path / "b.jsonl")
    out = tmp_path / "two"
    plan_batch(tmp_path / "b.jsonl", out, tiny, Settings(method="none", rows=10))
    (tmp_path / "b.jsonl").rename(tmp_path / "c.jsonl")
    assert "has no input" in do(out, [0])[0].error
    assert do(out, [0], given=str(tmp_path / "c.jsonl"))[0].error is None


def test_another_version_on_a_worker_is_named(case, tmp_path):
    out = case.plan(tmp_path / "out")
    plan = read_record(out / "plan.json", "plan.json")
    write_record(out / "plan.json", {**plan, "backlight": "9.9"})
    said = do(out, [0])[0].error
    assert said.startswith(f"worker {this_process()} has backlight ") and "was planned with 9.9: install that" in said


def test_other_kernels_on_a_worker_are_named(case, tmp_path):
    out = case.plan(tmp_path / "out")
    plan = read_record(out / "plan.json", "plan.json")
    write_record(out / "plan.json", {**plan, "kernels": "v9"})
    assert "planned with v9, so last digits would differ: set BACKLIGHT_KERNELS=v9 there" in do(out, [0])[0].error


def test_a_worker_without_the_model_or_with_another_one_is_named(case, tmp_path):
    model = shutil.copytree(case.model, tmp_path / "model")
    plan_batch(case.file, tmp_path / "out", ModelReference(str(model)), case.settings)
    model.rename(tmp_path / "elsewhere")
    said = do(tmp_path / "out", [0])[0].error
    assert f"worker {this_process()} has no model {model}" in said and "copy its folder there" in said
    other = write_cross_encoder(tmp_path / "other", seed=1)
    assert "has another model under" in do(tmp_path / "out", [0], model=str(other))[0].error
    assert do(tmp_path / "out", [0], model=str(tmp_path / "elsewhere"))[0].created


def test_a_plan_that_is_not_there_or_damaged_is_one_line(case, tmp_path, capsys):
    (tmp_path / "nothing").mkdir()
    for command in ("work", "finish", "slurm"):
        assert main(["batch", command, str(tmp_path / "nothing")]) == 2
        assert "must hold a planned job, and has no plan.json: give backlight batch plan" in capsys.readouterr().err
    out = case.plan(tmp_path / "out")
    cut_short(out / "units.jsonl")
    assert main(["batch", "work", str(out)]) == 2
    assert "units.jsonl of" in (said := capsys.readouterr().err) and "no part is lost" in said
    case.plan(out)
    do(out)
    assert merged(out) == case.whole


def test_a_full_disk_is_one_line_with_the_unit_and_the_job_goes_on_when_there_is_room(case, tmp_path):
    out = case.plan(tmp_path / "out")
    command = [sys.executable, "-B", "-m", "backlight", "batch", "work", str(out), "--quiet"]
    found = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_files_only(1000))
    assert found.returncode == 2 and found.stderr.count("\n") == 1, found.stderr
    assert "unit 0, worker" in found.stderr and "File too large" in found.stderr
    assert f"backlight batch work {out} --units 0" in found.stderr
    assert not any((out / "units").iterdir())
    subprocess.run(command, check=True)
    assert merged(out) == case.whole


def test_workers_that_are_killed_ten_times_lose_and_double_nothing(tmp_path):
    case = make_case(tmp_path, 200, 10)
    assert set(play(case, "local:2", tmp_path).values()) == {0}


def test_rows_that_are_lost_doubled_or_changed_are_found(case):
    """What the tests of killed workers compare by can fail."""
    name = "parts/part-00001.jsonl"
    first, *others = case.whole[name].splitlines(keepends=True)
    changed = first.replace(b'"tokens":', b'"tokens":1')
    for content, wrong in (
        (others, "lost"),
        ([first, first, *others], "doubled"),
        ([changed, *others], "with other bytes"),
    ):
        found = difference(case.whole, {**case.whole, name: b"".join(content)})
        assert {what for what, count in found.items() if count} == {wrong, "files that differ"}
    assert set(difference(case.whole, case.whole).values()) == {0}


# --- the commands ------------------------------------------------------------------------------------------------


def test_the_commands_plan_work_and_finish_print_what_comes_next(case, tmp_path, capsys):
    out = tmp_path / "out"
    planned = ["batch", "plan", str(case.file), "-o", str(out), "--model", str(case.model), "--rows", "10"]
    planned += ["--option", "words=2"]
    assert main(planned) == 0
    printed = capsys.readouterr().out
    assert "6 units of 60 rows; next:" in printed and f"backlight batch work {out}" in printed
    for share in ("2/2", "1/2", "2/2"):
        assert main(["batch", "work", str(out), "--units", share]) == 0
    said = capsys.readouterr()
    assert said.out == "3 units done\n3 units done\n0 units done\n"
    assert "unit 5 done: 10 rows, 1 bad" in said.err
    assert main(["batch", "finish", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"] == 60
    assert (out / "report.html").stat().st_size > 1000
    assert [row["row"] for row in parts_of(out)] == [number for number in range(60) if number % 7]


def test_one_command_on_processes_of_this_machine_writes_what_it_writes_in_one(case, tmp_path, capsys):
    out = tmp_path / "out"
    command = ["batch", str(case.file), "-o", str(out), "--model", str(case.model), "--rows", "10"]
    command += ["--option", "words=2", "--on", "local:2"]
    assert main(command) == 0
    found = bytes_of(out)
    assert {name: found[name] for name in case.whole} == case.whole
    assert set(found) - set(case.whole) == {*PLANNED, "report.html"}
    assert main([*command, "--strict"]) == 2
    assert main([*command[:-1], "cloud:3"]) == 2
    assert "--on must be local:N, or dask://" in capsys.readouterr().err
    assert main([*command[:3], "s3://bucket/out", "--on", "local:2"]) == 2
    assert "-o must be a folder" in capsys.readouterr().err


def obey_interrupts():
    """Undo that a shell's background jobs ignore Ctrl-C, and so what they start."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_the_processes_and_the_same_command_goes_on(tmp_path):
    case = make_case(tmp_path, 200, 10)
    out = case.plan(tmp_path / "out")
    command = [sys.executable, "-m", "backlight", "batch", "work", str(out), "--on", "local:2"]
    running = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=obey_interrupts
    )
    wait_until(lambda: units_done(FolderStore(out)))
    workers = processes_below(running.pid)
    os.killpg(running.pid, 2)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130 and "Traceback" not in said
    assert "stopped; finished units are kept, and the same command resumes the job" in said
    wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in workers))
    subprocess.run(command, check=True, capture_output=True)
    assert merged(out) == case.whole


def test_the_script_for_slurm_does_the_job_whatever_order_its_tasks_run_in(case, tmp_path, capsys):
    out = case.plan(tmp_path / "o u t")
    assert main(["batch", "slurm", str(out), "--tasks", "4", "--cpus", "2"]) == 0
    script = tmp_path / "job.sh"
    script.write_text(capsys.readouterr().out)
    assert "#SBATCH --array=1-4" in script.read_text() and "#SBATCH --cpus-per-task=2" in script.read_text()
    for task in ("3", "1", "4", "1", "2"):
        subprocess.run(["bash", str(script)], check=True, env={**os.environ, "SLURM_ARRAY_TASK_ID": task})
    assert merged(out) == case.whole
