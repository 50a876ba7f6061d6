"""Programs behave under `backlight doctor` and `backlight run` as they do under plain `python`, whatever they do."""

import re
import sys

import pytest

OURS = {"doctor": ("doctor", "--engine", "backlight"), "run": ("run",)}
COMMANDS = pytest.mark.parametrize("name", list(OURS))
PROGRAMS = {
    "stdin": "import sys\nprint(input('? '), sys.stdin.read())",
    "exit": "import sys\nprint('before')\nsys.exit(0)",
    "exit_3": "import sys\nsys.exit(3)",
    "exit_text": "import sys\nsys.exit('nothing to do')",
    "exit_none": "raise SystemExit",
    "exit_in_finally": "import sys\ntry:\n    sys.exit(4)\nfinally:\n    print('cleaned up')",
    "exception": "def inner():\n    raise ValueError('wrong')\ninner()",
    "atexit": "import atexit\natexit.register(print, 'at exit')\nprint('end')",
    "fork": (
        "import os, sys\nprint('parent', flush=True)\nchild = os.fork()\n"
        "if child == 0:\n    print('child', flush=True)\n    sys.exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    ),
    "fork_that_ends_with_the_script": (
        "import os\nchild = os.fork()\nif child:\n    print('child ended with', os.waitpid(child, 0)[1])"
    ),
    "fork_that_fails": (
        "import os\nchild = os.fork()\nif not child:\n    raise ValueError('in the child')\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))"
    ),
    "multiprocessing": (
        "import multiprocessing as mp\n\ndef square(n):\n    return n * n\n\nif __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool:\n        print(pool.map(square, [2, 3]))"
    ),
    "folder": "import os\nos.mkdir('sub')\nos.chdir('sub')\nopen('here.txt', 'w').write('x')\nprint(os.getcwd())",
    "folder_that_is_gone": "import os\nos.mkdir('sub')\nos.chdir('sub')\nos.rmdir('../sub')\nprint('gone')",
    "excepthook": (
        "import sys\ndef hook(kind, problem, trace):\n    print('my hook:', kind.__name__, problem)\n"
        "sys.excepthook = hook\nraise KeyError('lost')"
    ),
    "excepthook_that_fails": (
        "import sys\ndef hook(kind, problem, trace):\n    raise OSError('in the hook')\n"
        "sys.excepthook = hook\nraise KeyError('lost')"
    ),
    "stdout_replaced": "import sys\nsys.stdout = open('log.txt', 'w')\nprint('into the log')",
    "stdout_closed": "import sys\nprint('last words')\nsys.stdout.close()",
    "threads": (
        "import threading, time\n\ndef late():\n    time.sleep(0.2)\n    print('late')\n\n"
        "threading.Thread(target=late).start()\nprint('end of main')"
    ),
    "what_main_is": (
        "import sys\nmain = sys.modules['__main__']\nprint(__name__, main.__file__, __package__, __spec__, sys.argv)\n"
        "print(sys.path[0], type(__loader__).__name__)"
    ),
    "signal": "import signal, os\nsignal.signal(signal.SIGUSR1, lambda *a: print('got it'))\nos.kill(os.getpid(), 10)",
    "syntax": "x = 1\ny = (",
}


def without_report(err: str) -> str:
    """Return stderr without the doctor's own lines."""
    return re.sub(r"\n?doctor: .*\n", "", err)


def last_line(err: str) -> str:
    return err.strip().splitlines()[-1] if err.strip() else ""


def files_of(folder) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() for one in sorted(folder.rglob("*")) if one.is_file()}


@COMMANDS
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_prints_writes_and_exits_as_under_python(name, program, command, python, written, tmp_path):
    results = []
    for run, start in ((python, ()), (command, OURS[name])):
        for old in (*tmp_path.glob("sub/*"), *tmp_path.glob("*.txt")):
            old.unlink()
        if (tmp_path / "sub").exists():
            (tmp_path / "sub").rmdir()
        written("script.py", PROGRAMS[program])
        done = run(*start, "script.py", "--own", "1", stdin="first\nsecond\n")
        results.append((done, files_of(tmp_path)))
    (plain, plain_files), (ours, our_files) = results
    assert ours.stdout == plain.stdout
    assert our_files == plain_files
    assert last_line(without_report(ours.stderr)) == last_line(plain.stderr)
    if name == "run":
        assert (ours.returncode, ours.stderr) == (plain.returncode, plain.stderr)
    else:
        assert ours.returncode == (2 if plain.returncode else 0)
        assert len(re.findall(r"^doctor: ", ours.stderr, re.MULTILINE)) == 1  # once, also of programs that fork


@COMMANDS
def test_a_file_that_does_not_exist_exits_with_2_as_under_python(name, command, python):
    plain, ours = python("nothing.py"), command(*OURS[name], "nothing.py")
    assert ours.returncode == plain.returncode == 2
    assert ours.stdout == "" and ours.stderr.count("\n") == 1
    assert "can't open file 'nothing.py': No such file or directory" in ours.stderr


def test_outputs_go_where_the_command_was_started(command, written, tmp_path):
    written(
        "script.py",
        "import os, torch\nos.mkdir('sub'); os.chdir('sub')\n(torch.ones(2, requires_grad=True) * 2).backward()",
    )
    done = command(*OURS["doctor"], "--sarif", "out.sarif", "script.py")
    assert done.returncode == 1
    assert '"uri": "script.py"' in (tmp_path / "out.sarif").read_text()
    written("script.py", "import os, torch\nos.chdir('sub')\n(torch.ones(2, requires_grad=True) * 2).sum().backward()")
    for name, option in (("graph", "--json"), ("replay", "--html")):
        assert command(name, "--engine", "backlight", option, "out.file", "script.py").returncode == 0
        assert (tmp_path / "out.file").exists() and not (tmp_path / "sub" / "out.file").exists()
        (tmp_path / "out.file").unlink()


def test_json_goes_to_stdout_though_the_program_replaced_it(command, written):
    written("script.py", "import sys, io\nsys.stdout = io.StringIO()\nsys.stderr = io.StringIO()\nprint('unseen')")
    assert command(*OURS["doctor"], "--json", "script.py").stdout.startswith('{"findings": []')


# --- modules ----------------------------------------------------------------------------------------------------------

SHOWS = """
import sys
from . import neighbour
main = sys.modules["__main__"]
print(__name__, __package__, __spec__.name, main.__file__, sys.argv, sys.path[0], neighbour.VALUE)
sys.exit(len(sys.argv))
"""


@pytest.fixture
def package(written):
    written("package/__init__.py", "print('package')")
    written("package/neighbour.py", "VALUE = 3")
    written("package/tool.py", SHOWS)
    written("package/__main__.py", SHOWS)
    written("package/broken.py", "import not_there_at_all")


@COMMANDS
@pytest.mark.parametrize("module", ["package.tool", "package"])
def test_a_module_runs_as_python_m_runs_it(name, module, command, python, package):
    plain = python("-m", module, "--json", "--engine", "torch", "--", "-x")
    ours = command(*OURS[name], "-m", module, "--json", "--engine", "torch", "--", "-x")
    assert ours.stdout == plain.stdout and "'--engine', 'torch', '--', '-x'" in ours.stdout
    assert ours.returncode == (plain.returncode if name == "run" else 2)


@pytest.mark.parametrize("name", ["nothing", "package.nothing", "package.neighbour.deeper", "nothing.at.all"])
def test_a_module_that_does_not_exist_is_one_line_and_exit_code_2(name, command, package):
    done = command(*OURS["doctor"], "-m", name)
    assert done.returncode == 2
    assert f"no module named '{name}'" in done.stderr and "Traceback" not in done.stderr


def test_a_module_that_imports_what_is_missing_shows_its_own_traceback(command, package):
    done = command(*OURS["doctor"], "-m", "package.broken")
    assert done.returncode == 2
    assert "No module named 'not_there_at_all'" in done.stderr and "package/broken.py" in done.stderr
    assert "importlib" not in done.stderr and "cli/" not in done.stderr


def test_findings_of_a_module_name_its_file_and_line(command, written, tmp_path):
    written("package/__init__.py", "")
    written("package/train.py", "import torch\n\nx = torch.ones(3, requires_grad=True)\n(x * 2).backward()\n")
    done = command(*OURS["doctor"], "-m", "package.train")
    assert done.returncode == 1
    assert f"{tmp_path}/package/train.py:4" in done.stderr


# --- Ctrl-C -----------------------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, torch
from torch import nn

model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10 ** 6):
    model(torch.ones(3, 2)).square().mean().backward()
    optimizer.step()
    if step == 4:
        os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("engine", ["torch", "backlight"])
def test_ctrl_c_ends_in_a_report_of_what_was_found_so_far(engine, command, written):
    done = command("doctor", "--engine", engine, written("script.py", INTERRUPTED))
    assert done.returncode == 130
    report, traceback = done.stderr.split("Traceback (most recent call last)")
    assert "forgotten-zero-grad" in report or "BL703" in report
    assert "doctor: 1 finding" in report
    assert traceback.rstrip().endswith("KeyboardInterrupt")


if sys.platform == "win32":  # no os.fork
    for _name in [name for name in PROGRAMS if "fork" in name or name == "signal"]:
        del PROGRAMS[_name]
