"""Anomaly mode: what it stops and what it lets pass, beside PyTorch; what the exception says; what it leaves behind."""

import threading
import traceback

import numpy as np
import pytest
import torch
from snippets import always_warning, assert_shows_the_same, run

import backlight
from backlight.dispatch.dispatcher import dispatching
from backlight.dispatch.numerical_hazards import HAZARDS, cause_of
from backlight.errors import AnomalyError
from backlight.kernels.native import core
from backlight.kernels.reduction.summaries import INFINITE, NAN, nonfinite_kinds
from backlight.kernels.sparse_array import sparse_use

INF = float("inf")
ON = "with torch.autograd.set_detect_anomaly(True):\n"


def anomaly(source: str, settings: str = "") -> AnomalyError:
    """Return the error that a program raises in anomaly mode."""
    outcome = run(backlight, inside(source, settings))
    assert isinstance(outcome.error, AnomalyError), outcome
    return outcome.error


def inside(source: str, settings: str = "") -> str:
    lines = "".join(f"    {line}\n" for line in source.strip().splitlines())
    return f"with torch.autograd.set_detect_anomaly(True{settings}):\n{lines}"


LEAF = "x = torch.tensor({}, requires_grad=True)\n"
# What PyTorch stops at: the numbers, the program, a part of the cause and of what was seen that ours names.
STOPPED = {
    "sqrt at 0": (
        "[0., 4.]",
        "(x.sqrt() * 0).sum().backward()",
        "infinite slope",
        "the root is 0 at [0] (1 of 2 values",
    ),
    "a branch that where does not take": (
        "[0., 4.]",
        "torch.where(x > 0, x.sqrt(), torch.zeros(2)).sum().backward()",
        "where() discards the value",
        "WhereBackward0 (<snippet>:3) discarded the value",
    ),
    "a branch that masked_fill hides": (
        "[0., 4.]",
        "x.sqrt().masked_fill(x == 0, 0.).sum().backward()",
        "where() discards the value",
        "MaskedFillBackward0 (<snippet>:3) discarded the value",
    ),
    "the root of a sum of squares": (
        "[0., 0.]",
        "((x ** 2).sum().sqrt() * 0).backward()",
        "infinite slope",
        "the root is 0",
    ),
    "log of 0": ("[0., 1.]", "(x.log() * 0).sum().backward()", "slope of a logarithm", "log of 0 at [0]"),
    "0 / 0": ("[0., 1.]", "(x / x).sum().backward()", "a division by 0", "division by 0 at [0] (1 of 2"),
    "x / std of equal numbers": (
        "[2., 2., 2.]",
        "((x - x.mean()) / x.std()).sum().backward()",
        "a division by 0",
        "division by 0",
    ),
    "reciprocal": ("[0., 1.]", "(x.reciprocal() * 0).sum().backward()", "a division by 0", "reciprocal is inf"),
    "a root of a negative number": (
        "[-8., 4.]",
        "(x ** 0.5).sum().backward()",
        "no real power",
        "base of pow: -8 at [0]",
    ),
    "a root of 0": ("[0., 4.]", "((x ** 0.5) * 0).sum().backward()", "exponent below 1", "base of pow: 0 at [0]"),
    "exp that overflowed": ("[100., 1.]", "(x.exp() * 0).sum().backward()", "exp overflows", "exp is inf at [0]"),
    "a row that is all masked": (
        "[[1., 2.]]",
        "x.masked_fill(torch.tensor([[True, True]]), -float('inf')).softmax(-1).square().sum().backward()",
        "every score of a row is -inf",
        "",
    ),
    "arccos at 1": ("[1., 0.]", "(x.acos() * 0).sum().backward()", "arccos and arcsin", "arccos or arcsin of 1 at [0]"),
    "hypot at the origin": (
        "[0., 1.]",
        "torch.hypot(x, x.detach() * 1).sum().backward()",
        "no derivative",
        "the result is 0 at [0]",
    ),
    "atan2 at the origin, which has slopes of 0": (
        "[0., 1.]",
        "torch.atan2(x, x.detach() * 1).sum().backward()",
        "",
        "",
    ),
    "an infinite factor": (
        "[0., 1.]",
        "(x * torch.tensor([float('inf'), 1.])).mul(0).sum().backward()",
        "",
        "",
    ),
    "numbers that are given NaN": (
        "[0., 1.]",
        "(x * torch.tensor([float('nan'), 1.])).sum().backward()",
        "its input contained NaN",
        "",
    ),
    "a value of the forward": (
        "[-1., 4.]",
        "(torch.ones(2, requires_grad=True) * x.log()).sum().backward()",
        "a negative number NaN",
        "log of -1",
    ),
    "vectors of equal eigenvalues": (
        "[1., 1.]",
        "torch.linalg.eigh(x.diag())[1].sum().backward()",
        "two eigenvalues or singular values are equal",
        "",
    ),
    "vectors of equal singular values": (
        "[1., 1.]",
        "torch.linalg.svd(x.diag())[0].sum().backward()",
        "two eigenvalues or singular values are equal",
        "",
    ),
    "float16": (
        "[300., 2.]",
        "(x.half().square() * 0).float().sum().backward()",
        "",
        "",
    ),
}


@pytest.mark.parametrize("name", STOPPED)
def test_what_stops_pytorch_stops_ours_with_its_words_and_the_cause(name):
    leaf, source, cause, seen = STOPPED[name]
    program = inside(LEAF.format(leaf) + source)
    theirs, ours = run(torch, program), run(backlight, program)
    assert (ours.error is None) == (theirs.error is None)
    if theirs.error is None:
        assert cause == ""
        return
    assert type(theirs.error) is RuntimeError and isinstance(ours.error, AnomalyError)
    assert str(ours.error).splitlines()[0] == str(theirs.error)
    assert cause in ours.error.cause and seen in ours.error.seen
    assert ours.error.cure in str(ours.error)


PASSED = {
    "a masked attention": (
        "s = torch.zeros(2, 3, requires_grad=True); m = torch.tensor([[True, False, False], [False, True, True]])\n"
        "    p = s.masked_fill(m, -float('inf')).softmax(-1); (p * p).sum().backward(); print(s.grad)"
    ),
    "an added mask": (
        "s = torch.zeros(2, 3, requires_grad=True); m = torch.tensor([[0., -float('inf'), 0.]])\n"
        "    (s + m).softmax(-1).square().sum().backward(); print(s.grad)"
    ),
    "log of 0 that nobody uses": (
        "x = torch.tensor([0., 1.]); w = torch.ones(2, requires_grad=True)\n"
        "    (torch.where(x > 0, x.log(), torch.zeros(2)) * w).sum().backward(); print(w.grad)"
    ),
    "a NaN of the forward": "x = torch.tensor([-1.], requires_grad=True); print(x.log())",
    "an infinite gradient": "x = torch.tensor([0.], requires_grad=True); x.log().sum().backward(); print(x.grad)",
    "NaN labels that are left out": (
        "x = torch.tensor([1., float('nan')]); w = torch.ones(2, requires_grad=True)\n"
        "    (torch.nan_to_num(x) * w).sum().backward(); print(w.grad)"
    ),
}


@pytest.mark.parametrize("name", PASSED)
def test_what_passes_in_pytorch_passes_here(name):
    assert assert_shows_the_same(f"{ON}    {PASSED[name]}") is None


LEGAL = {
    "a masked attention": PASSED["a masked attention"],
    "an added mask": PASSED["an added mask"],
    "where with an infinity": (
        "s = torch.zeros(2, 3, requires_grad=True); m = torch.tensor([[True, False, False], [False, True, True]])\n"
        "    p = torch.where(m, s, -float('inf')).softmax(-1); (p * p).sum().backward()"
    ),
    "attention with a causal mask": (
        "q = torch.zeros(1, 4, 8, requires_grad=True)\n"
        "    torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()"
    ),
    "a clamp without end": ("x = torch.ones(3, requires_grad=True); x.clamp(min=0, max=float('inf')).sum().backward()"),
    "a mean that leaves NaN out": (
        "x = torch.ones(3, requires_grad=True)\n"
        "    x.masked_fill(torch.tensor([True, False, False]), float('nan')).nanmean().backward()"
    ),
    "a running maximum": (
        "best = torch.full((2,), -float('inf')); x = torch.ones(2, requires_grad=True)\n"
        "    torch.maximum(best, x).sum().backward()"
    ),
    "counts of 0": (
        "x = torch.ones(2, requires_grad=True)\n"
        "    torch.nn.functional.poisson_nll_loss(x, torch.tensor([0., 3.]), full=True).backward()"
    ),
}


@pytest.mark.parametrize("name", LEGAL)
def test_numbers_that_the_program_gives_are_no_anomaly_of_the_forward(name):
    source = f"with torch.autograd.set_detect_anomaly(True, check_inf=True, forward=True):\n    {LEGAL[name]}"
    assert run(backlight, source).error is None


FORWARD = {
    "log": ("x = torch.tensor([1., -1.]); y = x + 0; z = y.log(); z.sum()", "nan", "log of -1 at [1]"),
    "div": ("x = torch.zeros(3); y = x / x", "nan", "division by 0 at [0] (3 of 3 values)"),
    "softmax": ("(torch.zeros(2, 2) - float('inf')).softmax(-1)", "nan", "a score is -inf at [0, 0]"),
    "exp": ("torch.tensor([1., 1000.]).exp()", "inf", "exp of 1000 at [1]"),
    "mul": ("x = torch.tensor([1e30, 1.]); x.mul_(x)", "inf", ""),
    "std": ("torch.ones(1).std()", "nan", ""),
    "mm": ("torch.full((2, 2), 1e30) @ torch.full((2, 2), 1e30)", "inf", ""),
    "sub": ("x = torch.full((2,), float('inf')); x - x", "nan", "its input contained an infinity"),
    "to_copy": ("torch.tensor([1e6]).half()", "inf", "it read 1e+06 at [0]"),
    "prod": ("torch.full((40,), 1e3).prod()", "inf", ""),
}


@pytest.mark.parametrize("op", FORWARD)
def test_the_first_op_that_makes_a_nan_or_an_infinity_stops_the_forward(op):
    source, kind, seen = FORWARD[op]
    found = anomaly(source, ", check_inf=True, forward=True")
    assert (found.phase, found.kind, found.op, found.line.line) == ("forward", kind, op, 2)
    assert seen in found.seen
    assert str(found).startswith(f"Function '{op}' returned {kind} values in its 0th output, in the forward.")


@pytest.mark.parametrize("op", [op for op, (_, kind, _) in FORWARD.items() if kind == "inf"])
def test_infinities_pass_unless_they_are_asked_for(op):
    assert run(backlight, inside(FORWARD[op][0], ", forward=True")).error is None


def test_data_that_hold_nan_stop_the_first_op_that_computes_with_them():
    found = anomaly("x = torch.tensor([1., float('nan')])\ny = x[None].t()\nz = y * 2", ", forward=True")
    assert (found.op, found.line.line, found.made_here) == ("mul", 4, False)
    assert "input already contained nan" in str(found)


def test_a_block_may_be_left_out():
    source = (
        "with torch.autograd.set_detect_anomaly(True, forward=True):\n"
        "    with torch.autograd.set_detect_anomaly(False):\n        x = torch.tensor([-1.]).log()\n"
        "    torch.nan_to_num(x) + 1"
    )
    assert run(backlight, source).error is None


def test_the_infinity_that_a_node_made_is_found_where_pytorch_stops_at_the_nan_made_of_it():
    source = "x = torch.tensor([0., 1.], requires_grad=True)\ny = x * 0\ny.log().sum().backward()"
    theirs, ours = run(torch, inside(source)), anomaly(source)
    assert (
        str(ours).splitlines()[0]
        == str(theirs.error)
        == "Function 'MulBackward0' returned nan values in its 0th output."
    )
    assert not ours.made_here and "LogBackward0 (<snippet>:4) made the first such gradient" in str(ours)
    assert "slope of a logarithm" in ours.cause
    sooner = anomaly(source, ", check_inf=True")
    assert (sooner.op, sooner.kind, sooner.made_here) == ("log", "inf", True)
    assert str(sooner).startswith("Function 'LogBackward0' returned inf values in its 0th output.")


def test_the_exception_has_all_of_it_in_fields():
    found = anomaly("x = torch.tensor([[0., 4., 1.]], requires_grad=True)\ny = x.sqrt()\nz = y * 0\nz.sum().backward()")
    assert (found.phase, found.kind, found.op, found.number, found.made_here) == ("backward", "nan", "sqrt", 0, True)
    assert found.node.name() == "SqrtBackward0" and found.line[:2] == ("<snippet>", 3)
    assert [one.name() for one in found.path] == ["SumBackward0", "MulBackward0", "SqrtBackward0"]
    assert list(found.values) == ["grad_output", "saved result", "grad_input 0"]
    made = found.values["grad_input 0"]
    assert (made.shape, made.dtype, made.least, made.most, made.nans, made.infs) == ((1, 3), "float32", 0.0, 0.0, 1, 0)
    assert made.first == (0, 0) and found.values["saved result"].few == [[0.0, 2.0, 1.0]]


def test_large_values_are_told_by_their_extremes():
    found = anomaly("x = torch.arange(20.).reshape(4, 5).requires_grad_()\n(x.sqrt() * 0).sum().backward()")
    assert str(found.values["saved result"]) == "float32 [4, 5] from 0 to 4.359"
    assert str(found.values["grad_input 0"]) == "float32 [4, 5] from 0 to 0, 1 nan (the first at [0, 0])"


def test_both_walks_find_the_same():
    leaf = "x = torch.tensor([0., 4.], requires_grad=True)\ny = (x.sqrt() * 0).sum()\n"
    compiled = anomaly(leaf + "y.backward()")
    for call in ("torch.autograd.grad(y, x)", "y.backward(create_graph=True)", "y.backward(inputs=[x])"):
        assert str(anomaly(leaf + call)) == str(compiled)
    hooked = anomaly(leaf + "x.register_hook(lambda grad: None)\ny.backward()")
    assert str(hooked) == str(compiled)


def test_leaves_that_were_complete_have_their_gradient_as_in_pytorch():
    source = (
        "w = torch.ones(2, requires_grad=True); x = torch.tensor([0., 4.], requires_grad=True)\n"
        "try:\n    with torch.autograd.set_detect_anomaly(True): ((x.sqrt() * 0) * w).sum().backward()\n"
        "except RuntimeError: pass\nprint(w.grad, x.grad)"
    )
    assert run(backlight, source).printed == run(torch, source).printed != "None None"


HOOKS = {
    "of a tensor": "y.register_hook(lambda grad: grad * float('nan'))",
    "after a node": "y.grad_fn.register_hook(lambda ins, outs: (ins[0] * float('nan'), None))",
    "before a node": "y.grad_fn.register_prehook(lambda outs: tuple(o * float('nan') for o in outs))",
}


@pytest.mark.parametrize("name", HOOKS)
def test_a_nan_that_a_hook_makes_stops_where_pytorch_stops(name):
    source = f"x = torch.ones(2, requires_grad=True)\ny = x * 2\n{HOOKS[name]}\n(y * 3).sum().backward()"
    theirs, ours = run(torch, inside(source)), anomaly(source)
    assert str(ours).splitlines()[0] == str(theirs.error)


def test_a_nan_that_backward_is_given_is_told_as_such():
    source = "x = torch.ones(2, requires_grad=True)\n(x * 2).backward(torch.tensor([float('nan'), 1.]))"
    theirs, ours = run(torch, inside(source)), anomaly(source)
    assert str(ours).splitlines()[0] == str(theirs.error)
    assert not ours.made_here and "passed to backward()" in ours.cause


def test_a_custom_functions_nan_is_found():
    source = """
class Bad(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 1
    @staticmethod
    def backward(ctx, grad):
        return grad / (grad - grad) * 0
x = torch.ones(2, requires_grad=True)
Bad.apply(x).sum().backward()
"""
    theirs, ours = run(torch, inside(source)), anomaly(source)
    assert (
        str(ours).splitlines()[0]
        == str(theirs.error)
        == "Function 'BadBackward' returned nan values in its 0th output."
    )
    assert ours.made_here and "backward of this autograd.Function" in ours.cause
    assert "saved saved_tensors[0]" in ours.values


def test_any_error_of_a_backward_tells_the_forward_line_in_the_exception_and_in_pytorchs_warning():
    source = (
        ON
        + """
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()
"""
    )
    theirs, ours = always_warning(torch, source), run(backlight, source)
    said = [text for _, text in ours.warned]
    assert said[0].startswith("Error detected in ExpBackward0. Traceback of forward call that caused the error:\n")
    assert said[0].splitlines()[0] == theirs.warned[0][1].splitlines()[0]
    assert said[0].splitlines()[1] in theirs.warned[0][1]
    shown = "".join(traceback.format_exception(ours.error))
    assert said[0].strip() in shown and "raised while running ExpBackward0" in shown


def test_a_node_of_a_recorded_backward_names_the_node_that_it_was_made_for():
    source = (
        ON
        + """
    x = torch.tensor([0., 1.], requires_grad=True)
    y = x ** 1.5
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (slope * 0).sum().backward()
"""
    )
    theirs, ours = always_warning(torch, source), run(backlight, source)
    assert str(ours.error).splitlines()[0] == str(theirs.error)
    induced = "Previous calculation was induced by PowBackward0. Traceback of forward call that induced the previous"
    assert any(induced in text for _, text in theirs.warned)
    (mine,) = [text for _, text in ours.warned if induced in text]
    assert 'File "<snippet>", line 4, in <module>' in mine
    assert any(induced in note for note in ours.error.__notes__)


def test_what_was_saved_is_freed_in_the_mode_as_without():
    source = (
        ON
        + "    x = torch.ones(2, requires_grad=True); y = (x.exp() * x.unbind()[0]).sum(); y.backward(); y.backward()"
    )
    theirs, ours = run(torch, source), run(backlight, source)
    assert str(ours.error).startswith(str(theirs.error)[:60])


def test_gradients_are_the_same_bits_in_the_mode():
    def slopes(**settings):
        rng = np.random.default_rng(0)
        layer = backlight.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        for parameter in layer.parameters():
            parameter.data = backlight.tensor(rng.normal(size=tuple(parameter.shape)).astype(np.float32))
        x = backlight.tensor(rng.normal(size=(2, 5, 8)).astype(np.float32))
        with backlight.autograd.set_detect_anomaly(bool(settings), **settings):
            layer(x).square().mean().backward()
        return [parameter.grad.numpy() for parameter in layer.parameters()]

    plain = slopes()
    for settings in ({"check_nan": True}, {"forward": True, "check_inf": True}):
        for one, other in zip(plain, slopes(**settings)):
            np.testing.assert_array_equal(one, other)


def test_nothing_intercepts_calls_after_the_mode():
    assert dispatching.active == sparse_use.begun
    with backlight.autograd.set_detect_anomaly(True, forward=True):
        assert dispatching.active and (core is None or core.core_intercepts())
        backlight.ones(2).cummax(dim=0)
    assert dispatching.active == sparse_use.begun and (core is None or bool(core.core_intercepts()) == sparse_use.begun)
    assert backlight.tensor([-1.0]).log().isnan().all()


def test_the_mode_holds_in_all_threads_as_in_pytorch():
    found = []

    def work():
        try:
            backlight.tensor([-1.0]).log()
        except AnomalyError as problem:
            found.append(problem.op)

    with backlight.autograd.set_detect_anomaly(True, forward=True):
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    assert found == ["log"]


def test_settings_are_restored_from_the_inside_out():
    mode = backlight.autograd.set_detect_anomaly
    with mode(True, check_nan=False, check_inf=True, forward=True):
        with mode(True):
            assert backlight.is_anomaly_check_nan_enabled()
            assert backlight.tensor([-1.0]).log().isnan().all()
        assert not backlight.is_anomaly_check_nan_enabled()
        with pytest.raises(AnomalyError):
            backlight.tensor([0.0]).log()
    assert not backlight.is_anomaly_enabled()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, backlight.bfloat16.numpy])
def test_oddities_are_found_in_any_layout(dtype):
    rng = np.random.default_rng(1)
    for odd, value in ((0, 1.0), (INFINITE, INF), (INFINITE, -INF), (NAN, np.nan)):
        for _ in range(30):
            shape = tuple(rng.integers(1, 9, size=rng.integers(0, 5)))
            array = np.array(rng.normal(size=shape).astype(dtype))
            array.reshape(-1)[rng.integers(array.size)] = value
            for seen in (array, array.T, array[::-1] if shape else array, np.broadcast_to(array, (3, *shape))):
                assert nonfinite_kinds(seen) == odd


def test_every_pitfall_is_looked_at_without_complaint():
    numbers = np.array([-2.0, -1.0, 0.0, 1.0, INF, np.nan])
    for row in HAZARDS:
        for op in row.when.ops:
            for kind in ("nan", "inf", "derivative"):
                found = cause_of(op, (numbers, numbers), kind, out=numbers)
                assert found.cause and found.cure


@pytest.mark.filterwarnings("ignore:Error detected in")
def test_what_arrived_at_a_node_is_told_though_the_walk_writes_over_it():
    x = backlight.tensor([0.0, 1.0], requires_grad=True)
    loss = (x.sqrt() * backlight.tensor([3.0, 5.0])).sum()
    with backlight.autograd.set_detect_anomaly(True, check_inf=True), pytest.raises(AnomalyError) as caught:
        loss.backward()
    assert caught.value.values["grad_output"].few == [3.0, 5.0]
    assert caught.value.made_here
