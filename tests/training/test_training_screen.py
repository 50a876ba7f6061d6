"""A run in the terminal is shown within its width, with what matters of it."""

import io
import math

from rich.console import Console
from small_runs import LR, STEPS_AN_EPOCH, small

from backlight.cli.screens.training import Picture, PlainLines, sparkline
from backlight.training.train import prepare


def records(tmp_path):
    run, seen = prepare(small(tmp_path / "run", epochs=2)), []
    run.train(seen.append)
    return run, seen


def test_the_picture_shows_numbers_and_a_line_for_each_layer_on_a_narrow_screen(tmp_path):
    run, seen = records(tmp_path)
    picture = Picture(run)
    for record in seen:
        picture.show(record)
    out = io.StringIO()
    Console(file=out, width=80).print(picture.draw())
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    for said in ("accuracy", "images/s", "epoch 2/2 · step 10/10", "1 Linear", "3 Linear"):
        assert said in out.getvalue()
    assert sum(bool(set("▁▂▃▄▅▆▇█") & set(line)) for line in lines) == 3


def test_the_picture_shows_the_rate_of_a_schedule_and_what_was_held_out(tmp_path):
    run = prepare(small(tmp_path / "run", 0.2, epochs=2, schedule={"name": "cosine"}))
    picture, pictures = Picture(run), []

    def show(record):
        picture.show(record)
        out = io.StringIO()
        Console(file=out, width=80).print(picture.draw())
        pictures.append(out.getvalue())

    run.train(show)
    half = pictures[STEPS_AN_EPOCH + 1]  # the first step of the second epoch, after five steps and a validation
    assert "validation" in half
    assert f"{LR / 2:.3g}" in half
    assert "test" in pictures[-1]
    (line,) = [line for line in pictures[-1].splitlines() if line.startswith("lr so far")]
    assert line.split()[-1] == sparkline([1 + math.cos(math.pi * step / 10) for step in range(10)])
    assert max(len(line) for picture in pictures for line in picture.splitlines()) <= 80


def test_the_time_left_follows_the_steps_of_this_process(tmp_path):
    run, seen = records(tmp_path)
    lines = PlainLines(run, io.StringIO())
    steps = [{**record, "seconds": 100.0 + 10 * record["step"]} for record in seen if "loss" in record]
    lines.note(steps[0])
    assert lines.left == "?"
    lines.note(steps[3])
    assert lines.left == "1:00"


def test_a_loss_that_is_not_finite_is_said(tmp_path):
    run, seen = records(tmp_path)
    out = io.StringIO()
    PlainLines(run, out).show({**seen[0], "loss": None})
    assert "loss not finite" in out.getvalue()


def test_a_sparkline_of_equal_values_is_flat():
    assert sparkline([2.0, 2.0]) == "▁▁"
    assert sparkline([None]) == ""
