"""Planned jobs in an object store: the same parts as in a folder, though requests are delayed, lost and repeated."""

import pytest

pytest.importorskip("obstore", reason='the tests of object stores need pip install ".[objects]"')
pytest.importorskip("moto.server", reason='the tests of object stores need pip install "moto[s3,server]"')

# isort: split

from batch_inputs import as_beir, bytes_of
from batch_units import do, files_but_of_plan, make_case, merged
from object_store_server import Store
from tiny_bert import write_cross_encoder

from backlight.adapters.object_store import ObjectStore
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch import Settings, run_batch
from backlight.explain.batch.sharding.engines import engine_named, run_units
from backlight.explain.batch.sharding.merge import finish_batch
from backlight.explain.batch.sharding.model_reference import ModelReference
from backlight.explain.batch.sharding.packed_parts import packed_file
from backlight.explain.batch.sharding.plan import plan_batch
from soak.engine_kills import play

pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A job of twenty units."""
    return make_case(tmp_path_factory.mktemp("case"), 200, 10)


def started(monkeypatch, **options) -> Store:
    """Start an object store that clients in this process and below it find."""
    store = Store(**options)
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return store


@pytest.fixture
def calm(monkeypatch):
    """A store that works."""
    store = started(monkeypatch)
    yield store
    store.close()


@pytest.fixture
def stormy(monkeypatch):
    """A store that disturbs one request in four."""
    store = started(monkeypatch, share=0.25, seed=1)
    yield store
    store.close()


def test_an_object_is_created_once_and_never_replaced(calm):
    store = ObjectStore(f"{calm.url}/a")
    assert store.create("units/x", b"first") and not store.create("units/x", b"second")
    assert store.read("units/x") == b"first" and store.exists("units/x") and not store.exists("units/y")
    assert store.names("units") == {"x"} and store.names("nothing") == set()
    with pytest.raises(FileNotFoundError):
        store.read("units/y")
    store.remove("units/x")
    store.remove("units/x")
    assert store.names("units") == set()


def test_a_job_in_an_object_store_merges_to_the_job_of_one_machine(case, calm, tmp_path):
    out = case.plan(f"{calm.url}/job")
    assert case.plan(out) == out, "planning again is no other job"
    assert [one.created for one in do(out)] == [True] * 20
    assert [one.created for one in do(out)] == [False] * 20
    assert merged(out, tmp_path / "merged") == case.whole
    assert merged(out, tmp_path / "merged") == case.whole
    assert calm.proxy.requests.total() < 400


def test_delays_errors_lost_replies_and_repeated_requests_lose_and_double_nothing(case, stormy, tmp_path):
    out = case.plan(f"{stormy.url}/job")
    assert run_units(engine_named("local:2"), out) == 20
    assert merged(out, tmp_path / "merged") == case.whole
    assert set(stormy.proxy.disturbed) == {"delayed", "failed", "reply lost", "repeated"}
    assert stormy.proxy.requests.total() < 1000


def test_killed_workers_and_a_disturbed_store_lose_and_double_nothing(case, tmp_path):
    assert set(play(case, "local:2", tmp_path, stored=True).values()) == {0}


def test_texts_of_a_collection_are_fetched_by_each_worker(calm, tmp_path):
    (tmp_path / "in").mkdir()
    given, _ = as_beir(tmp_path / "in")
    model, settings = ModelReference(str(write_cross_encoder(tmp_path / "model"))), Settings(method="none", rows=3)
    plan_batch(given, f"{calm.url}/job", model, settings)
    assert [one.error for one in do(f"{calm.url}/job")] == [None, None]
    run_batch(given, tmp_path / "whole", model.load(), settings)
    assert merged(f"{calm.url}/job", tmp_path / "merged") == bytes_of(tmp_path / "whole")


def test_damaged_and_missing_objects_are_named_and_done_again(case, calm, tmp_path):
    out = case.plan(f"{calm.url}/job")
    do(out)
    store = ObjectStore(out)
    content = store.read(packed_file(3))
    store.remove(packed_file(3))
    store.create(packed_file(3), content[: len(content) // 2])
    store.remove(packed_file(5))
    with pytest.raises(InputError, match=rf"2 of 20 units are not done: .* work {out} --units 3,5, then finish again"):
        finish_batch(out, tmp_path / "merged")
    assert sum(one.created for one in do(out)) == 2
    assert merged(out, tmp_path / "merged") == case.whole


def test_another_job_in_the_place_is_refused(case, calm):
    out = case.plan(f"{calm.url}/job")
    with pytest.raises(InputError, match="holds another job, and nothing in an object store is replaced"):
        plan_batch(case.file, out, ModelReference(str(case.model)), Settings(rows=20))
    with pytest.raises(InputError, match="INPUT must be a file or folder that workers can read"):
        plan_batch("-", out)


def test_the_commands_work_on_an_object_store_and_say_what_is_missing(case, calm, tmp_path, capsys, monkeypatch):
    out = f"{calm.url}/job"
    planned = ["batch", "plan", str(case.file), "-o", out, "--model", str(case.model), "--rows", "10"]
    assert main([*planned, "--option", "words=2"]) == 0
    assert f"backlight batch finish {out} --to FOLDER" in capsys.readouterr().out
    assert main(["batch", "work", out, "--quiet"]) == 0
    assert main(["batch", "finish", out]) == 2
    assert "name one with --to" in capsys.readouterr().err
    assert main(["batch", "finish", out, "--to", str(tmp_path / "merged"), "--quiet"]) == 0
    (tmp_path / "merged" / "report.html").unlink()
    assert files_but_of_plan(tmp_path / "merged") == case.whole
    assert main(["batch", "work", "nowhere://bucket/job"]) == 2
    assert "cannot open nowhere://bucket/job" in capsys.readouterr().err
    assert main(["batch", "work", "s3://no-such-bucket/job"]) == 2
    assert "s3://no-such-bucket/job" in capsys.readouterr().err
