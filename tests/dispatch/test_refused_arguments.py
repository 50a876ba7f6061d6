"""What PyTorch refuses is refused here: kinds of arguments, dtypes, what linear algebra and constructors get."""

import subprocess
import sys
import warnings

import pytest
import torch
from parity import KINDS, lines

import backlight
import backlight.nn
import backlight.optim

WRONG_KINDS = lines("""
torch.argmax(x, dim=-1, keepdim=1)
torch.amin(x, 0, keepdim=torch.tensor(True))
torch.nansum(x, dim=False)
torch.sum(x, dim=1.0)
torch.flip(x, True)
torch.roll(x, -(2**63) - 1, 0)
torch.diff(x, 2**63, 0)
torch.chunk(x, 2**63, 1)
torch.logical_and(x, 0)
torch.maximum(x, 0)
torch.nextafter(x, 1e30)
torch.gt(-1.0, x)
torch.clamp_min(-2.5, x)
torch.conj([x])
torch.min(1.5, x)
torch.allclose(x, 7)
torch.isin(x, torch.device("cpu"))
torch.zeros(3, requires_grad=1)
torch.zeros_like(x, requires_grad=1j)
torch.linalg.svd(x, full_matrices=1.5)
torch.linalg.qr(x, 3)
torch.linalg.lu_factor(x, pivot=2.0)
torch.linalg.solve_triangular(x, x, upper=1)
torch.linalg.multi_dot(x)
torch.embedding(x, torch.tensor([0]), 1, scale_grad_by_freq=2)
torch.group_norm(x, 1, cudnn_enabled=2)
torch.rrelu(x, 0.5, 0.6, 0.5)
torch.feature_alpha_dropout(x, 0.0, 3)
torch.special.hermite_polynomial_h(x, [2])
torch.nn.functional.softplus(x, [2])
torch.nn.functional.gelu(x, approximate=3)
torch.nn.functional.avg_pool2d(x[None], 2, ceil_mode="none")
torch.celu(x, 10**30)
torch.set_grad_enabled(3)
torch.set_warn_always(3)
torch.celu(x, -(2**63) - 1)
torch.add(x, x, alpha=2**64)
x.gather(0, x.long(), sparse_grad=2)
x.diagonal(offset=True)
x.select_scatter(x[0], True, 0)
x.sort(0, (True,), stable=2)
x.median(dim=0, keepdim=100)
x.topk(2, 1, "a")
x.round(decimals=1.5)
x.ldexp(100)
x.addcmul(x, 5)
x.fill_diagonal_(1, wrap="a")
x.contiguous(memory_format=3)
x.scatter_reduce(0, x.long(), x, "mean", include_self=-1)
""")

PLAIN = lines("""
torch.sum(x, (0, 1))
torch.sum(x, 0, True)
torch.zeros(2, 3)
torch.zeros((2, 3), dtype=torch.int64)
x.reshape(9)
x.reshape(3, -1)
x.permute(1, 0)
x.repeat(2, 2)
x.flip(0)
x.flip([0, 1])
torch.normal(0.0, x)
torch.floor_divide(2, x)
torch.add(2, x)
torch.max_pool2d(x[None], 2, None)
torch.nn.functional.max_pool2d(x[None], 2, None)
torch.nn.functional.adaptive_max_pool2d(x[None], (None, 2))
torch.polygamma(1, x)
x.polygamma(1)
torch.select(x, torch.tensor(0), 1)
torch.clamp(x, min=torch.tensor(0.5))
torch.arange(torch.tensor(3))
torch.full((2,), True)
torch.ones(2, dtype=float)
""")

DTYPES = lines("""
torch.floor(x)
torch.ceil(x)
torch.trunc(x)
torch.gcd(x, x)
torch.lcm(x, x)
torch.linalg.cross(x, x)
torch.cross(x, x, dim=1)
torch.einsum("ij,jk", x, x)
torch.nn.functional.fold(x[None], (1, 3), (1, 1))
torch.nn.functional.pdist(x)
torch.nn.functional.max_pool1d(x, 2)
torch.nn.functional.scaled_dot_product_attention(x, x, x)
torch.nn.functional.gumbel_softmax(x) * 0
torch.nn.functional.hinge_embedding_loss(x, x)
torch.nn.functional.hinge_embedding_loss(x, x, reduction="none")
torch.nn.functional.rms_norm(x, (3,))
torch.nn.functional.binary_cross_entropy_with_logits(x, x)
torch.linalg.det(x)
torch.linalg.solve_triangular(x, x, upper=True)
torch.triangular_solve(x, x)[0]
torch.cholesky_solve(x, x)
x.clone().cauchy_() * 0
""")

LINALG = lines("""
lu_solve(eye, torch.tensor([0, 2, 3], dtype=torch.int32), eye)
lu_solve(eye, torch.tensor([7, 2, 3], dtype=torch.int32), eye)
lu_solve(eye, torch.ones(2, 3, dtype=torch.int32), eye)
lu_solve(eye.repeat(2, 1, 1), torch.tensor([1, 2, 3], dtype=torch.int32), eye)
cross(eye, eye.double())
vecdot(eye, eye.double())
norm(eye[None], "fro")
norm(eye[None], "nuc")
cond(torch.ones(0, 0), "bad")
cond(torch.ones(0, 3), "fro")
cond(torch.ones(2, 3), "fro")
solve(eye.half(), eye)
solve(eye.half(), eye.half())
solve_triangular(eye.long(), eye[0], upper=True)
solve_triangular(eye.long(), eye.long(), upper=True)
""")

CONSTRUCTORS = lines("""
torch.nn.Unflatten(1, -1)
torch.nn.Unflatten(1, "a")
torch.nn.Unflatten(1, (2, 2.5))
torch.nn.Unflatten(1, (2, 2))
torch.nn.HuberLoss(delta="a")
torch.nn.HuberLoss(delta=torch.ones(1))
torch.nn.HuberLoss(delta=2)
torch.nn.Parameter(torch.ones(2), requires_grad=0)
torch.nn.Parameter(torch.ones(2), requires_grad="a")
torch.optim.Adam([torch.nn.Parameter(torch.ones(2))], betas=())
torch.optim.AdamW([torch.nn.Parameter(torch.ones(2))], betas=(0.9,))
torch.optim.Adam([torch.nn.Parameter(torch.ones(2))], betas=(0.9, 1.0))
""")

VALUES = lines("""
torch.lu(x, 1)
x.lu([2])
torch.histc(x, max=1e308)
torch.slice_copy(torch.tensor(1.0))
torch.Tensor.size(3)
torch.masked.sum(x, dim=2)
torch.nn.functional.linear_cross_entropy(x[0], x, torch.tensor(2), ignore_index=1.5)
torch.nn.functional.scaled_dot_product_attention(x.expand(2, 3, 3, 3), x.expand(2, 4, 3, 3), x, dropout_p=0.5)
torch.nn.InstanceNorm1d(3, track_running_stats=True)(torch.ones(0, 3))
torch.nn.LSTMCell(5, 10)(torch.ones(5), 0.5)
torch.nn.PReLU(2, "x")
torch.nn.UninitializedBuffer(1)
torch.nn.init.orthogonal_(x.half())
torch.embedding_renorm_(x.requires_grad_(), torch.tensor([0]), 1.0, 2.0)
torch.utils._pytree.tree_map_only(0.5, len, [1])
torch.optim.Adam([torch.nn.Parameter(x)], lr=-1)
""")


def outcome(module, expression: str, **names):
    """Return what an expression gives, or the exception that it raises."""
    try:
        return eval(expression, {"torch": module, **names})
    except Exception as problem:
        return problem


def assert_alike(ours, theirs, what: str, words: int = 40) -> None:
    """Assert that both are values, or errors of one class that begin alike."""
    if not isinstance(theirs, Exception):
        assert not isinstance(ours, Exception), f"{what}: {ours!r}; PyTorch takes it"
        return
    assert isinstance(ours, Exception), f"{what}: gives {ours}; PyTorch raises {theirs!r}"
    kind = next(kind for kind in KINDS if isinstance(theirs, kind))
    assert isinstance(ours, kind), f"{what}: {ours!r}; PyTorch raises {theirs!r}"
    said = str(theirs).splitlines()[0][:words].rstrip(".")
    assert str(ours).startswith(said), f"{what}: {ours!r}; PyTorch: {theirs!r}"


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("expression", [*WRONG_KINDS, *PLAIN])
def test_arguments_are_of_the_kinds_that_pytorch_takes(expression):
    found = [outcome(module, expression, x=module.eye(3) + 1) for module in (backlight, torch)]
    assert_alike(*found, expression, words=12)
    assert isinstance(found[1], Exception) == (expression in WRONG_KINDS)


@pytest.mark.parametrize("expression", WRONG_KINDS[:20])
def test_a_refused_call_is_refused_after_a_plain_one(expression):
    x = backlight.eye(3)
    x.argmax(0), x.flip(0), backlight.maximum(x, x), backlight.zeros(3), backlight.sum(x, 0)
    for _ in range(2):
        assert isinstance(outcome(backlight, expression, x=x), Exception)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16"])
@pytest.mark.parametrize("expression", DTYPES)
def test_an_op_refuses_the_dtypes_that_it_refuses_in_pytorch(expression, dtype):
    found = []
    for module in (backlight, torch):
        x = module.tensor([[2, 0, 1], [0, 3, 0], [1, 0, 2]]).to(getattr(module, dtype))
        found.append(outcome(module, expression, x=x))
    assert_alike(*found, f"{expression} of {dtype}", words=30)


@pytest.mark.parametrize("expression", LINALG)
def test_linear_algebra_refuses_what_pytorch_refuses(expression):
    names = [{"eye": module.eye(3)} for module in (backlight, torch)]
    found = [outcome(m, f"torch.linalg.{expression}", **given) for m, given in zip((backlight, torch), names)]
    assert isinstance(found[1], Exception)
    assert_alike(*found, expression)


@pytest.mark.parametrize("expression", CONSTRUCTORS)
def test_constructors_refuse_what_pytorchs_refuse(expression):
    assert_alike(*[outcome(module, expression) for module in (backlight, torch)], expression, words=20)


def test_kinds_are_checked_without_compiled_code():
    calls = ["torch.argmax(x, 0, keepdim=1)", "x.flip(True)", "torch.maximum(x, 0)", "torch.zeros(3, requires_grad=1)"]
    program = f"""
import backlight as torch
x = torch.eye(3)
x.flip(0), torch.argmax(x, 0, keepdim=True), torch.maximum(x, x), torch.zeros(3, requires_grad=True)
for call in {calls}:
    try:
        eval(call)
    except TypeError:
        continue
    raise SystemExit(call)
"""
    environment = {"BACKLIGHT_KERNELS": "numpy", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("expression", VALUES)
def test_values_that_cannot_be_used_are_refused_as_in_pytorch(expression):
    found = [outcome(module, expression, x=module.eye(3) + 1) for module in (backlight, torch)]
    assert isinstance(found[1], Exception)
    assert_alike(*found, expression, words=30)


@pytest.mark.parametrize("factor", ["mean", ("m", "e"), [None, 2]])
def test_a_scale_factor_is_a_number(factor):
    for module in (torch, backlight):
        with pytest.raises(TypeError):
            module.nn.functional.interpolate(module.ones(1, 1, 2, 2), scale_factor=factor)
    with pytest.raises(TypeError, match=r"scale_factor must be a number or one for each of 2 dims, but got"):
        backlight.nn.functional.interpolate(backlight.ones(1, 1, 2, 2), scale_factor=factor)


@pytest.mark.parametrize("mode", [0, None, "x", [True]])
def test_inference_mode_is_a_bool_or_decorates(mode):
    with pytest.raises(TypeError, match=r"argument 'mode' .* must be bool or a function to decorate, not"):
        backlight.inference_mode(mode)
    assert not backlight.is_inference_mode_enabled()


def test_the_switches_of_an_optimizer_are_bools():
    parameter = backlight.nn.Parameter(backlight.ones(2))
    for name in ("foreach", "fused", "maximize", "amsgrad"):
        with pytest.raises(TypeError, match=f"{name} must be True, False or None, not str"):
            backlight.optim.Adam([parameter], **{name: "yes"})
