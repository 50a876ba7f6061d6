"""The rarer names of torch.autograd do what PyTorch's do, and scripts find all of them."""

import importlib

import pytest
import torch
from snippets import assert_shows_the_same
from torch_namespaces import GROUPS

from backlight.cli.run import run_script
from backlight.torch_api.module_names import torch_names

MODULES = [
    "",
    ".anomaly_mode",
    ".forward_ad",
    ".function",
    ".functional",
    ".grad_mode",
    ".gradcheck",
    ".graph",
    ".variable",
]

SAME = {
    "multithreading is a switch of this thread": """
from threading import Thread
A = torch.autograd
print(A.is_multithreading_enabled())
with A.set_multithreading_enabled(False):
    print(A.is_multithreading_enabled())
    other = Thread(target=lambda: print(A.is_multithreading_enabled())); other.start(); other.join()
    x = torch.ones(2, requires_grad=True); (x * x).sum().backward(); print(x.grad)
print(A.is_multithreading_enabled())
A.set_multithreading_enabled(False); print(A.is_multithreading_enabled())
A.set_multithreading_enabled(True)
@A.set_multithreading_enabled(False)
def within(): print(A.is_multithreading_enabled())
within(); print(A.is_multithreading_enabled()); within()
A.set_multithreading_enabled(True)
""",
    "a hidden write is not noticed": """
x = torch.ones(2, requires_grad=True)
y = x * 1
z = y * y
with torch.autograd._unsafe_preserve_version_counter(y):
    with torch.no_grad(): y.mul_(3)
print(y._version); z.sum().backward(); print(x.grad)
""",
    "several hidden writes": """
a, b = torch.ones(2), torch.ones(2); a.add_(1)
with torch.autograd._unsafe_preserve_version_counter((a, b)): a.add_(1); b.add_(1); print(a._version, b._version)
print(a._version, b._version, a, b)
""",
    "Variable": """
V = torch.autograd.variable
print(V.Variable is torch.autograd.Variable, type(V.Variable).__name__)
print(isinstance(torch.ones(2), V.Variable), isinstance(2, V.Variable), V.Variable(torch.ones(2), requires_grad=True))
""",
    "the old kinds of Function": """
F = torch.autograd.function
for kind in (F.InplaceFunction, F.NestedIOFunction, torch.autograd.NestedIOFunction, F.Function):
    class Square(kind):
        @staticmethod
        def forward(ctx, x): ctx.save_for_backward(x); return x * x
        @staticmethod
        def backward(ctx, grad): return grad * 2 * ctx.saved_tensors[0]
    x = torch.ones(2, requires_grad=True); y = Square.apply(x); y.sum().backward(); print(y, x.grad)
    print(issubclass(kind, F.FunctionCtx), y.grad_fn.name(), issubclass(kind, F.Function))
""",
    "an InplaceFunction keeps its flag": """
import warnings
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    print(torch.autograd.function.InplaceFunction(True).inplace, torch.autograd.function.InplaceFunction().inplace)
""",
    "saved tensors have a class": """
x = torch.ones(2, requires_grad=True)
print(isinstance((x * x).grad_fn._raw_saved_self, torch.autograd.SavedTensor))
""",
    "anomaly_mode": """
A = torch.autograd.anomaly_mode
with A.set_detect_anomaly(True): print(torch.is_anomaly_enabled())
print(A.detect_anomaly is torch.autograd.detect_anomaly, torch.is_anomaly_enabled())
""",
}

JACOBIANS = """
a = torch.tensor([1., 2., 3.], dtype=torch.float64, requires_grad=True)
b = torch.tensor([[0.5, 0.25]], dtype=torch.float64, requires_grad=True)
fixed = torch.tensor(2., dtype=torch.float64)
def shown(found): print([[list(one.shape), one.dtype, [round(v, 5) for v in one.flatten().tolist()]] for one in found])
"""
ANALYTICAL = """
out = (a * a).sum() * b * fixed
found, *told = G.get_analytical_jacobian((a, b, fixed), out); shown(found); print(told)
"""
OLD_JACOBIANS = {
    "numerical": "shown(G.get_numerical_jacobian(lambda xs: xs[0] * xs[0] * xs[2], (a, b, fixed), eps=1e-6))",
    "numerical, of a target": "shown(G.get_numerical_jacobian(lambda xs: a * b.sum(), (a, b), target=(b,), eps=1e-6))",
    "numerical, of one input": (
        "shown(G.get_numerical_jacobian_wrt_specific_input(lambda x, y: (x * y.sum(), y * 2), 1, (a, b), "
        "(a * b.sum(), b * 2), 1e-6))"
    ),
    "analytical": ANALYTICAL,
    "numerical with grad_out": "G.get_numerical_jacobian(lambda xs: xs[0], (a,), grad_out=2.0)",
    "analytical with grad_out": "G.get_analytical_jacobian((a,), a * a, grad_out=2.0)",
}


@pytest.mark.parametrize("name", MODULES)
def test_every_documented_name_is_here_or_has_a_reason(name):
    theirs = importlib.import_module(f"torch.autograd{name}")
    listed = {one for where, _, names in GROUPS if where == f"torch.autograd{name}" for one in names.split()}
    documented = set(theirs.__all__)
    with torch_names():
        ours = importlib.import_module(f"torch.autograd{name}")
        absent = {one for one in documented if not hasattr(ours, one)}
    assert absent == listed


def test_variable_is_refused_as_a_function():
    assert assert_shows_the_same("torch.autograd.variable([1.0], requires_grad=True)") is not None


@pytest.mark.parametrize("source", SAME.values(), ids=SAME)
def test_a_rare_name_does_what_pytorchs_does(source):
    assert assert_shows_the_same(source) is None


@pytest.mark.parametrize("name", OLD_JACOBIANS)
def test_the_jacobians_of_gradcheck_are_pytorchs(name):
    source = f"import importlib; G = importlib.import_module(torch.__name__ + '.autograd.gradcheck'){JACOBIANS}"
    problem = assert_shows_the_same(source + OLD_JACOBIANS[name])
    assert (problem is not None) == name.endswith("grad_out")


def test_a_script_may_import_a_module_that_is_called_as_a_function(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(
        """
import torch
import torch.autograd.gradcheck
import torch.autograd.forward_ad as fwAD
from torch.autograd.gradcheck import GradcheckError, get_numerical_jacobian
from torch.autograd.variable import Variable
from torch.func import grad
from torch.fft import rfft

print(torch.autograd.gradcheck(torch.sin, torch.ones(2, dtype=torch.float64, requires_grad=True)))
print(issubclass(GradcheckError, RuntimeError), grad(torch.sum)(torch.ones(1)), torch.masked.sum(torch.ones(2)))
with fwAD.dual_level():
    print(fwAD.unpack_dual(fwAD.make_dual(torch.ones(1), torch.ones(1)) * 2).tangent)
"""
    )
    assert run_script(str(script)) == 0
    assert capsys.readouterr().out == "True\nTrue tensor([1.]) tensor(2.)\ntensor([2.])\n"


def test_torch_is_what_it_was_after_a_script():
    assert torch.autograd.gradcheck is importlib.import_module("torch.autograd.gradcheck").gradcheck
