"""`backlight run`: a script finds what it would find under `python`, and backlight under PyTorch's names."""

import importlib
import pkgutil
import sys
import textwrap
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest
import torch

from backlight.cli.main import main
from backlight.cli.run import run_script
from backlight.errors import InputError
from backlight.torch_api.module_names import ADDED, OURS, PRIVATE, SPREAD, spread_names, torch_names


@pytest.fixture
def script(tmp_path):
    """Write a script and return its path."""

    def write(source: str, name: str = "script.py") -> str:
        path = tmp_path / name
        path.write_text(textwrap.dedent(source))
        return str(path)

    return write


# --- what a script finds ----------------------------------------------------------------------------------------------


def test_a_script_is_the_main_module_with_its_own_arguments_and_path(script, capsys):
    path = script(
        """
        import sys
        print(__name__, sys.modules["__main__"].__file__ == __file__, sys.path[0], sys.argv)
        """
    )
    assert run_script(path, ["--rate", "0.1"]) == 0
    assert capsys.readouterr().out == f"__main__ True {Path(path).parent} {[path, '--rate', '0.1']}\n"


def test_a_script_imports_its_neighbours(script, capsys):
    script("ANSWER = 42", "neighbour_of_the_script.py")
    assert run_script(script("from neighbour_of_the_script import ANSWER; print(ANSWER)")) == 0
    assert capsys.readouterr().out == "42\n"
    del sys.modules["neighbour_of_the_script"]


def test_classes_of_a_script_can_be_pickled(script, capsys):
    path = script(
        """
        import pickle
        class Point:
            x = 3
        print(pickle.loads(pickle.dumps(Point())).x)
        """
    )
    assert run_script(path) == 0
    assert capsys.readouterr().out == "3\n"


def test_everything_is_put_back_after_a_run(script):
    before = sys.modules["__main__"], sys.argv, list(sys.path), list(sys.meta_path)
    run_script(script("import torch.nn.functional, sys; sys.path.append('elsewhere')"))
    assert (sys.modules["__main__"], sys.argv, list(sys.path), list(sys.meta_path)) == before
    assert sys.modules["torch"] is torch
    assert sys.modules["torch.nn.functional"] is torch.nn.functional


# --- PyTorch's names --------------------------------------------------------------------------------------------------


def test_torch_is_backlight_under_every_way_to_import_it(script, capsys):
    path = script(
        """
        import torch
        import torch.nn as nn
        import torch.nn.functional as F
        import torch.utils.data
        from torch import nn as again, optim
        from torch.autograd import Variable
        from torch.utils.data import DataLoader, TensorDataset
        print(torch.Tensor.__module__[:9], nn is again, nn.Linear.__module__, F is nn.functional, optim.SGD.__module__)
        print(torch.utils.data.DataLoader is DataLoader, torch.cuda.is_available(), torch.backends.mps.is_available())
        print(torch.__version__.startswith("2."), torch.get_num_threads() >= 1, "torch" in repr(torch))
        """
    )
    assert run_script(path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "backlight True backlight.nn.modules.linear True backlight.optim.sgd",
        "True False False",
        "True True True",
    ]


@pytest.mark.parametrize("name", sorted(OURS))
def test_each_name_of_the_table_is_a_module_of_pytorch_and_one_of_ours(name):
    if name.startswith("torch."):  # torchvision need not be installed
        importlib.import_module(name)
    source = importlib.import_module(OURS[name])
    with torch_names():
        stand_in = importlib.import_module(name)
        shared = [public for public in dir(stand_in) if public in vars(source) and public[0] != "_"]
        assert shared
        for public in shared:
            ours = getattr(source, public)
            assert getattr(stand_in, public) is ours or isinstance(ours, ModuleType)


@pytest.mark.parametrize("name", sorted({*SPREAD, *PRIVATE} - {"torch.utils.tensorboard"}))
def test_names_spread_over_our_files_are_names_of_pytorchs_file(name):
    theirs = importlib.import_module(name)
    with torch_names():
        stand_in = importlib.import_module(name)
        for public, path in spread_names(name).items():
            assert hasattr(theirs, public)
            where, _, own = path.rpartition(".")
            assert getattr(stand_in, public) is getattr(importlib.import_module(where), own)
            assert public[0] == "_" or public in dir(stand_in)


def test_every_file_of_layers_and_optimizers_of_pytorch_shows_all_layers_that_backlight_has():
    nn, optim = importlib.import_module("backlight.nn"), importlib.import_module("backlight.optim")
    folders = ((torch.nn.modules, nn), (torch.optim, optim))
    files = [(f"{t.__name__}.{m.name}", ours) for t, ours in folders for m in pkgutil.iter_modules(t.__path__)]
    shown = 0
    for file, ours in files:
        if "._" in file:
            continue
        theirs = importlib.import_module(file)
        layers = [n for n, kind in vars(theirs).items() if getattr(kind, "__module__", "") == file and n[0].isupper()]
        with torch_names():
            for layer in set(layers) & set(dir(ours)):
                assert getattr(importlib.import_module(file), layer) is getattr(ours, layer)
                shown += 1
    assert shown > 150


def test_the_idioms_that_need_pytorchs_files_work(script, capsys):
    path = script(
        """
        import torch, os
        import torch.autograd.gradcheck
        from torch.autograd.gradcheck import gradcheck
        from torch.nn.modules.batchnorm import _BatchNorm
        from torch.nn.modules.conv import _ConvNd
        from torch.nn.modules.utils import _pair, _ntuple, consume_prefix_in_state_dict_if_present
        from torch.utils.hooks import RemovableHandle
        from torch.nn.common_types import _size_2_t
        from torch.types import Number, Device
        print(isinstance(torch.nn.BatchNorm2d(3), _BatchNorm), isinstance(torch.nn.LayerNorm(3), _BatchNorm))
        print(isinstance(torch.nn.Conv1d(1, 1, 1), _ConvNd), _pair(3), _pair([1, 2]), _ntuple(3)("ab"))
        x = torch.ones(2, dtype=torch.float64, requires_grad=True)
        print(torch.autograd.gradcheck(torch.sin, x), gradcheck is torch.autograd.gradcheck)
        print(isinstance(x.register_hook(print), RemovableHandle))
        print(os.path.exists(torch.__file__), isinstance(2, Number))
        print(torch.func.grad(torch.sin)(torch.zeros(())).item(), torch.fft.fftshift(torch.arange(2)).tolist())
        print(torch.autograd.forward_ad.dual_level.__name__, torch.masked.sum.__name__)
        """
    )
    assert run_script(path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "True False",
        "True (3, 3) (1, 2) ('a', 'b')",
        "True True",
        "True",
        "True True",
        "1.0 [1, 0]",
        "dual_level sum",
    ]


def test_a_prefix_is_taken_off_a_state_dict_as_pytorch_takes_it_off():
    found = []
    for engine in (torch, importlib.import_module("backlight")):
        state = engine.nn.Sequential(engine.nn.Linear(2, 1)).state_dict(prefix="module.")
        with nullcontext() if engine is torch else torch_names():
            tuples = importlib.import_module("torch.nn.modules.utils")
            tuples.consume_prefix_in_state_dict_if_present(state, "module.")
            assert tuples._reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
            assert tuples._list_with_default([None, 3], [7, 8, 9]) == [8, 3]
        found.append((list(state), dict(state._metadata)))
    assert found[0] == found[1]


def test_no_module_of_ours_shows_under_a_name_that_the_table_lacks():
    with torch_names():
        import torch as stand_in

        for name in ("kernels", "cli", "models", "errors", "graph"):
            assert not hasattr(stand_in, name)
        assert not hasattr(stand_in.ops, "elementwise")


def test_modules_for_what_is_absent_can_be_imported():
    with torch_names():
        for name in ADDED:
            assert importlib.import_module(name).__name__ == name


@pytest.mark.parametrize(
    ("line", "missing"),
    [
        ("import torch; torch.no_such_thing", "torch.no_such_thing"),
        ("from torch import no_such_thing", "torch.no_such_thing"),
        ("import torch.no_such_thing", "torch.no_such_thing"),
        ("from torch.nn import NoSuchLayer", "torch.nn.NoSuchLayer"),
        ("import torch; torch.optim.NoSuchOptimizer", "torch.optim.NoSuchOptimizer"),
        ("from torchvision.datasets import ImageNet", "torchvision.datasets.ImageNet"),
        ("import torchaudio", "torchaudio"),
    ],
)
def test_a_missing_name_says_that_it_is_missing_and_where_to_ask(script, capsys, line, missing):
    assert run_script(script(line)) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert f"{missing} is not in backlight; if you need it, open an issue in the backlight repository" in said
    assert said.startswith(("AttributeError", "ModuleNotFoundError"))


def test_a_script_may_fall_back_where_a_name_is_missing(script, capsys):
    path = script(
        """
        import torch
        try:
            from torch import no_such_thing
        except ImportError:
            print("without it")
        print(hasattr(torch, "no_such_thing"))
        """
    )
    assert run_script(path) == 0
    assert capsys.readouterr().out == "without it\nFalse\n"


# --- how a script ends ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("code", "expected"), [("", 0), ("0", 0), ("3", 3), ("None", 0), ("True", 1)])
def test_the_exit_code_of_a_script_is_passed_on(script, code, expected):
    assert run_script(script(f"import sys; sys.exit({code})")) == expected


def test_an_exit_text_is_printed_and_the_code_is_1(script, capsys):
    assert run_script(script("import sys; sys.exit('nothing to do')")) == 1
    assert capsys.readouterr().err == "nothing to do\n"


def test_an_exception_shows_the_frames_of_the_script_and_not_of_the_runner(script, capsys):
    path = script(
        """
        def divide(by):
            return 1 / by
        divide(0)
        """
    )
    assert run_script(path) == 1
    said = capsys.readouterr().err
    assert said.splitlines()[0] == "Traceback (most recent call last):"
    assert said.splitlines()[1] == f'  File "{path}", line 4, in <module>'
    assert said.splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "run.py" not in said


def test_an_error_of_backlight_in_a_script_is_the_scripts_own(script, capsys):
    assert main(["run", script("import torch; torch.ones(2).backward()")]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Traceback")
    assert "element 0 of tensors does not require grad and does not have a grad_fn" in said


def test_a_syntax_error_shows_its_line_alone(script, capsys):
    path = script("x = 1\ny = (")
    assert run_script(path) == 1
    said = capsys.readouterr().err
    assert said.startswith(f'  File "{path}", line 2')
    assert "SyntaxError: '(' was never closed" in said


def test_an_interrupted_script_exits_with_130(script, capsys):
    assert run_script(script("raise KeyboardInterrupt")) == 130
    assert "KeyboardInterrupt" in capsys.readouterr().err


def test_a_missing_script_is_one_line_and_exit_code_2(capsys, tmp_path):
    assert main(["run", str(tmp_path / "none.py")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "No such file or directory" in said


@pytest.mark.parametrize("content", [b"\x7fELF\0\0", None])
def test_what_is_no_script_is_an_input_error(tmp_path, content):
    path = tmp_path / "given"
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=r"binary file|Is a directory"):
        run_script(str(path))


def test_training_gives_the_numbers_of_pytorch(script, capsys):
    path = script(
        """
        import torch
        from torch import nn
        from torch.utils.data import DataLoader, TensorDataset

        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
        descent = torch.optim.Adam(model.parameters(), lr=0.05)
        samples = TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))
        for epoch in range(3):
            for features, classes in DataLoader(samples, batch_size=8, shuffle=True):
                loss = nn.CrossEntropyLoss()(model(features), classes)
                descent.zero_grad()
                loss.backward()
                descent.step()
            print(f"{loss.item():.4f}")
        """
    )
    assert run_script(path) == 0
    ours = capsys.readouterr().out
    exec(compile(Path(path).read_text(), path, "exec"), {"__name__": "__main__"})
    assert ours == capsys.readouterr().out
