"""Units on Dask: killed workers lose nothing, and a scheduler that is not there is one line."""

import asyncio
import subprocess
import sys

import pytest

pytest.importorskip("distributed", reason='the tests of Dask need pip install ".[dask]"')

# isort: split

import dask
import distributed
from batch_units import make_case, merged, wait_until

from backlight.adapters import dask_units
from backlight.cli.main import main
from backlight.errors import InputError
from backlight.explain.batch.sharding.engines import engine_named, run_units
from backlight.explain.batch.sharding.packed_parts import units_done
from backlight.explain.batch.sharding.stores import FolderStore
from soak.engine_kills import play

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, when its processes die


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A job of twenty units."""
    return make_case(tmp_path_factory.mktemp("case"), 200, 10)


def test_workers_killed_ten_times_on_dask_lose_and_double_nothing(case, tmp_path):
    """A worker that takes long to load its model is still replaced: Dask's own clusters give it up after 15 s."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"}):
        assert set(play(case, "dask://local:2", tmp_path).values()) == {0}


@pytest.mark.parametrize("ends", ["its loop", "its processes"])
def test_a_job_goes_on_when_dask_does_not(case, tmp_path, monkeypatch, ends):
    monkeypatch.setattr(dask_units, "SECONDS_BETWEEN_LOOKS", 0.2)
    monkeypatch.setattr(dask_units, "SECONDS_WITHOUT_WORKERS", 1)
    out = case.plan(tmp_path / "out")
    ended = []

    def end_once(progress):
        if progress.rows and not ended:
            client = distributed.Client.current()
            ended.append(client)
            if ends == "its loop":
                client.loop.asyncio_loop.call_soon_threadsafe(client.loop.asyncio_loop.stop)
            else:
                client.cluster.scale(0)

    assert run_units(engine_named("dask://local:2"), out, watch=end_once) == 20
    assert ended and merged(out) == case.whole


def test_a_result_that_does_not_arrive_is_asked_for_again(case, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_units, "SECONDS_BETWEEN_LOOKS", 0.2)
    monkeypatch.setattr(dask_units, "SECONDS_WITHOUT_WORKERS", 1)
    gather, never = distributed.Client._gather, []

    async def gather_all_but_the_first(self, *arguments, **options):
        if not never:
            never.append(asyncio.get_running_loop().create_future())
            await never[0]
        return await gather(self, *arguments, **options)

    monkeypatch.setattr(distributed.Client, "_gather", gather_all_but_the_first)
    out = case.plan(tmp_path / "out")
    assert run_units(engine_named("dask://local:2"), out) == 20
    assert never and merged(out) == case.whole


def test_a_scheduler_of_ones_own_is_used_and_left_running(case, tmp_path, capsys):
    out = case.plan(tmp_path / "out")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        address = cluster.scheduler_address.removeprefix("tcp://")
        stands = []
        assert run_units(engine_named(f"dask://{address}"), out, range(7), watch=stands.append) == 7
        assert units_done(FolderStore(out)) == set(range(7))
        assert [stand.rows for stand in stands] == list(range(0, 80, 10)) and stands[-1].total == 200
        assert stands[-1].bad == len(range(0, 70, 7))
        assert main(["batch", "work", str(out), "--on", f"dask://{address}", "--quiet"]) == 0
    assert merged(out) == case.whole


def test_units_that_every_worker_refuses_are_one_line_with_unit_and_worker(case, tmp_path):
    out = case.plan(tmp_path / "out")
    content = case.file.read_bytes()
    try:
        case.file.write_bytes(content.replace(b"water", b"WATER"))
        said = r"20 of 20 units are not done; .* unit \d+, worker \S+:\d+: lines .* are not as they were planned"
        with pytest.raises(InputError, match=said):
            run_units(engine_named("dask://local:2"), out)
    finally:
        case.file.write_bytes(content)


def test_a_scheduler_that_is_not_there_is_one_line(case, tmp_path, monkeypatch):
    monkeypatch.setattr(dask_units, "SECONDS_TO_CONNECT", 1)
    with pytest.raises(
        InputError, match=r"no Dask scheduler with a worker replies at 127.0.0.1:1: start `dask scheduler`"
    ):
        run_units(engine_named("dask://127.0.0.1:1"), case.plan(tmp_path / "out"))


def test_ctrl_c_leaves_a_job_that_goes_on(case, tmp_path):
    out = case.plan(tmp_path / "out")
    command = [sys.executable, "-m", "backlight", "batch", "work", str(out), "--on", "dask://local:2"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: units_done(FolderStore(out)))
    running.send_signal(2)
    _, said = running.communicate(timeout=60)
    assert (running.returncode, "stopped; finished units are kept" in said) in ((130, True), (0, False))
    run_units(engine_named("dask://local:2"), out)
    assert merged(out) == case.whole
