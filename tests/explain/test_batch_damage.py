"""A job whose files were damaged between two runs: what is bad is found, named and made again, and no row is lost."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from batch_inputs import as_beir, bytes_of, many, parts_of, small_files_only, write_lines
from tiny_bert import cross_encoder, write_cross_encoder

from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch import Reading, Settings, run_batch
from backlight.explain.batch.lock import only_process

ROWS = 40
LINES = [record if number % 7 else "{broken" for number, record in enumerate(many(ROWS))]


@pytest.fixture(scope="module", params=["jsonl", "parquet"])
def whole(request, tmp_path_factory):
    """A job that nothing happened to, in four parts: its settings, its input, what it wrote."""
    folder = tmp_path_factory.mktemp(request.param)
    settings = Settings(rows=10, format=request.param)
    file = write_lines(folder / "a.jsonl", LINES)
    run_batch(file, folder / "out", cross_encoder(), settings)
    return settings, file, bytes_of(folder / "out")


def copied(files: dict[str, bytes], folder: Path) -> Path:
    """Write a job's files into a folder."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def go_on(whole, out: Path):
    settings, file, _ = whole
    return run_batch(file, out, cross_encoder(), settings)


# --- damage to one file --------------------------------------------------------------------------------------------


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut_short(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def cut_at_a_line(file: Path) -> None:
    file.write_bytes(file.read_bytes().rpartition(b"\n")[0].rpartition(b"\n")[0] + b"\n")


def flip_a_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def no_json(file: Path) -> None:
    file.write_text("{broken\n")


def too_deep(file: Path) -> None:
    file.write_text("[" * 100_000)


def lengthen(file: Path) -> None:
    file.write_bytes(file.read_bytes() * 2)


def delete(file: Path) -> None:
    file.unlink()


def replace_by_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def replace_by_endless_link(file: Path) -> None:
    """Make a file that nobody can open, root neither."""
    file.unlink()
    file.symlink_to(file.name)


DAMAGES = [empty, cut_short, cut_at_a_line, flip_a_byte, no_json, too_deep, lengthen, delete, replace_by_folder]
DAMAGES.append(replace_by_endless_link)


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["parts/part-00001", "bad/part-00001", "done/part-00001"])
def test_a_damaged_part_is_computed_again_and_named(name, damage, whole, tmp_path):
    out = copied(whole[2], tmp_path)
    (file,) = out.glob(f"{name}.*")
    damage(file)
    found = go_on(whole, out)
    (repair,) = found.repairs
    named = repair.file == file.relative_to(out).as_posix() or (damage is delete and "part-00001" in repair.file)
    assert named and repair.repair == "computed again"
    assert (found.rows, found.resumed) == (ROWS, ROWS - 10)
    assert bytes_of(out) == whole[2]
    assert go_on(whole, out).repairs == ()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_job_file_is_written_anew_and_named(damage, whole, tmp_path):
    out = copied(whole[2], tmp_path)
    damage(out / "job.json")
    found = go_on(whole, out)
    assert [(repair.file, repair.repair) for repair in found.repairs] == [
        ("job.json", "written anew, as this command says")
    ]
    assert found.resumed == ROWS and bytes_of(out) == whole[2]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_sums_up_the_parts_is_written_anew_by_every_run(damage, whole, tmp_path):
    out = copied(whole[2], tmp_path)
    for name in ("summary.json", "sample.jsonl", "bad_rows.jsonl", f"words.{whole[0].format}"):
        damage(out / name)
    assert go_on(whole, out).resumed == ROWS
    assert bytes_of(out) == whole[2]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("name", ["texts.sqlite", "done/texts.json"])
def test_damaged_texts_of_a_collection_are_looked_up_again(name, damage, tmp_path):
    (tmp_path / "in").mkdir()
    given, reading = as_beir(tmp_path / "in")
    out = tmp_path / "out"
    run_batch(given, out, cross_encoder(), reading=Reading(**reading))
    before = bytes_of(out)
    damage(out / name)
    for part in ("parts/part-00000.jsonl", "done/part-00000.json"):
        (out / part).unlink()
    found = run_batch(given, out, cross_encoder(), reading=Reading(**reading))
    assert (found.rows, found.resumed) == (4, 0)
    assert bytes_of(out) == before


def test_standard_input_that_was_damaged_is_refused_and_may_be_given_again(tmp_path):
    rows = many(8)
    run_batch(rows, tmp_path, cross_encoder())
    before = bytes_of(tmp_path)
    flip_a_byte(tmp_path / "standard_input.jsonl")
    with pytest.raises(InputError, match="holds another job, where input files blake2b was"):
        run_batch([], tmp_path, cross_encoder())
    found = run_batch(rows, tmp_path, cross_encoder())
    assert found.resumed == 8 and bytes_of(tmp_path) == before


def test_other_standard_input_is_refused_and_the_kept_one_stays(tmp_path):
    rows = many(8)
    run_batch(rows, tmp_path, cross_encoder())
    before = bytes_of(tmp_path)
    with pytest.raises(InputError, match="holds another job"):
        run_batch(many(8, seed=1), tmp_path, cross_encoder())
    assert run_batch([], tmp_path, cross_encoder()).resumed == 8
    assert bytes_of(tmp_path) == before


# --- files that do not belong --------------------------------------------------------------------------------------


def test_a_part_of_another_job_is_found_though_its_record_came_along(whole, tmp_path):
    settings, _, files = whole
    other = write_lines(tmp_path / "other.jsonl", many(ROWS, seed=1))
    run_batch(other, tmp_path / "other", cross_encoder(), settings)
    out = copied(files, tmp_path / "out")
    part = f"parts/part-00002.{settings.format}"
    (out / part).write_bytes((tmp_path / "other" / part).read_bytes())
    found = go_on(whole, out)
    assert [repair.file for repair in found.repairs] == [part] and bytes_of(out) == files
    for name in (part, "done/part-00002.json"):
        (out / name).write_bytes((tmp_path / "other" / name).read_bytes())
    found = go_on(whole, out)
    assert [str(repair) for repair in found.repairs] == ["done/part-00002.json is of another job: computed again"]
    assert bytes_of(out) == files


def test_a_part_in_the_place_of_another_is_found_though_its_record_came_along(whole, tmp_path):
    settings, _, files = whole
    out = copied(files, tmp_path)
    for folder, suffix in (("parts", settings.format), ("bad", "jsonl"), ("done", "json")):
        (out / folder / f"part-00001.{suffix}").write_bytes(files[f"{folder}/part-00002.{suffix}"])
    found = go_on(whole, out)
    said = "done/part-00001.json is a copy of part-00002.json: computed again"
    assert [str(repair) for repair in found.repairs] == [said] and bytes_of(out) == files


def test_bad_rows_that_no_record_knows_are_found(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", many(20))
    run_batch(file, tmp_path / "out", cross_encoder(), Settings(rows=10))
    before = bytes_of(tmp_path / "out")
    write_lines((tmp_path / "out" / "bad_rows.jsonl"), []).rename(tmp_path / "x")
    (tmp_path / "out" / "bad").mkdir(exist_ok=True)
    write_lines(tmp_path / "out" / "bad" / "part-00001.jsonl", [{"line": 1, "kind": "x", "reason": "y", "raw": ""}])
    found = run_batch(file, tmp_path / "out", cross_encoder(), Settings(rows=10))
    assert (found.bad, [repair.file for repair in found.repairs]) == (0, ["bad/part-00001.jsonl"])
    assert bytes_of(tmp_path / "out") == before


def test_a_part_that_is_there_twice_is_removed_and_other_files_are_named_and_left(whole, tmp_path):
    settings, _, files = whole
    out = copied(files, tmp_path)
    part = files[f"parts/part-00001.{settings.format}"]
    (out / f"parts/part-00007.{settings.format}").write_bytes(part)
    (out / f"parts/part-00001 (copy).{settings.format}").write_bytes(part)
    (out / "notes.txt").write_text("mine")
    found = go_on(whole, out)
    assert [str(repair) for repair in found.repairs] == [
        f"parts/part-00001 (copy).{settings.format} is not of this job: left as it is",
        f"parts/part-00007.{settings.format} belongs to no row of the input: removed",
    ]
    extra = {f"parts/part-00001 (copy).{settings.format}": part, "notes.txt": b"mine"}
    assert bytes_of(out) == files | extra


def test_a_folder_with_something_in_it_is_never_removed(whole, tmp_path):
    out = copied(whole[2], tmp_path)
    part = out / f"parts/part-00001.{whole[0].format}"
    part.unlink()
    part.mkdir()
    (part / "mine.txt").write_text("mine")
    with pytest.raises(
        InputError, match=r"part-00001.* must be a file, and is a folder that is not empty: move it away"
    ):
        go_on(whole, out)
    assert (part / "mine.txt").read_text() == "mine"
    part.rename(tmp_path / "elsewhere")
    assert go_on(whole, out).resumed == ROWS - 10


def test_a_damaged_job_file_beside_parts_of_another_job_is_refused(whole, tmp_path):
    settings, _, files = whole
    out = copied(files, tmp_path / "out")
    no_json(out / "job.json")
    other = write_lines(tmp_path / "other.jsonl", many(ROWS, seed=1))
    before = bytes_of(out)
    with pytest.raises(InputError, match=r"job.json is not JSON, and the parts beside it are of another job"):
        run_batch(other, out, cross_encoder(), settings)
    assert bytes_of(out) == before
    assert run_batch(other, out, cross_encoder(), settings, replace=True).rows == ROWS


def test_all_parts_of_a_job_without_records_are_computed_again(whole, tmp_path):
    """Versions of backlight before records wrote job.json without an identity, and nothing in done/."""
    settings, _, files = whole
    job = json.loads(files["job.json"])
    older = {name: value for name, value in job.items() if name not in ("id", "blake2b")}
    kept = {name: content for name, content in files.items() if not name.startswith("done/")}
    out = copied(kept | {"job.json": json.dumps(older).encode()}, tmp_path)
    empty(out / f"parts/part-00001.{settings.format}")
    found = go_on(whole, out)
    assert [repair.file for repair in found.repairs] == [f"parts/part-0000{n}.{settings.format}" for n in range(4)]
    assert all("was not finished, or its record was lost" in repair.damage for repair in found.repairs)
    assert found.resumed == 0 and bytes_of(out) == files


def test_input_that_changes_while_it_is_read_is_refused(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", many(30))

    def append(stand):
        with open(file, "a") as out:
            out.write('{"query": "food", "document": "air"}\n')

    with pytest.raises(InputError, match=r"a.jsonl was changed while it was read"):
        run_batch(file, tmp_path / "out", cross_encoder(), Settings(rows=10), watch=append)


# --- the command, the disk, the lock -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return str(write_cross_encoder(tmp_path_factory.mktemp("model")))


def command_for(file: Path, out: Path, model: str) -> list[str]:
    return ["batch", str(file), "-o", str(out), "--model", model, "--rows", "10"]


def test_the_command_names_what_it_computed_again(tmp_path, model, capsys):
    command = command_for(write_lines(tmp_path / "a.jsonl", many(30)), tmp_path / "out", model)
    assert main([*command, "--quiet"]) == 0
    cut_short(tmp_path / "out" / "parts" / "part-00001.jsonl")
    (tmp_path / "out" / "report.html").write_text("")
    capsys.readouterr()
    assert main([*command, "--json"]) == 0
    printed, said = capsys.readouterr()
    assert "backlight: " in said and "part-00001.jsonl holds" in said and said.rstrip().endswith("computed again")
    (repair,) = json.loads(printed)["repairs"]
    assert repair["file"] == "parts/part-00001.jsonl" and repair["repair"] == "computed again"
    assert (tmp_path / "out" / "report.html").stat().st_size > 1000


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_full_disk_is_one_line_and_the_job_goes_on_when_there_is_room(format, tmp_path, model):
    command = command_for(write_lines(tmp_path / "a.jsonl", many(60)), tmp_path / "out", model)
    command = [sys.executable, "-B", "-m", "backlight", *command, "--format", format, "--quiet"]
    seen = set()
    for limit in (0, 100, 1_000, 5_000, 20_000, 60_000):
        found = subprocess.run(command, capture_output=True, text=True, preexec_fn=small_files_only(limit))
        assert found.returncode == 2 and found.stderr.count("\n") == 1, found.stderr
        assert "File too large" in found.stderr or "disk" in found.stderr
        seen.add((tmp_path / "out" / "parts").exists())
    assert seen == {True, False}
    subprocess.run(command, check=True)
    assert [row["row"] for row in parts_of(tmp_path / "out")] == list(range(60))


def test_output_where_nothing_can_be_written_is_one_line(tmp_path, model, capsys):
    file = write_lines(tmp_path / "a.jsonl", many(10))
    for out in ("/proc/out", "/dev/full", "/dev/null/out"):
        assert main(command_for(file, Path(out), model)) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_no_lock_file_is_left_after_any_end(tmp_path):
    file = write_lines(tmp_path / "a.jsonl", many(30))

    def hidden() -> list[str]:
        return [entry.name for entry in (tmp_path / "out").iterdir() if entry.name.startswith(".")]

    def interrupt(stand):
        assert hidden() == [".lock"]
        if stand.rows > 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_batch(file, tmp_path / "out", cross_encoder(), Settings(rows=10), watch=interrupt)
    assert hidden() == []
    with pytest.raises(InputError):
        run_batch(file, tmp_path / "out", cross_encoder(), Settings(rows=9))
    assert hidden() == []
    assert run_batch(file, tmp_path / "out", cross_encoder(), Settings(rows=10)).resumed == 10
    assert hidden() == []


HOLD = """
import sys
from pathlib import Path
from backlight.explain.batch.lock import only_process
with only_process(Path(sys.argv[1])):
    print(flush=True)
    sys.stdin.read()
"""


def test_the_lock_of_a_killed_process_holds_nothing_back(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    holder.stdout.readline()
    with pytest.raises(InputError, match=f"process {holder.pid} is at it"), only_process(tmp_path):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.communicate()
    assert (tmp_path / ".lock").exists()
    with only_process(tmp_path):
        pass
    assert not (tmp_path / ".lock").exists()


RACE = """
import os, sys
from pathlib import Path
from backlight.errors import InputError
from backlight.explain.batch.lock import only_process
folder, held = Path(sys.argv[1]), 0
while held < 300:
    try:
        with only_process(folder):
            os.close(os.open(folder / "inside", os.O_CREAT | os.O_EXCL))
            os.unlink(folder / "inside")
            held += 1
    except InputError:
        pass
"""


def test_two_processes_never_hold_a_folder_at_once_though_its_lock_file_comes_and_goes(tmp_path):
    racers = [subprocess.Popen([sys.executable, "-c", RACE, str(tmp_path)]) for _ in range(3)]
    assert [racer.wait(timeout=120) for racer in racers] == [0, 0, 0]
