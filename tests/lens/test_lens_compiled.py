"""Compiled, scripted, transformed and wrapped modules run under the lens as they do alone, and the doctor says so."""

import socket
import sys
import threading
import warnings
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacrev, vmap
from under_the_doctor import ENGINES, engine_called, findings_of, names_of, run

from backlight import lens
from backlight.adapters.torch_engine import torch_engine
from backlight.dispatch.observers import Watcher

STEPS = 2
X = torch.ones(2, 3)


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))


def train(module: nn.Module, call: Callable | None = None) -> list[float]:
    call = module if call is None else call
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = call(X).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def compiled(**options) -> list[float]:
    module = model()
    return train(module, torch.compile(module, **options))


def compiled_in_place() -> list[float]:
    module = model()
    module.compile(backend="eager")
    return train(module)


def compiled_function() -> list[float]:
    module = model()
    return train(module, torch.compile(lambda x: module(x).relu(), backend="aot_eager"))


def compiled_step() -> list[float]:
    module = model()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

    @torch.compile(backend="eager")
    def step(x: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = module(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    return [step(X).item() for _ in range(STEPS)]


def scripted() -> list[float]:
    return train(torch.jit.script(model()))


def traced() -> list[float]:
    module = model()
    return train(module, torch.jit.trace(module, X))


def transformed() -> list[float]:
    module = model()
    params = {name: one.detach() for name, one in module.named_parameters()}

    def loss(params: dict, x: torch.Tensor) -> torch.Tensor:
        return functional_call(module, params, (x,)).square().mean()

    grads = vmap(grad(loss), (None, 0))(params, torch.ones(5, 3))
    rows = jacrev(lambda x: functional_call(module, params, (x,)))(torch.ones(3))
    seconds = hessian(lambda x: functional_call(module, params, (x,)).square().sum())(torch.ones(3))
    return [grads["0.weight"].sum().item(), rows.sum().item(), seconds.sum().item()]


def distributed() -> list[float]:
    return train(nn.parallel.DistributedDataParallel(model()))


def sharded() -> list[float]:
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    return train(torch.distributed.fsdp.fully_shard(model(), mesh=mesh))


COMPILED = (
    lambda: compiled(backend="eager"),
    lambda: compiled(backend="aot_eager"),
    lambda: compiled(backend="eager", fullgraph=True),
    compiled_in_place,
    compiled_function,
    compiled_step,
    scripted,
    traced,
)
NAMES = ("eager", "aot_eager", "fullgraph", "in_place", "function", "step", "scripted", "traced")


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def same_under_the_lens(program: Callable[[], list[float]]):
    """Compare a program's numbers alone, under the doctor and recorded; return the doctor's report."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = program()
        torch._dynamo.reset()
        with lens.doctor(engines=[torch_engine()], strict=True) as report:
            assert program() == alone
        torch._dynamo.reset()
        with lens.watch(engine="torch"):
            assert program() == alone
    assert not report.session.watches[0].failed
    assert report.findings == []
    return report


@pytest.mark.parametrize("program", COMPILED, ids=NAMES)
def test_compiled_code_runs_untouched_and_is_named_as_not_seen(program: Callable[[], list[float]]):
    report = same_under_the_lens(program)
    assert report.coverage.compiled and "not seen: the inside of" in report.summary


def test_transforms_run_as_alone():
    same_under_the_lens(transformed)


@pytest.mark.skipif(not torch.distributed.is_available(), reason="PyTorch was built without torch.distributed")
@pytest.mark.parametrize("program", [distributed, sharded])
def test_wrappers_of_one_process_run_as_alone(program: Callable[[], list[float]]):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    hook = sys.excepthook  # torch.distributed puts its own there
    torch.distributed.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=0, world_size=1)
    try:
        same_under_the_lens(program)
    finally:
        torch.distributed.destroy_process_group()
        sys.excepthook = hook


def test_inputs_outputs_and_gradients_of_a_compiled_module_are_seen():
    seen = []

    class Seen(Watcher):
        def called(self, call) -> None:
            if call.name.startswith("compiled"):
                seen.append((call.name, call.args[0] is X, call.out.requires_grad))

        def entered(self, module, path: str) -> None:
            seen.append(type(module).__name__)

        def accumulated(self, run, tensor, arrived, before) -> None:
            seen.append(tuple(tensor.shape))

    with torch_engine().observe(Seen()):
        module = model()
        torch.compile(module, backend="aot_eager")(X).sum().backward()
    assert seen[:2] == ["Sequential", ("compiled Sequential", True, True)]
    assert sorted(seen[2:]) == sorted(tuple(one.shape) for one in module.parameters())


def test_what_a_compiled_module_does_wrong_is_found_from_outside():
    program = """
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x):
        return torch.log(self.used(x) * 0 - 1)

def main():
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model, backend="aot_eager")
    for step in range(2):
        optimizer.zero_grad()
        compiled(torch.ones(2, 3)).mean().backward()
        optimizer.step()
main()
"""
    found = {one.rule: one for one in findings_of(program, "torch")}
    assert set(found) == {"BL707", "BL805"}
    assert found["BL707"].title.startswith("unused.weight, unused.bias never contributed")
    assert "inside the compiled code" in found["BL805"].cause


def test_an_error_inside_leaves_the_lens_watching_and_pytorch_as_it_was():
    before = torch.Tensor.backward, dict(vars(torch._dynamo.eval_frame.OptimizedModule)), nn.Module.__setattr__

    def fails(x: torch.Tensor) -> torch.Tensor:
        return x @ x

    with lens.doctor(engines=[torch_engine()]) as report:
        with pytest.raises(Exception, match=r"mat1 and mat2|shape|size"):
            torch.compile(fails, backend="eager")(torch.ones(2, 3))
        torch.ones(1, requires_grad=True).sum().backward()
    assert report.coverage.backwards == 1
    after = torch.Tensor.backward, dict(vars(torch._dynamo.eval_frame.OptimizedModule)), nn.Module.__setattr__
    assert after == before


@pytest.mark.parametrize("engine", ENGINES)
def test_what_was_looked_at_stands_in_every_report(engine: str):
    program = """
def main():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss = model(torch.ones(2, 3)).sum()
        loss.backward()
        optimizer.step()
    try:
        loss.backward()
        loss.backward()
    except RuntimeError:
        pass
main()
"""
    visit = lens.doctor(engines=[engine_called(engine)])
    run(program, engine, visit)
    report = visit.report
    assert report.summary == (
        "no findings in 3 steps: 4 backwards, 1 optimizer with 2 parameters, 1 module; "
        "not seen: why 1 backward failed, since the program caught the error"
    )
    assert str(report) == f"doctor: {report.summary}" and report.summary in report._repr_html_()
    assert '"coverage": {"steps": 3, "backwards": 4' in report.to_json()
    assert '"properties": {"coverage": {"steps": 3' in report.to_sarif()


@pytest.mark.parametrize("engine", ENGINES)
def test_backwards_in_other_threads_are_counted_as_not_seen(engine: str, capsys):
    space = run("def main():\n    torch.ones(1, requires_grad=True).sum().backward()\n", engine)

    @lens.doctor(engines=[engine_called(engine)])
    def both() -> None:
        space["main"]()
        threads = [threading.Thread(target=space["main"]) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with names_of(engine):
        both()
    said = "doctor: no findings in 1 backward; not seen: 2 backwards in another thread\n"
    assert capsys.readouterr().err == said
