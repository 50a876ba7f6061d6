"""`%load_ext backlight` in IPython's shell and in a real kernel: `%%doctor`, `%doctor` and `%%graph`."""

import re
from html import unescape

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from traitlets.config import Config

FORGETS = """
for step in range(4):
    loss = model(torch.ones(3, 2)).square().mean()
    loss.backward()
    optimizer.step()
"""
MODEL = """
import torch
from torch import nn
model = nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
pytestmark = pytest.mark.filterwarnings("ignore")  # of the shell and the kernel


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    settings = Config({"HistoryManager": {"enabled": False}, "InteractiveShell": {"colors": "nocolor"}})
    made = InteractiveShell.instance(config=settings, ipython_dir=str(tmp_path_factory.mktemp("ipython")))
    made.run_cell("%load_ext backlight", store_history=True).raise_error()
    yield made
    InteractiveShell.clear_instance()


@pytest.fixture
def cell(shell):
    """Return a function that runs a cell and gives what it printed and displayed."""

    def run(text: str):
        with capture_output() as captured:
            result = shell.run_cell(text, store_history=True)
        captured.result = result
        captured.html = "".join(one.data.get("text/html", "") for one in captured.outputs)
        captured.plain = "".join(one.data.get("text/plain", "") for one in captured.outputs)
        return captured

    return run


def test_a_cell_under_the_doctor_shows_its_findings_with_cell_and_line(shell, cell):
    cell(MODEL)
    number = len(shell.user_ns["In"])
    shown = cell(f"%%doctor\n{FORGETS.lstrip()}")
    assert "BL703" in shown.html and f"Cell In[{number}]:4" in shown.html and "loss.backward()" in shown.html
    assert "BL703" in shown.plain and "ipython-input" not in shown.html + shown.plain
    assert "step" in shell.user_ns and shell.user_ns["step"] == 3


def test_a_finding_in_a_function_of_an_earlier_cell_names_that_cell(shell, cell):
    cell(MODEL)
    number = len(shell.user_ns["In"])
    cell("def train():" + FORGETS.replace("\n", "\n    "))
    shown = cell("%doctor train()")
    assert "BL703" in shown.html and f"Cell In[{number}]:4" in shown.html


def test_a_healthy_cell_says_so_and_shows_its_last_value(cell):
    shown = cell("%%doctor\nvalue = 20\nvalue + 1")
    assert "no findings" in shown.html and shown.result.result == 21
    assert cell("%%doctor\n21;").result.result is None
    assert cell("%doctor 6 * 7").result.result == 42


def test_an_exception_comes_after_the_report(cell):
    shown = cell("%%doctor\nimport torch\nx = torch.ones(3, requires_grad=True)\n(x * 2).backward()")
    assert "BL201" in shown.html
    assert isinstance(shown.result.error_in_exec, RuntimeError)


def test_steps_and_other_magics_work_inside(cell):
    cell(MODEL)
    shown = cell(f"%%doctor --steps 2\n%time x = 1\n{FORGETS}\nraise ValueError('not reached')")
    assert shown.result.error_in_exec is None and "stopped after 2 optimizer steps" in shown.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("%%doctor --nonsense\nx = 1", "unrecognized arguments: --nonsense"),
        ("%doctor", "must be given a statement"),
        ("%%doctor --steps 0\nx = 1", "steps must be at least 1"),
        ("%%graph\nx = 1", "nothing that requires grad was computed"),
        ("%%graph --by nothing\nx = 1", "invalid choice"),
    ],
)
def test_what_cannot_be_used_is_one_line(text, said, cell):
    shown = cell(text)
    assert said in shown.stderr and shown.stderr.count("\n") == 1 and shown.result.success


def test_a_graph_is_a_page_in_a_frame_and_a_tree_in_a_terminal(cell):
    shown = cell(
        "%%graph --by line\nimport torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp().sum()\ny.backward()"
    )
    (page,) = re.findall(r'srcdoc="([^"]*)"', shown.html)
    assert unescape(page).startswith("<!") and "exp" in page
    assert "● x" in shown.plain and "exp" in shown.plain


def test_a_real_kernel_runs_the_magics(monkeypatch, tmp_path, source_folder):
    monkeypatch.setenv("PYTHONPATH", source_folder)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    cells = [
        "%load_ext backlight",
        MODEL,
        f"%%doctor\n{FORGETS.lstrip()}",
        "%%graph\nmodel(torch.ones(1, 2)).sum().backward()",
    ]
    cells.append("%%doctor\n(torch.ones(3, requires_grad=True) * 2).backward()")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    with pytest.raises(CellExecutionError, match="grad can be implicitly created only for scalar outputs"):
        NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    found, graph, failed = ([one for one in cell.outputs if "data" in one] for cell in notebook.cells[2:])
    assert "BL703" in found[0].data["text/html"] and "Cell In[3]:4" in found[0].data["text/html"]
    assert "srcdoc=" in graph[0].data["text/html"]
    assert "BL201" in failed[0].data["text/html"]
    assert notebook.cells[4].outputs[-1].output_type == "error"  # after the report
