"""`torch.autocast` on the CPU, `custom_fwd`, `custom_bwd` and `GradScaler`, beside PyTorch's."""

import gc
import threading
import warnings

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint as their_checkpoint

import backlight
from backlight.dispatch import torch_function
from backlight.dispatch.dispatcher import dispatching
from backlight.kernels.sparse_array import sparse_use
from backlight.utils.checkpoint import checkpoint as our_checkpoint

ENGINES = {"torch": torch, "backlight": backlight}
BOTH = pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)

# a, v, t: float32 of 1, 2 and 3 dims; low, low3: the same in the lower precision; d: float64
OPS = """
e.mm(a, a) | e.matmul(a, a) | a @ a | F.linear(a, a, v) | e.bmm(t, t) | e.baddbmm(t, t, t) | e.addmm(a, a, a)
e.addbmm(a, t, t) | e.mv(a, v) | e.dot(v, v) | a + a | a.exp() | a.softmax(0) | e.einsum("ij,jk->ik", a, a)
e.einsum("ij,ij->ij", a, a) | e.einsum("ij->j", a) | e.einsum("i,i->", v, v) | e.einsum("ij,j->ij", a, v)
e.tensordot(a, a, 1) | e.inner(a, a) | e.outer(v, v) | e.kron(a, a) | e.matrix_power(a, 3)
e.linalg.multi_dot([a, a]) | e.linalg.vecdot(a, a) | e.cdist(low, low) | low.prod() | e.trace(low) | e.addmv(v, a, v)
e.cat([a, low]) | e.stack([a, low]) | e.cat([d, d]) | d @ d | e.arange(4) @ e.arange(4) | e.where(a > 0, a, low)
F.conv1d(t, t) | F.conv2d(t[None], t[None]) | F.conv_transpose1d(t, t) | F.prelu(a, v[:1]) | a + low | low.sum()
F.scaled_dot_product_attention(t, t, t) | F.mse_loss(low, low * 2) | F.cross_entropy(low, e.arange(4)) | a.T @ a
F.nll_loss(low, e.arange(4)) | F.binary_cross_entropy_with_logits(low, low.abs()) | F.l1_loss(low, low * 2)
F.binary_cross_entropy(low.sigmoid(), low.sigmoid()) | F.huber_loss(low, low * 2) | F.smooth_l1_loss(low, low * 2)
F.pad(low3, (1, 1), mode="reflect") | F.pad(low3, (1, 1), mode="replicate") | F.pad(low3, (1, 1)) | e.quantile(low, 0.5)
F.max_pool3d(low3[None], 2) | F.avg_pool3d(low3[None], 2) | F.avg_pool2d(low3, 2) | e.linalg.svdvals(low)
e.linalg.inv(low @ low.T + 8 * e.eye(4, dtype=low.dtype)) | F.layer_norm(low, (4,), v, v) | F.layer_norm(a, (4,), v, v)
F.batch_norm(a, None, None, v, v, True) | F.group_norm(low, 2, v, v) | F.gelu(low) | e.relu(low) | low.mean()
F.embedding(e.tensor([0]), a) | F.triplet_margin_loss(low, low * 2, low * 3) | F.poisson_nll_loss(low, low.abs())
F.soft_margin_loss(low, low.sign()) | F.hinge_embedding_loss(low, low.sign()) | low.cumsum(0) | low.log_softmax(0)
e.index_copy(a, 0, e.tensor([0]), low[:1]) | e.mm(a, a, out=e.empty(4, 4)) | a.clone().addmm_(a, a) | e.addr(a, v, v)
e.nn.RNN(4, 4)(t)[0] | e.nn.GRU(4, 4)(t)[0] | e.nn.LSTMCell(4, 4)(a)[1] | e.nn.GRUCell(4, 4)(a) | e.nn.RNNCell(4, 4)(a)
e.nn.MultiheadAttention(4, 2)(t, t, t)[0] | e.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0)(t) | e.linalg.det(a)
e.nn.GRUCell(4, 4)(low) | e.nn.GRUCell(4, 4)(a, low) | e.nn.GRUCell(4, 4)(low, a) | e.nn.LSTMCell(4, 4)(low)[0]
e.nn.LSTMCell(4, 4)(low)[1] | e.nn.LSTMCell(4, 4)(a, (low, low))[1] | e.nn.LSTMCell(4, 4)(low, (a, a))[0]
e.nn.GRU(4, 4)(low3)[0] | e.nn.GRU(4, 4)(t, low3[:1])[0] | e.nn.RNN(4, 4)(low3)[0]
e.linalg.pinv(a) | e.linalg.pinv(d) | e.pinverse(a) | F.affine_grid(t[:, :2, :3], [4, 1, 3, 5], align_corners=True)
F.affine_grid(t[:, :3], [4, 1, 2, 3, 5], align_corners=False)
F.affine_grid(d[None, :2, :3], [1, 1, 3, 5], align_corners=False)
e.einsum(a, [0, 1], a, [1, 2], [0, 2]) | e.einsum(a, [0, 1], a, [0, 1], [0, 1]) | e.einsum(a, [0, 1], a, [1, 2])
e.einsum(a, [0, 1], [1, 0]) | e.einsum(a, [..., 0], v, [0]) | F.max_pool3d(low3[None], 2, return_indices=True)[0]
F.max_pool3d(low3[None], 2, None, 0, 1, False, True)[0] | e.nn.MaxPool3d(2, return_indices=True)(low3[None])[0]
e.nn.Sequential(e.nn.Linear(4, 4), e.nn.LayerNorm(4), e.nn.GELU(), e.nn.Linear(4, 2))(a) | e.norm(low)
"""
EXPRESSIONS = [one.strip() for line in OPS.strip().splitlines() for one in line.split(" | ")]
NUMBERS = np.random.RandomState(0)
A, V, T = NUMBERS.randn(4, 4), NUMBERS.randn(4), NUMBERS.randn(4, 4, 4)


def computed(engine, expression: str, lower: str):
    """Return what an expression gives inside autocast."""
    lower = getattr(engine, lower)
    names = {"e": engine, "F": engine.nn.functional, "d": engine.tensor(A)}
    names |= {name: engine.tensor(data, dtype=engine.float32) for name, data in {"a": A, "v": V, "t": T}.items()}
    names |= {"low": engine.tensor(A, dtype=lower), "low3": engine.tensor(T, dtype=lower)}
    engine.manual_seed(0)
    with engine.autocast("cpu", dtype=lower):
        return eval(expression, names)


def has_lstm(lower: str) -> bool:
    """Return whether PyTorch runs an LSTM of a dtype here: none in float16, in bfloat16 on some processors."""
    try:
        computed(torch, "e.nn.LSTM(4, 4)(t)[0]", lower)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("expression", [*EXPRESSIONS, "e.nn.LSTM(4, 4)(t)[0]"])
@pytest.mark.parametrize("lower", ["bfloat16", "float16"])
def test_dtypes_and_values_are_pytorchs(lower, expression):
    if "LSTM(" in expression and not has_lstm(lower):
        expression = expression.replace("LSTM", "RNN")
    theirs, ours = computed(torch, expression, lower), computed(backlight, expression, lower)
    assert str(ours.dtype) == str(theirs.dtype)
    last_place = {"bfloat16": 2.0**-7, "float16": 2.0**-10}[lower]
    theirs, ours = theirs.detach().double().numpy(), ours.detach().double().numpy()
    np.testing.assert_allclose(ours, theirs, rtol=2 * last_place, atol=2 * last_place * np.abs(theirs).max())


@BOTH
def test_blocks_nest_and_end(engine):
    x = engine.ones(2, 2)
    with engine.autocast("cpu"):
        assert engine.is_autocast_enabled("cpu") and (x @ x).dtype is engine.bfloat16
        with engine.autocast("cpu", enabled=False):
            assert not engine.is_autocast_enabled("cpu") and (x @ x).dtype is engine.float32
        with engine.autocast("cpu", dtype=engine.float16):
            assert (x @ x).dtype is engine.get_autocast_dtype("cpu") is engine.float16
        assert (x @ x).dtype is engine.bfloat16
    assert (x @ x).dtype is engine.float32 and not engine.is_autocast_enabled("cpu")
    assert engine.autocast("cpu")(lambda: x @ x)().dtype is engine.bfloat16
    with pytest.raises(ZeroDivisionError), engine.autocast("cpu"):
        raise ZeroDivisionError
    assert (x @ x).dtype is engine.float32


@BOTH
def test_gradients_come_back_in_the_weights_dtype(engine):
    engine.manual_seed(0)
    model = engine.nn.Sequential(engine.nn.Linear(3, 4), engine.nn.ReLU(), engine.nn.Linear(4, 1))
    with engine.autocast("cpu", dtype=engine.bfloat16):
        out = model(engine.ones(2, 3))
        loss = engine.nn.functional.mse_loss(out, engine.zeros(2, 1))
    assert out.dtype is engine.bfloat16 and loss.dtype is engine.float32
    loss.backward()
    assert all(one.grad.dtype is engine.float32 for one in model.parameters())


def test_trainings_go_side_by_side():
    found = {}
    for name, engine in ENGINES.items():
        engine.manual_seed(0)
        model = engine.nn.Sequential(engine.nn.Linear(3, 8), engine.nn.Tanh(), engine.nn.Linear(8, 1))
        optimizer, inputs = engine.optim.SGD(model.parameters(), lr=0.1), engine.randn(16, 3)
        for _ in range(10):
            optimizer.zero_grad()
            with engine.autocast("cpu"):
                loss = engine.nn.functional.mse_loss(model(inputs), inputs.sum(1, keepdim=True))
            loss.backward()
            optimizer.step()
        found[name] = loss.item()
    assert found["backlight"] == pytest.approx(found["torch"], rel=0.01)


@BOTH
def test_a_weight_is_cast_once_a_block(engine):
    weight = engine.ones(2, 2, requires_grad=True)
    with engine.autocast("cpu"):
        one, two = engine.mm(weight, weight), engine.mm(weight, weight)
    casts = {step[0] for out in (one, two) for step in out.grad_fn.next_functions}
    assert len(casts) == 1 and next(iter(casts)).name() == "ToCopyBackward0"
    with engine.autocast("cpu", cache_enabled=False):
        out = engine.mm(weight, weight)
    assert len({step[0] for step in out.grad_fn.next_functions}) == 2


@BOTH
def test_custom_functions_cast_as_they_say(engine):
    seen = []
    amp = engine.amp

    class Double(engine.autograd.Function):
        @staticmethod
        @amp.custom_fwd(device_type="cpu", cast_inputs=engine.float32)
        def forward(ctx, x):
            seen.append((x.dtype, (x @ x).dtype, engine.is_autocast_enabled("cpu")))
            return x * 2

        @staticmethod
        @amp.custom_bwd(device_type="cpu")
        def backward(ctx, grad):
            seen.append((grad.dtype, (grad @ grad).dtype, engine.is_autocast_enabled("cpu")))
            return grad * 2

    class Plain(Double):
        @staticmethod
        @amp.custom_fwd(device_type="cpu")
        def forward(ctx, x):
            seen.append((x.dtype, (x @ x).dtype, engine.is_autocast_enabled("cpu")))
            return x * 2

    x = engine.ones(2, 2, requires_grad=True)
    with engine.autocast("cpu"):
        one, two = Double.apply(x @ x), Plain.apply(x @ x)
    one.sum().backward()
    two.sum().backward()
    low, full = engine.bfloat16, engine.float32
    assert seen == [(full, full, False), (low, low, True), (full, full, False), (low, low, True)]


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("name", ENGINES)
def test_a_checkpoint_is_run_again_as_it_ran(name, use_reentrant):
    engine, checkpoint = ENGINES[name], {"torch": their_checkpoint, "backlight": our_checkpoint}[name]
    seen, x = [], engine.ones(2, 2, requires_grad=True)

    def part(x):
        out = x @ x
        seen.append(out.dtype)
        return out.exp()

    with engine.autocast("cpu"):
        out = checkpoint(part, x, use_reentrant=use_reentrant)
    out.float().sum().backward()
    assert seen == [engine.bfloat16, engine.bfloat16] and x.grad.dtype is engine.float32


@BOTH
def test_another_thread_casts_nothing(engine):
    seen, x = [], engine.ones(2, 2)
    with engine.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((x @ x).dtype))
        thread.start()
        thread.join()
    assert seen == [engine.float32]


REFUSED = ["e.autocast('nowhere')", "e.autocast(3)", "e.autocast('cpu')(3)", "e.amp.custom_fwd(device_type=1)"]
REFUSED += ["e.is_autocast_enabled('nowhere')"]


@pytest.mark.parametrize("expression", REFUSED)
def test_errors_begin_with_pytorchs_words(expression):
    problems = []
    for engine in ENGINES.values():
        with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
            eval(expression, {"e": engine})
        problems.append(caught.value)
    theirs, ours = problems
    assert str(ours).startswith(str(theirs).split("\n")[0][:60])
    assert isinstance(ours, type(theirs))


@BOTH
def test_what_cannot_be_cast_is_warned_of(engine):
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast"):
        block = engine.autocast("cpu", dtype=engine.float64)
    with block:
        assert (engine.ones(2, 2) @ engine.ones(2, 2)).dtype is engine.float32


def scaled_training(engine, scale: float, steps: int, spoil: int):
    """Return the scale, its state and a weight after each step of a training with one infinite gradient."""
    scaler = engine.amp.GradScaler("cpu", init_scale=scale, growth_interval=2)
    weight = engine.nn.Parameter(engine.tensor([1.0, 2.0]))
    optimizer, seen = engine.optim.SGD([weight], lr=0.1), []
    for step in range(steps):
        optimizer.zero_grad()
        loss = (weight**2).sum() * (float("inf") if step == spoil else 1.0)
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), scaler.state_dict(), weight.tolist()))
    return seen


@pytest.mark.parametrize("scale", [8.0, 2.0**100])
def test_scaled_trainings_are_pytorchs(scale):
    ours, theirs = (scaled_training(engine, scale, 7, 3) for engine in (backlight, torch))
    assert ours == theirs


@BOTH
def test_a_scaler_that_is_off_does_nothing(engine):
    scaler = engine.amp.GradScaler("cpu", enabled=False)
    x = engine.ones(2, requires_grad=True)
    optimizer = engine.optim.SGD([x], lr=1.0)
    assert scaler.scale(x) is x and scaler.get_scale() == 1.0 and scaler.state_dict() == {}
    x.sum().backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert x.tolist() == [0, 0] and not scaler.is_enabled()


@BOTH
def test_a_scaler_refuses_steps_in_the_wrong_order(engine):
    scaler = engine.amp.GradScaler("cpu")
    x = engine.ones(2, requires_grad=True)
    optimizer = engine.optim.SGD([x], lr=1.0)
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(optimizer)
    assert [one.tolist() for one in scaler.scale([x, x])] == [[2.0**16] * 2] * 2
    scaler.scale(x.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="has already been called on this optimizer since the last update"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called since the last update"):
        scaler.step(optimizer)
    scaler.update(4.0)
    assert scaler.get_scale() == 4.0
    with pytest.raises(ValueError, match="outputs must be a Tensor or an iterable of Tensors"):
        scaler.scale(3)


def test_nothing_asks_outside_of_a_block():
    gc.collect()
    assert dispatching.active == sparse_use.begun
    with backlight.autocast("cpu"):
        assert torch_function.overrides_state.on and dispatching.active
    assert not torch_function.overrides_state.on and dispatching.active == sparse_use.begun


def test_old_names_warn(tmp_path):
    from backlight.amp import older

    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.autocast\(args...\)` is deprecated. Please use"):
        block = older.CPUAutocast()
    with block:
        assert (backlight.ones(2, 2) @ backlight.ones(2, 2)).dtype is backlight.bfloat16
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with older.CUDAAutocast():
            assert (backlight.ones(2, 2) @ backlight.ones(2, 2)).dtype is backlight.float32
        assert not older.CUDAGradScaler().is_enabled()
