"""Units on Spark, in its own process and through Connect."""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="Spark is not installed here: make test-clusters")
if shutil.which("java") is None:
    said = "Spark needs Java, which is not installed here: apt-get install default-jre-headless"
    pytest.skip(said, allow_module_level=True)

# isort: split

import pyspark
from batch_units import make_case, merged, wait_until

from backlight.errors import InputError
from backlight.explain.batch.sharding.engines import engine_named, run_units
from soak.engine_kills import play

pytestmark = pytest.mark.filterwarnings("ignore")  # Spark's own


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """A job of twenty units."""
    return make_case(tmp_path_factory.mktemp("case"), 200, 10)


def test_units_on_two_cores_are_those_of_one_machine(case, tmp_path):
    out, stands = case.plan(tmp_path / "out"), []
    assert run_units(engine_named("spark://local:2"), out, watch=stands.append) == 20
    assert stands[-1].rows == 200 and stands[-1].bad == len(range(0, 200, 7))
    assert merged(out) == case.whole


def test_units_through_connect_are_those_of_one_machine(case, tmp_path, monkeypatch):
    """A Connect server in a process of its own, which finds backlight by the path of this one."""
    sbin = Path(pyspark.__file__).parent / "sbin"
    if not (sbin / "start-connect-server.sh").exists():
        pytest.skip("pyspark has no Connect server here")
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("SPARK_NO_DAEMONIZE", "1")
    monkeypatch.setenv("SPARK_LOG_DIR", str(tmp_path))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["bash", str(sbin / "start-connect-server.sh"), "--master", "local[2]"]
    command += ["--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false"]
    with open(tmp_path / "log", "wb") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(lambda: listens(port), 180)
        out = case.plan(tmp_path / "out")
        work = [sys.executable, "-m", "backlight", "batch", "work", str(out), "--on", f"sc://127.0.0.1:{port}"]
        subprocess.run(work, check=True, capture_output=True)  # pyspark knows one kind of session in a process
        assert merged(out) == case.whole
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait(60)


def listens(port: int) -> bool:
    """Return whether something listens at a port of this machine."""
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def test_python_processes_killed_ten_times_on_spark_lose_and_double_nothing(case, tmp_path):
    assert set(play(case, "spark://local:2", tmp_path).values()) == {0}


def test_a_master_that_is_not_there_is_one_line(case, tmp_path):
    for address in ("spark://127.0.0.1:1", "sc://127.0.0.1:1", "spark://nothing"):
        with pytest.raises(InputError, match="no Spark master or Connect server replies at"):
            run_units(engine_named(address), case.plan(tmp_path / "out"))
