"""What `import backlight` loads: nothing that only some programs need."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import backlight
from backlight.dispatch.arguments.checked import unwrapped
from backlight.ops.nn import recurrent_layers
from backlight.tensor.interop import dlpack
from backlight.torch_api import aten_signatures

LATER = ["nn", "optim", "data", "func", "lens", "masked", "serialization", "utils", "fft", "linalg", "special"]
LATER += ["autograd.functional", "autograd.paths", "autograd.saved_memory", "batching", "autograd.forward_ad"]
LATER += ["autograd.profiler", "autograd.function_batches", "autograd.mutation", "graph.anomaly_report"]
LATER += ["kernels.incomplete", "kernels.waves", "ops.recurrent_layers", "ops.kernel_calls"]
LATER += ["tensor.dlpack", "tensor.numpy_shapes", "tensor.pickling"]
SLOW_ONES_OF_OTHERS = {"difflib", "json", "msgspec", "numpy.polynomial", "numpy.random"}
START = """
import copy, pickle, sys
import numpy as np
import backlight as torch

class Double(torch.autograd.Function):
    generate_vmap_rule = True
    forward = staticmethod(lambda x: x * 2)
    setup_context = staticmethod(lambda ctx, inputs, output: None)
    backward = staticmethod(lambda ctx, grad: grad * 2)
    jvp = staticmethod(lambda ctx, tangent: tangent * 2)

x = torch.ones(1, dtype=torch.float64, requires_grad=True)
"""
FIRST_USES = [
    ("torch.vmap(lambda row: row.sum(0))(torch.ones(2, 3)).tolist()", "[3.0, 3.0]"),
    ("torch.vmap(Double.apply)(torch.ones(2)).tolist()", "[2.0, 2.0]"),
    ("torch.func.jvp(Double.apply, (torch.ones(1),), (torch.ones(1),))[1].item()", "2.0"),
    ("torch.autograd.functional.jacobian(torch.exp, torch.zeros(1)).tolist()", "[[1.0]]"),
    ("torch.autograd.gradcheck(torch.sin, x, check_forward_ad=True)", "True"),
    ("torch.autograd.grad(x * 2, x, torch.ones(3, 1), is_grads_batched=True)[0].tolist()", "[[2.0], [2.0], [2.0]]"),
    ("torch.autograd.graph.saved(torch.ones(3, requires_grad=True).exp()).bytes", "12"),
    ("np.concatenate([x, x]).grad_fn.name()", "CatBackward0"),
    ("np.exp(x).grad_fn.name()", "ExpBackward0"),
    ("[copy.deepcopy(x).item(), pickle.loads(pickle.dumps(x)).item()]", "[1.0, 1.0]"),
    ("torch.igamma(x.detach(), x.detach() * 0).item()", "0.0"),
    ("[torch.special.bessel_j0(torch.zeros(1)).item(), torch.fft.fftfreq(4)[1].item()]", "[1.0, 0.25]"),
    ("torch.masked.sum(torch.ones(3), mask=torch.ones(3) > 0).item()", "3.0"),
]


def printed(program: str) -> str:
    """Run a program in a process of its own, with the backlight that is tested."""
    environment = os.environ | {"PYTHONPATH": str(Path(backlight.__file__).parent.parent)}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout.strip()


def test_what_few_programs_need_is_imported_on_first_use():
    program = (
        "import sys, numpy; before = set(sys.modules); import backlight; print(*(set(sys.modules) - before), sep='\\n')"
    )
    imported = printed(program).splitlines()
    assert "backlight.engine.run_backward" in imported
    rooms = tuple(f"backlight.{name}" for name in LATER)
    assert not [name for name in imported if f"{name}.".startswith(tuple(f"{room}." for room in rooms))]
    assert not SLOW_ONES_OF_OTHERS & set(imported)


@pytest.mark.parametrize("expression, value", FIRST_USES)
def test_it_works_as_the_first_thing_that_a_process_does(expression, value):
    assert printed(f"{START}print({expression})") == value


@pytest.mark.parametrize("room", [dlpack, aten_signatures, recurrent_layers], ids=lambda room: room.__name__)
def test_all_public_names_of_a_room_that_is_imported_later_are_at_the_front_door(room):
    assert set(room.__all__) <= set(dir(backlight))
    assert all(unwrapped(getattr(backlight, name)) is getattr(room, name) for name in room.__all__)


def test_a_star_import_brings_what_is_imported_later_and_no_modules():
    brought = printed("from backlight import *; print('vmap' in dir(), 'lstm' in dir(), 'nn' in dir(), 'ops' in dir())")
    assert brought == "True True False False"


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("explain.build_up", "build_up"),
        ("explain.integrated", "integrated_gradients"),
        ("explain.interactions", "matrix"),
        ("explain.methods", "METHODS"),
        ("explain.occlusion", "occlusion occlusion_by_sentence"),
        ("explain.shapley", "kernel_shap shapley"),
        ("models.bert", "Bert BertConfig BertHead"),
        ("training.charts", "Series curves"),
    ],
)
def test_names_are_found_where_they_were_first_documented(module, names):
    found = importlib.import_module(f"backlight.{module}")
    assert all(hasattr(found, name) for name in names.split())
