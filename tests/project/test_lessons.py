"""The lessons are true: their code prints what is said on both engines, and what they quote of replays happens."""

import importlib.util
import re

import pytest
from paths import ROOT

from backlight.torch_api.module_names import torch_names

PAGES = sorted((ROOT / "docs" / "lessons").glob("*.md"))
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def tool():
    spec = importlib.util.spec_from_file_location("lessons", ROOT / "tools" / "lessons.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LESSONS = tool().lessons()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_code_of_a_lesson_prints_on_backlight_what_it_prints_on_pytorch(page, tmp_path, monkeypatch, capsys):
    """tests/project/test_docs.py runs the same blocks on PyTorch."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    with torch_names():
        for block in BLOCK.findall(page.read_text()):
            exec(compile(block, str(page), "exec"), names)
            printed = capsys.readouterr().out
            for said in re.findall(r"# prints: (.*)", block):
                assert said.strip() in printed, f"{said!r} was not printed; got {printed!r}"


@pytest.fixture(scope="module")
def replays(tmp_path_factory):
    """Return the replay of each lesson's program on each engine."""
    folder = tmp_path_factory.mktemp("lessons")
    found = {}
    for lesson in LESSONS:
        script = folder / f"{lesson.name}.py"
        script.write_text(lesson.program, encoding="utf-8")
        for engine in ("backlight", "torch"):
            found[lesson.name, engine] = tool().record_of(script, engine).replay()
    return found


@pytest.mark.parametrize("engine", ["backlight", "torch"])
@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_what_a_lesson_quotes_is_in_its_replay(lesson, engine, replays):
    lines = {line.strip() for step in replays[lesson.name, engine].steps for line in step.text().splitlines()}
    assert [line for line in lesson.quoted if line.strip() not in lines] == []


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)
def test_every_lesson_has_a_program_a_picture_and_a_step_that_is_shown(lesson, replays):
    assert 1 <= lesson.step <= len(replays[lesson.name, "backlight"].steps)
    assert (ROOT / "docs" / "lessons" / "images" / f"{lesson.name}.svg").exists()
    assert f"images/{lesson.name}.svg" in (ROOT / "docs" / "lessons" / f"{lesson.name}.md").read_text()


def test_the_six_topics_are_there_and_all_five_questions_are_answered():
    assert len(LESSONS) == 6
    text = "\n".join(page.read_text() for page in PAGES)
    for number in range(1, 6):
        assert f"**Question {number}.**" in text


def test_the_tool_writes_programs_and_pages(tmp_path, capsys):
    assert tool().main([str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{lesson.name}{ending}" for lesson in LESSONS for ending in (".html", ".py")
    )
    assert '"open":true' in (tmp_path / "3_backward.html").read_text(encoding="utf-8")


def test_the_tool_says_how_it_is_used(capsys):
    assert tool().main([]) == 2
    assert "usage" in capsys.readouterr().err
