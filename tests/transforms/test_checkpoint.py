"""Checkpoints: the same gradients as without, from less memory; PyTorch's counts, order and errors."""

import gc
import math
import threading
import warnings
import weakref
from contextlib import nullcontext

import pytest
import torch
import torch.utils.checkpoint

import backlight
import backlight.utils.checkpoint
from backlight import lens
from backlight.autograd.graph import saved_tensors_hooks

PLACES = {"torch": torch.utils.checkpoint, "backlight": backlight.utils.checkpoint}
LIBS = {"torch": torch, "backlight": backlight}
SIDES = pytest.mark.parametrize("lib", LIBS.values(), ids=LIBS.keys())
FORMS = pytest.mark.parametrize("use_reentrant", [False, True])


def of(lib):
    return PLACES[lib.__name__]


def start(lib):
    return lib.tensor([0.1, 0.2, 0.3], requires_grad=True)


def curve(x):
    return (x.sin() * 2).exp()


def plain(value):
    """Return a result in a form that both libraries' can be compared in."""
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return [f"{one:.4g}" for one in value.flatten().tolist()] if hasattr(value, "tolist") else value


class OneTime:
    """A function that does `first` when it is called for the first time and `then` afterwards."""

    def __init__(self, first, then):
        self.functions = [first, then]

    def __call__(self, x):
        return (self.functions.pop(0) if len(self.functions) > 1 else self.functions[0])(x)


def retained(lib, checkpoint, form):
    x = start(lib)
    y = checkpoint(curve, x, use_reentrant=form)
    y.sum().backward(retain_graph=True)
    y.sum().backward()
    return x.grad


def keyword_arguments(lib, checkpoint, form):
    x = start(lib)
    checkpoint(lambda x, k=1: x.exp() * k, x, k=3, use_reentrant=False).sum().backward()
    return x.grad


def other_arguments(lib, checkpoint, form):
    x = start(lib)
    y, text = checkpoint(lambda x, factor, text: (x.exp() * factor, text), x, 2, "text", use_reentrant=form)
    y.sum().backward()
    return x.grad, text


def recorded_backward(lib, checkpoint, form):
    x = start(lib)
    (slope,) = lib.autograd.grad(checkpoint(curve, x, use_reentrant=False).sum(), x, create_graph=True)
    return slope, *lib.autograd.grad(slope.sum(), x)


def without_recording(lib, checkpoint, form):
    with lib.no_grad():
        return checkpoint(curve, start(lib), use_reentrant=form).requires_grad


def without_grad(lib, checkpoint, form):
    return checkpoint(curve, lib.ones(3), use_reentrant=False).requires_grad


def counted(lib, checkpoint, form, **options):
    log = []

    def function(x):
        for number in range(3):
            x = x.exp()
            log.append(number)
        return x

    x = start(lib)
    y = checkpoint(function, x, use_reentrant=False, **options)
    log.append("backward")
    y.sum().backward()
    return log, x.grad


def without_early_stop(lib, checkpoint, form):
    with of(lib).set_checkpoint_early_stop(False):
        inside = counted(lib, checkpoint, form)
    return inside, counted(lib, checkpoint, form, early_stop=False)


def nested(lib, checkpoint, form):
    log = []

    def inner(x):
        log.append("inner begins")
        out = x.sin().exp()
        log.append("inner ends")
        return out

    def outer(x):
        log.append("outer begins")
        out = checkpoint(inner, x.cos(), use_reentrant=form).sin()
        log.append("outer ends")
        return out.exp()

    x = start(lib)
    y = checkpoint(outer, x, use_reentrant=form)
    log.append("backward")
    y.sum().backward()
    return log, x.grad


def three_deep(lib, checkpoint, form):
    calls = []

    def function(x, depth):
        calls.append(depth)
        return curve(x) if depth == 0 else checkpoint(function, x.sin(), depth - 1, use_reentrant=form).cos()

    x = start(lib)
    checkpoint(function, x, 3, use_reentrant=form).sum().backward()
    return calls, x.grad


def backward_inside(lib, checkpoint, form, **options):
    log = []

    def function(x):
        log.append("begins")
        z = x.sin().cos()
        (slope,) = lib.autograd.grad(z.sum(), x, **options)
        log.append("differentiated")
        return slope.detach() * (z if options else x.cos())

    x = start(lib)
    y = checkpoint(function, x, use_reentrant=False)
    log.append("backward")
    y.sum().backward()
    return log, x.grad


def backward_inside_retained(lib, checkpoint, form):
    return backward_inside(lib, checkpoint, form, retain_graph=True)


def dropout(lib, checkpoint, form, **options):
    lib.manual_seed(3)
    x = lib.ones(6, requires_grad=True)
    y = checkpoint(lambda x: lib.nn.functional.dropout(x.exp(), 0.5) * 2, x, use_reentrant=form, **options)
    between = lib.rand(1)
    y.sum().backward()
    return x.grad, between, lib.rand(1)


def dropout_drawn_anew(lib, checkpoint, form):
    return dropout(lib, checkpoint, form, preserve_rng_state=False)


def sequential(lib, checkpoint, form):
    x = start(lib)
    parts = [lib.sin, lib.exp, lib.cos, lib.sin, lib.exp]
    of(lib).checkpoint_sequential(parts, 2, x, use_reentrant=form).sum().backward()
    return x.grad


def a_dict(lib, checkpoint, form):
    x = start(lib)
    out = checkpoint(lambda x: {"y": x.exp(), "number": 3}, x, use_reentrant=False)
    out["y"].sum().backward()
    return x.grad, out["number"]


def read_saved(lib, checkpoint, form):
    x = start(lib)
    y = checkpoint(curve, x, use_reentrant=False)
    node = y.grad_fn
    return node._saved_result, node._saved_result, node.next_functions[0][0].name()


def partly(lib, checkpoint, form):
    x, w = start(lib), start(lib)
    y = checkpoint(lambda x, w: (x * w).exp(), x, w, use_reentrant=False)
    return lib.autograd.grad(y.sum(), w)


def in_hooks(lib, checkpoint, form):
    log, x = [], start(lib)

    def pack(tensor):
        log.append(tuple(tensor.shape))
        return tensor

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor * 2):
        y = checkpoint(lambda x: (x * x).exp(), x.sin(), use_reentrant=form)
    y.sum().backward()
    return log, x.grad


def grad_modes(lib, checkpoint, form):
    modes = []

    def function(x):
        modes.append(lib.is_grad_enabled())
        with lib.no_grad():
            factor = x.sum()
        return (x * factor).exp()

    x = start(lib)
    checkpoint(function, x, use_reentrant=form).sum().backward()
    return modes, x.grad


def contexts(lib, checkpoint, form):
    log = []

    class Block:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(f"{self.name} begins")

        def __exit__(self, *exc):
            log.append(f"{self.name} ends")

    x = start(lib)
    y = checkpoint(curve, x, use_reentrant=False, context_fn=lambda: (Block("forward"), Block("again")))
    y.sum().backward()
    return log, x.grad


@FORMS
@pytest.mark.parametrize(
    "program",
    [
        retained,
        keyword_arguments,
        other_arguments,
        recorded_backward,
        without_recording,
        without_grad,
        counted,
        without_early_stop,
        nested,
        three_deep,
        backward_inside,
        backward_inside_retained,
        dropout,
        dropout_drawn_anew,
        sequential,
        a_dict,
        read_saved,
        partly,
        in_hooks,
        grad_modes,
        contexts,
    ],
)
@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")  # inside an outer one nothing is recorded
def test_results_counts_and_order_are_pytorchs(program, use_reentrant):
    expected, found = (program(lib, of(lib).checkpoint, use_reentrant) for lib in (torch, backlight))
    assert plain(found) == plain(expected)


def fewer_saved(lib, checkpoint):
    x = start(lib)
    checkpoint(OneTime(lambda x: x.sin().exp(), lambda x: x.sin()), x, use_reentrant=False).sum().backward()


def more_saved(lib, checkpoint):
    function = OneTime(lambda x: x.sin(), lambda x: x.sin().exp())
    checkpoint(function, start(lib), use_reentrant=False, early_stop=False).sum().backward()


def other_shapes(lib, checkpoint):
    function = OneTime(lambda x: x[:2].exp(), lambda x: x.exp())
    checkpoint(function, start(lib), use_reentrant=False).sum().backward()


def saved_twice(lib, checkpoint):
    class Twice(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return ctx.saved_tensors[0] * 0 + ctx.saved_tensors[0] * 0 + grad * 2

    checkpoint(lambda x: Twice.apply(x * 1).exp(), start(lib), use_reentrant=False).sum().backward()


def explained(lib, checkpoint):
    function = OneTime(lambda x: x.sin().exp(), lambda x: x.sin())
    with of(lib).set_checkpoint_debug_enabled(True):
        y = checkpoint(function, start(lib), use_reentrant=False)
    y.sum().backward()


def input_written_to(lib, checkpoint):
    z = start(lib) * 1
    y = checkpoint(curve, z, use_reentrant=False)
    z.add_(1)
    y.sum().backward()


def input_of_reentrant_written_to(lib, checkpoint):
    z = start(lib) * 1
    y = checkpoint(curve, z, use_reentrant=True)
    z.add_(1)
    y.sum().backward()


def reentrant_grad(lib, checkpoint):
    x = start(lib)
    lib.autograd.grad(checkpoint(curve, x, use_reentrant=True).sum(), x)


def reentrant_inputs(lib, checkpoint):
    x = start(lib)
    checkpoint(curve, x, use_reentrant=True).sum().backward(inputs=[x])


def reentrant_constant(lib, checkpoint):
    checkpoint(lambda x: lib.ones(3), start(lib), use_reentrant=True).sum().backward()


def reentrant_keyword(lib, checkpoint):
    checkpoint(curve, start(lib), use_reentrant=True, factor=2)


def reentrant_debug(lib, checkpoint):
    checkpoint(curve, start(lib), use_reentrant=True, debug=True)


def unknown_check(lib, checkpoint):
    checkpoint(curve, start(lib), use_reentrant=False, determinism_check="all")


def debug_with_contexts(lib, checkpoint):
    def blocks():
        return nullcontext(), nullcontext()

    checkpoint(curve, start(lib), use_reentrant=False, debug=True, context_fn=blocks)


def twice(lib, checkpoint):
    y = checkpoint(curve, start(lib), use_reentrant=False)
    y.sum().backward()
    y.sum().backward()


def sequential_keyword(lib, checkpoint):
    of(lib).checkpoint_sequential([lib.sin, lib.exp], 2, start(lib), use_reentrant=False, factor=3)


def a_list(lib, checkpoint):
    of(lib).detach_variable([start(lib)])


def fails(lib, checkpoint):
    checkpoint(lambda x: {}[x.ndim], start(lib), use_reentrant=False)


def swallowed(lib, checkpoint):
    class Swallowing:
        def __enter__(self):
            pass

        def __exit__(self, *exc):
            return True

    checkpoint(lambda x: {}[3], start(lib), use_reentrant=False, context_fn=lambda: (Swallowing(), nullcontext()))


def overlapping_group(lib, checkpoint):
    y = checkpoint(curve, start(lib), use_reentrant=False)
    with of(lib).GraphExecGroup():
        y.sum().backward(retain_graph=True)
        y.sum().backward()


@pytest.mark.parametrize(
    "program",
    [
        fewer_saved,
        more_saved,
        other_shapes,
        saved_twice,
        input_written_to,
        input_of_reentrant_written_to,
        reentrant_grad,
        reentrant_inputs,
        reentrant_constant,
        reentrant_keyword,
        reentrant_debug,
        unknown_check,
        debug_with_contexts,
        twice,
        sequential_keyword,
        a_list,
        fails,
        swallowed,
        overlapping_group,
    ],
)
def test_errors_begin_as_pytorchs(program):
    problems = []
    for lib in (torch, backlight):
        with pytest.raises(Exception) as problem:
            program(lib, of(lib).checkpoint)
        problems.append(problem.value)
    expected, found = problems
    kinds = {kind.__name__ for kind in type(found).__mro__}
    assert type(expected).__name__ in kinds
    text = str(expected).split("\nIf this error occurs under torch.compile")[0].split("\n+~~~")[0].rstrip()
    assert str(found).startswith(text)


def test_debug_changes_no_result():
    x = start(backlight)
    backlight.utils.checkpoint.checkpoint(curve, x, use_reentrant=False, debug=True).sum().backward()
    other = start(backlight)
    curve(other).sum().backward()
    assert x.grad.tolist() == other.grad.tolist()


def test_an_error_with_debug_lists_the_ops_of_both_runs_with_their_lines():
    with pytest.raises(backlight.utils.checkpoint.CheckpointError, match="They differ from operation 2 on") as problem:
        explained(backlight, backlight.utils.checkpoint.checkpoint)
    assert str(problem.value).startswith(
        " An error happened while unpacking tensors; dumping logs of latest computation\n"
        "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`."
    )
    assert "sin(float32[3])" in str(problem.value)
    assert "test_checkpoint.py" in str(problem.value)


@pytest.mark.parametrize("call", [lambda lib, x: of(lib).checkpoint(curve, x), None], ids=["checkpoint", "sequential"])
def test_not_choosing_a_form_is_warned_of(call):
    texts = []
    for lib in (torch, backlight):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if call is None:
                of(lib).checkpoint_sequential([lib.sin, lib.exp], 1, start(lib))
            else:
                call(lib, start(lib))
            of(lib).checkpoint(curve, lib.ones(3), use_reentrant=True)
        texts.append([(one.category, str(one.message)) for one in caught])
    assert texts[0] == texts[1]
    assert len(texts[0]) == 2


@SIDES
def test_a_group_recomputes_once_for_several_backward_calls(lib):
    calls, x, w = [], start(lib), start(lib)

    def function(x, w):
        calls.append(1)
        return x.exp(), w.exp()

    one, other = of(lib).checkpoint(function, x, w, use_reentrant=False)
    with of(lib).GraphExecGroup():
        one.sum().backward()
        other.sum().backward()
    assert len(calls) == 2
    group = of(lib).GraphExecGroup
    with group(), pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"), group():
        pass


def network(lib):
    lib.manual_seed(0)
    layers = [lib.nn.Sequential(lib.nn.Linear(8, 8), lib.nn.GELU(), lib.nn.Dropout(0.3)) for _ in range(4)]
    return lib.nn.Sequential(*layers).double()


@FORMS
def test_training_equals_the_plain_run_bit_for_bit(use_reentrant):
    found = []
    for checkpointed in (False, True):
        model = network(backlight)
        optimizer = backlight.optim.Adam(model.parameters(), lr=0.01)
        x = backlight.randn(5, 8, dtype=backlight.float64, requires_grad=True)
        for _ in range(3):
            optimizer.zero_grad()
            y = x
            for layer in model:
                if checkpointed:
                    y = backlight.utils.checkpoint.checkpoint(layer, y, use_reentrant=use_reentrant)
                else:
                    y = layer(y)
            (y**2).sum().backward()
            optimizer.step()
        found.append([one.tolist() for one in model.parameters()])
    assert found[0] == found[1]


def noted(arrays: list):
    """Return a block of four ops, each of which saves a tensor, and notes the memory of all."""

    def block(y):
        for function in (backlight.sin, backlight.exp, backlight.tanh, backlight.cos):
            y = function(y)
            arrays.append(weakref.ref(y._data))
        return y

    return block


def living(arrays: list) -> int:
    gc.collect()
    return sum(one() is not None for one in arrays)


def test_less_memory_is_held_between_forward_and_backward():
    held = []
    for checkpointed in (False, True):
        arrays = []
        block = noted(arrays)
        y = backlight.ones(10, requires_grad=True)
        for _ in range(4):
            y = backlight.utils.checkpoint.checkpoint(block, y, use_reentrant=False) if checkpointed else block(y)
        held.append(living(arrays))
    assert held == [12, 4]  # exp saves what it made, not what it read; then: three inputs of blocks, the last output


def test_what_was_recomputed_is_gone_after_backward():
    arrays = []
    x = backlight.ones(10, requires_grad=True)
    y = backlight.utils.checkpoint.checkpoint(noted(arrays), x, use_reentrant=False)
    arrays.clear()
    for _ in range(3):
        y.sum().backward(retain_graph=True)
    assert len(arrays) == 9  # the last op saves its input: it is not run again
    assert living(arrays) == 0


def test_a_long_chain_and_a_deep_nest_of_checkpoints():
    checkpoint = backlight.utils.checkpoint.checkpoint
    x = backlight.tensor([0.5], requires_grad=True, dtype=backlight.float64)
    y = x
    for _ in range(400):
        y = checkpoint(backlight.sin, y, use_reentrant=False)
    y.backward()
    expected, x.grad = x.grad.item(), None
    y = x
    for _ in range(400):
        y = y.sin()
    y.backward()
    assert x.grad.item() == expected

    def deep(x, depth):
        return x.sin() if depth == 0 else checkpoint(deep, x.sin(), depth - 1, use_reentrant=False)

    x.grad = None
    deep(x, 12).backward()
    nest, x.grad = x.grad.item(), None
    y = x
    for _ in range(13):
        y = y.sin()
    y.backward()
    assert nest == x.grad.item()


def test_a_checkpoint_packs_nothing_that_others_see():
    seen, x = [], start(backlight)
    with saved_tensors_hooks(lambda tensor: seen.append(tensor) or tensor, lambda tensor: tensor):
        backlight.utils.checkpoint.checkpoint(curve, x, use_reentrant=False)
    assert [one is x for one in seen] == [True]


@SIDES
@FORMS
def test_a_watched_checkpoint_is_recorded_alike_on_both_engines(lib, use_reentrant):
    """What is recomputed is not shown a second time, and nothing counts as saved that is not."""
    x = start(lib)
    with lens.watch() as watch:
        h = x * 2
        h = of(lib).checkpoint(lambda h: h.tanh().exp(), h, use_reentrant=use_reentrant)
        h.sum().backward()
    types = [node.type for node in watch.record.nodes]
    saved = {node.type: [one.name for one in node.saved] for node in watch.record.nodes if node.saved}
    if use_reentrant:
        assert types[:4] == ["AccumulateGrad", "MulBackward0", "CheckpointFunctionBackward", "SumBackward0"]
        assert sorted(types[4:]) == ["AccumulateGrad", "ExpBackward0", "TanhBackward0"]
        assert len(watch.record.backwards) == 2
    else:
        assert types == ["AccumulateGrad", "MulBackward0", "TanhBackward0", "ExpBackward0", "SumBackward0"]
        assert not {"TanhBackward0", "ExpBackward0"} & set(saved)
    assert x.grad.tolist() == pytest.approx([2 * (1 - t * t) * e for t, e in zip(*tanh_and_exp())], rel=1e-5)


def tanh_and_exp():
    t = [math.tanh(2 * one) for one in (0.1, 0.2, 0.3)]
    return t, [math.exp(one) for one in t]


def test_threads_may_recompute_the_same_checkpoints_at_once():
    """Each draws the random numbers of the forward again, from the one generator that all share."""
    backlight.manual_seed(0)
    x, w = (backlight.randn(40, 40, requires_grad=True) for _ in range(2))
    y = x
    for _ in range(4):
        y = backlight.utils.checkpoint.checkpoint(
            lambda y: backlight.nn.functional.dropout((y @ w).tanh(), 0.3), y, use_reentrant=False
        )
    y = y.sum()
    expected = [one.tolist() for one in backlight.autograd.grad(y, [x, w], retain_graph=True)]
    found = []

    def work():
        for _ in range(4):
            found.append([one.tolist() for one in backlight.autograd.grad(y, [x, w], retain_graph=True)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 32
    assert all(one == expected for one in found)


def test_a_checkpoint_goes_with_batches_tangents_and_functions_of_functions():
    """PyTorch refuses `func.grad` of it: hooks are off there."""
    checkpoint, func, forward = backlight.utils.checkpoint.checkpoint, backlight.func, backlight.autograd.forward_ad

    def total(x):
        return (x.sin() * x).sum()

    def checkpointed(x):
        return checkpoint(total, x, use_reentrant=False)

    x = backlight.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=backlight.float64)
    assert func.grad(checkpointed)(x).tolist() == func.grad(total)(x).tolist()
    assert func.vmap(func.grad(checkpointed))(x).tolist() == func.vmap(func.grad(total))(x).tolist()
    hessian = backlight.autograd.functional.hessian
    assert hessian(checkpointed, x).tolist() == hessian(total, x).tolist()
    with forward.dual_level():
        tangents = [forward.unpack_dual(f(forward.make_dual(x, x))).tangent.item() for f in (total, checkpointed)]
    assert tangents[0] == tangents[1]
    leaf = x.clone().requires_grad_()
    y = checkpoint(backlight.sin, leaf, use_reentrant=False)
    (rows,) = backlight.autograd.grad(y, leaf, backlight.ones(3, 2, 2, dtype=backlight.float64), is_grads_batched=True)
    assert rows.tolist() == [x.cos().tolist()] * 3
