"""What the tests of programs share: commands in processes of their own, beside plain `python`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import backlight

SOURCE = str(Path(backlight.__file__).parent.parent)
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONWARNINGS": "", "OMP_NUM_THREADS": "1"}
SERVER = """
import json, os, signal, sys
from backlight.cli import doctor, graph, replay, run
from backlight.cli.main import main

for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
        signal.alarm(300)  # what does not end fails its test
        os.chdir(job["folder"])
        os.environ.update(job["environment"])
        for number, name in enumerate(("stdin", "stdout", "stderr")):
            os.dup2(os.open(job[name], os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        sys.stdin = open(0, closefd=False)
        sys.exit(main(job["argv"]))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def server():
    """A process that has imported the commands and forks for each that is run: imports take a second or more."""
    process = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        bufsize=1,
    )
    yield process
    process.stdin.close()
    process.stdout.close()
    process.wait()


@pytest.fixture
def command(server, tmp_path, tmp_path_factory):
    """Return a function that runs a command of backlight in a process of its own, in the test's folder."""

    def run(*argv: str, stdin: str = "", **environment: str) -> SimpleNamespace:
        folder = tmp_path_factory.mktemp("streams")
        names = {name: str(folder / name) for name in ("stdin", "stdout", "stderr")}
        Path(names["stdin"]).write_text(stdin)
        server.stdin.write(
            json.dumps({"argv": argv, "folder": str(tmp_path), "environment": environment, **names}) + "\n"
        )
        code = int(server.stdout.readline())
        out, err = (Path(names[name]).read_text() for name in ("stdout", "stderr"))
        return SimpleNamespace(returncode=code, stdout=out, stderr=err)

    return run


@pytest.fixture
def python(tmp_path):
    """Return a function that runs plain `python …` in the test's folder."""

    def run(*argv: str, stdin: str = "") -> subprocess.CompletedProcess:
        return subprocess.run(
            [sys.executable, *argv],
            cwd=tmp_path,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            env=ENVIRONMENT,
        )

    return run


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file into the test's folder and returns its path."""

    def write(name: str, text: str) -> str:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return write


@pytest.fixture
def source_folder() -> str:
    """The folder to put on PYTHONPATH, so that another process imports this backlight."""
    return SOURCE
