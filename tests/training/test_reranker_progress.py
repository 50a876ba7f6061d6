"""How far a reranker's training is, in words and in lines."""

from backlight.cli.screens import reranker_training
from backlight.cli.screens.reranker_training import Lines, numbers_of, watcher
from backlight.training.reranker import TrainingProgress

STEP = TrainingProgress("training", 5, 1200, 0.25, 31.4, 65.0, {"ndcg": 0.8, "faq": 0.9, "wiki": 0.7})


def test_a_step_is_told_with_loss_speed_time_and_validation_by_domain():
    assert numbers_of(STEP) == (
        "5 of 1,200 · loss 0.2500 · 31 pairs/s · 1:05 left · validation nDCG@10 0.800 (faq 0.900, wiki 0.700)"
    )
    assert (
        numbers_of(TrainingProgress("mining", 3, 7)) == "3 of 7"
        and numbers_of(TrainingProgress("indexing", 0, 7)) == ""
    )


def test_where_there_is_no_terminal_a_line_is_printed_now_and_then(capsys, monkeypatch):
    times = iter([0.0, 1.0, 2.0, 20.0, 21.0])
    now = [0.0]
    monkeypatch.setattr(reranker_training.time, "monotonic", lambda: now[0])
    lines = Lines()
    other = TrainingProgress("training", 8, 1200, 0.25, 31.4, 60.0, {"ndcg": 0.9})
    for progress in (TrainingProgress("mining", 1, 7), TrainingProgress("mining", 2, 7), STEP, STEP, other):
        now[0] = next(times)
        lines.show(progress)
    said = capsys.readouterr().err.splitlines()
    assert [line.split(" · ")[1] for line in said] == ["1 of 7", "5 of 1,200", "5 of 1,200", "8 of 1,200"]


def test_a_terminal_gets_a_bar_with_the_numbers_below(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with watcher(quiet=False) as watch:
        watch(TrainingProgress("validating", 0, 7))
        watch(STEP)
    said = capsys.readouterr().err
    assert "training" in said and "━" in said and numbers_of(STEP) in said


def test_quiet_prints_nothing(capsys):
    with watcher(quiet=True) as watch:
        watch(STEP)
    assert capsys.readouterr() == ("", "")
