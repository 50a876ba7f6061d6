"""The doctor leaves a program as it is: its classes, its memory, its versions, its warnings, its errors."""

import gc
import sys
import threading
import warnings
import weakref

import pytest
from under_the_doctor import ENGINES, engine_called, findings_of, names_of, run

from backlight import lens
from backlight.lens.doctor.detectors.losses import Trends

ENGINE = pytest.mark.parametrize("engine", ENGINES)
STEP = """
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(2):
    optimizer.zero_grad()
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
"""


def faces(torch) -> dict:
    """Return what stands in the classes that are patched."""
    kinds = [torch.Tensor, torch.nn.Module, torch.optim.Optimizer, torch.optim.SGD, torch.no_grad, torch.enable_grad]
    kinds.append(torch.inference_mode)
    hooks = getattr(torch.autograd.graph, "saved_tensors_hooks", None)
    kinds += [] if hooks is None else [hooks]
    return {(kind, name): value for kind in kinds for name, value in vars(kind).items() if name[:3] != "__a"}


@ENGINE
@pytest.mark.parametrize("source", [STEP, STEP + "raise ValueError('the end')\n"], ids=["well", "failing"])
def test_all_is_put_back(engine: str, source: str):
    run(STEP, engine)  # PyTorch puts names into its optimizers when they are first used
    torch = engine_called(engine).module
    before = faces(torch)
    findings_of(source, engine, strict=True)
    assert faces(torch) == before
    hooks = vars(sys.modules[torch.optim.Optimizer.__module__])
    for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"):
        assert not hooks.get(name)


@ENGINE
@pytest.mark.parametrize("strict", [False, True])
def test_no_tensor_is_kept_alive(engine: str, strict: bool):
    torch = engine_called(engine).module
    with lens.doctor(engines=[engine_called(engine)], strict=strict):
        leaf = torch.ones(100, requires_grad=True)
        middle = (leaf * 2).exp()
        alias = middle.detach()
        middle.sum().backward()
        watched = [weakref.ref(one) for one in (leaf, middle, alias, leaf.grad)]
        del leaf, middle, alias
        torch.zeros(1)  # the last result is held until the next
        gc.collect()
        assert [one() for one in watched] == [None] * 4


@ENGINE
def test_what_locals_returned_stays(engine: str):
    torch = engine_called(engine).module
    with lens.doctor(engines=[engine_called(engine)]):
        leaf = torch.ones(2, requires_grad=True)
        mine = locals()
        (leaf * 2).sum().backward()
        assert mine["leaf"] is leaf
        assert mine is locals() or sys.version_info >= (3, 13)  # where each call returns a dict of its own


@ENGINE
def test_versions_are_the_programs_own(engine: str):
    source = STEP + "versions = [model.weight._version, model.weight.grad._version, model.bias._version]\n"
    alone = run(source, engine)["versions"]
    assert run(source, engine, lens.doctor(engines=[engine_called(engine)], strict=True))["versions"] == alone


@ENGINE
def test_warnings_are_the_programs_own(engine: str):
    source = "y = torch.ones(3, requires_grad=True) * 2\ny.grad\nF.mse_loss(y.sum(), torch.ones(1))\n"
    shown = []
    for visit in (None, lens.doctor(engines=[engine_called(engine)], strict=True)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run(source, engine, visit)
        shown.append([str(one.message) for one in caught])
    assert shown[0] == shown[1] and len(shown[0]) == 2


@ENGINE
def test_an_error_is_the_programs_own(engine: str):
    for visit in (None, lens.doctor(engines=[engine_called(engine)], strict=True)):
        with pytest.raises(RuntimeError, match="does not require grad"):
            run("torch.ones(1).backward()\n", engine, visit)


@ENGINE
def test_a_part_that_fails_gives_up_alone(engine: str, monkeypatch):
    def fail(self, call):
        raise ZeroDivisionError("a mistake of the doctor's own")

    monkeypatch.setattr(Trends, "called", fail)
    visit = lens.doctor(engines=[engine_called(engine)])
    with pytest.warns(UserWarning, match="Trends failed and stopped"):
        run("torch.relu(torch.ones(2))\ntorch.no_grad()\n", engine, visit)
    assert [one.slug for one in visit.session.findings] == ["bare-no-grad"]


@ENGINE
def test_other_threads_are_left_alone(engine: str):
    torch = engine_called(engine).module
    seen = []

    def work():
        weight = torch.ones(1, requires_grad=True)
        for _ in range(4):
            (weight * 2).sum().backward()
            seen.append(weight.grad.item())

    with lens.doctor(engines=[engine_called(engine)]) as report:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [2.0, 4.0, 6.0, 8.0] and report.findings == []


UNUSUAL = {
    "vmap": "torch.func.vmap(torch.func.grad(lambda x: (x ** 2).sum()))(torch.ones(3, 2))",
    "nested": "n = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], requires_grad=True)\n"
    "(n * 2).to_padded_tensor(0.0).sum().backward()",
    "sparse": "nn.Embedding(9, 3, sparse=True)(torch.tensor([1, 2])).sum().backward()",
    "meta": "nn.Linear(3, 3, device='meta')(torch.ones(2, 3, device='meta')).sum().backward()",
    "complex": "z = torch.ones(3, dtype=torch.complex64, requires_grad=True)\n(z * z.conj()).real.sum().backward()",
    "lazy": "model = nn.LazyLinear(2)\nmodel(torch.ones(1, 3)).sum().backward()",
    "padding": "nn.Embedding(9, 3, padding_idx=0)(torch.tensor([0, 2])).sum().backward()",
    "bfloat16": "nn.Linear(3, 3).bfloat16()(torch.ones(2, 3, dtype=torch.bfloat16)).sum().backward()",
    "quantised": "torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize()",
    "subclass": "class Mine(torch.Tensor): pass\n"
    "(torch.ones(3).as_subclass(Mine).requires_grad_() * 2).sum().backward()",
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.filterwarnings("ignore:.*quantize_per_tensor")
@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_tensors_do_no_harm(name: str):
    visit = lens.doctor(engines=[engine_called("torch")], strict=True)
    run(UNUSUAL[name], "torch", visit)
    assert visit.session.findings == []


def test_a_patched_engine_still_stands_in_for_pytorch():
    with lens.doctor(engines=[engine_called("backlight")]), names_of("backlight"):
        import torch

        assert torch.Tensor is engine_called("backlight").module.Tensor
