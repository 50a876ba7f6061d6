"""Products, layers and losses: what Cases cannot say. Expected values are PyTorch's."""

import warnings

import numpy as np
import pytest
import torch

import backlight
import backlight.nn.functional as F
from backlight.autograd import gradcheck
from backlight.kernels import contraction, rows
from backlight.kernels.groups import sums_by_index
from case import assert_same

BOTH = (backlight, torch)


def filled(t, *shape, dtype="float32", start=0.1):
    """Return a tensor of growing numbers."""
    count = int(np.prod(shape))
    return (t.arange(count, dtype=t.float64) * 0.37 + start).sin().reshape(shape).to(getattr(t, dtype))


def node_name(tensor) -> str:
    return type(tensor.grad_fn).__name__


# --- mistakes ---------------------------------------------------------------------------------------------------------

f = filled
MISTAKES = {
    "matmul: inner sizes": lambda t: f(t, 2, 3) @ f(t, 4, 5),
    "matmul: matrix and vector": lambda t: f(t, 2, 3) @ f(t, 4),
    "matmul: vectors": lambda t: f(t, 3) @ f(t, 4),
    "matmul: vector and matrix": lambda t: f(t, 3) @ f(t, 4, 5),
    "matmul: stack and matrix": lambda t: f(t, 2, 2, 3) @ f(t, 4, 5),
    "matmul: stacks": lambda t: f(t, 2, 2, 3) @ f(t, 2, 4, 5),
    "matmul: batches": lambda t: f(t, 2, 2, 3) @ f(t, 5, 3, 4),
    "matmul: stack and vector": lambda t: f(t, 2, 2, 3) @ f(t, 4),
    "matmul: dtypes": lambda t: f(t, 2, 3) @ f(t, 3, 4, dtype="float64"),
    "matmul: dtypes of vectors": lambda t: f(t, 3) @ f(t, 3, dtype="float64"),
    "matmul: dtypes of matrix and vector": lambda t: f(t, 2, 3) @ f(t, 3, dtype="float64"),
    "matmul: dtypes of stacks": lambda t: f(t, 2, 2, 3) @ f(t, 2, 3, 4, dtype="float64"),
    "matmul: 0-d": lambda t: f(t) @ f(t, 3),
    "matmul: number": lambda t: t.matmul(f(t, 3), 3),
    "@ number": lambda t: f(t, 3) @ 3,
    "mm: dims of the first": lambda t: t.mm(f(t, 3), f(t, 3, 4)),
    "mm: dims of the second": lambda t: t.mm(f(t, 3, 3), f(t, 3)),
    "bmm: dims of the first": lambda t: t.bmm(f(t, 2, 3), f(t, 2, 3, 4)),
    "bmm: dims of the second": lambda t: t.bmm(f(t, 2, 3, 4), f(t, 2, 3)),
    "bmm: batches": lambda t: t.bmm(f(t, 2, 3, 4), f(t, 3, 4, 5)),
    "mv: sizes": lambda t: t.mv(f(t, 2, 3), f(t, 2)),
    "mv: dims": lambda t: t.mv(f(t, 2, 3), f(t, 2, 3)),
    "dot: dims": lambda t: t.dot(f(t, 2, 3), f(t, 4)),
    "outer: dims": lambda t: t.outer(f(t, 2, 3), f(t, 3)),
    "inner: sizes": lambda t: t.inner(f(t, 2, 3), f(t, 4)),
    "addmm: what is added": lambda t: t.addmm(f(t, 5), f(t, 2, 3), f(t, 3, 4)),
    "addmm: sizes": lambda t: t.addmm(f(t, 4), f(t, 2, 3), f(t, 5, 4)),
    "addmm: dtypes": lambda t: t.addmm(f(t, 4), f(t, 2, 3), f(t, 3, 4, dtype="float64")),
    "addmm: dtype of what is added": lambda t: t.addmm(f(t, 4, dtype="float64"), f(t, 2, 3), f(t, 3, 4)),
    "addmm: dims": lambda t: t.addmm(f(t, 4), f(t, 3), f(t, 3, 4)),
    "addmv: sizes": lambda t: t.addmv(f(t, 2), f(t, 2, 3), f(t, 2)),
    "baddbmm: what is added": lambda t: t.baddbmm(f(t, 3), f(t, 2, 2, 3), f(t, 2, 3, 4)),
    "addbmm: what is added": lambda t: t.addbmm(f(t, 3), f(t, 2, 2, 3), f(t, 2, 3, 4)),
    "addr: what is added": lambda t: t.addr(f(t, 2, 3), f(t, 3), f(t, 3)),
    "multi_dot: one": lambda t: t.linalg.multi_dot([f(t, 2, 3)]),
    "multi_dot: sizes": lambda t: t.linalg.multi_dot([f(t, 2, 3), f(t, 2, 3)]),
    "multi_dot: dims": lambda t: t.linalg.multi_dot([f(t, 3), f(t, 3, 2), f(t, 2, 2, 2)]),
    "tensordot: sizes": lambda t: t.tensordot(f(t, 2, 3), f(t, 4, 5), dims=1),
    "tensordot: negative": lambda t: t.tensordot(f(t, 2, 3), f(t, 4, 5), dims=-1),
    "tensordot: too many": lambda t: t.tensordot(f(t, 2, 3), f(t, 4, 5), dims=3),
    "tensordot: lists": lambda t: t.tensordot(f(t, 3, 2), f(t, 2, 3), dims=([0, 1], [1])),
    "tensordot: dtypes": lambda t: t.tensordot(f(t, 3, 2), f(t, 2, 3, dtype="float64"), dims=1),
    "cross: sizes": lambda t: t.cross(f(t, 2, 4), f(t, 2, 4), dim=1),
    "cross: different sizes": lambda t: t.cross(f(t, 3), f(t, 4), dim=0),
    "linear: sizes": lambda t: t.nn.functional.linear(f(t, 2, 3), f(t, 4, 5)),
    "linear: sizes of a stack": lambda t: t.nn.functional.linear(f(t, 2, 2, 3), f(t, 4, 5)),
    "linear: sizes of a vector": lambda t: t.nn.functional.linear(f(t, 3), f(t, 4, 5), f(t, 4)),
    "linear: bias": lambda t: t.nn.functional.linear(f(t, 2, 3), f(t, 4, 3), f(t, 5)),
    "linear: dtypes": lambda t: t.nn.functional.linear(f(t, 2, 3), f(t, 4, 3, dtype="float64")),
    "linear: dtype of the bias": lambda t: t.nn.functional.linear(f(t, 2, 3), f(t, 4, 3), f(t, 4, dtype="float64")),
    "bilinear: sizes": lambda t: t.nn.functional.bilinear(f(t, 2, 3), f(t, 2, 4), f(t, 5, 3, 3)),
    "einsum: sizes": lambda t: t.einsum("ij,jk", f(t, 2, 3), f(t, 4, 5)),
    "einsum: unknown output": lambda t: t.einsum("ij,jk->il", f(t, 2, 3), f(t, 3, 5)),
    "einsum: too few labels": lambda t: t.einsum("ij", f(t, 2, 3, 4)),
    "einsum: too many labels": lambda t: t.einsum("ijk", f(t, 2, 3)),
    "einsum: too few operands": lambda t: t.einsum("ij,jk", f(t, 2, 3)),
    "einsum: too many operands": lambda t: t.einsum("ij", f(t, 2, 3), f(t, 3, 4)),
    "einsum: repeated label": lambda t: t.einsum("ii", f(t, 2, 3)),
    "einsum: output twice": lambda t: t.einsum("i->ii", f(t, 2)),
    "einsum: no letter": lambda t: t.einsum("i1", f(t, 2, 3)),
    "einsum: two dots": lambda t: t.einsum("i..j->", f(t, 2, 3)),
    "einsum: two ellipses": lambda t: t.einsum("......", f(t, 2, 3)),
    "einsum: dtypes": lambda t: t.einsum("ij,jk->ik", f(t, 2, 3), f(t, 3, 4, dtype="float64")),
    "softmax: dim": lambda t: t.softmax(f(t, 2, 2), 5),
    "softmax: dtype": lambda t: t.softmax(t.ones(2, 2, dtype=t.int64), 1),
    "log_softmax: dtype": lambda t: t.log_softmax(t.ones(2, 2, dtype=t.int64), 1),
    "layer_norm: shape": lambda t: t.nn.functional.layer_norm(f(t, 2, 3), (4,)),
    "layer_norm: int": lambda t: t.nn.functional.layer_norm(f(t, 2, 3), 3),
    "layer_norm: weight": lambda t: t.nn.functional.layer_norm(f(t, 2, 3), (3,), f(t, 4)),
    "layer_norm: bias": lambda t: t.nn.functional.layer_norm(f(t, 2, 3), (3,), f(t, 3), f(t, 4)),
    "layer_norm: no dims": lambda t: t.nn.functional.layer_norm(f(t, 2, 3), ()),
    "layer_norm: dtypes": lambda t: t.nn.functional.layer_norm(f(t, 2, 3), (3,), f(t, 3, dtype="float64")),
    "rms_norm: shape": lambda t: t.rms_norm(f(t, 2, 3), (4,)),
    "group_norm: groups": lambda t: t.group_norm(f(t, 2, 4, 3), 3),
    "group_norm: weight": lambda t: t.group_norm(f(t, 2, 4, 3), 2, f(t, 3)),
    "batch_norm: channels": lambda t: t.nn.functional.batch_norm(f(t, 2, 4), f(t, 3), f(t, 3)),
    "batch_norm: one value": lambda t: t.nn.functional.batch_norm(f(t, 1, 4), None, None, training=True),
    "batch_norm: no statistics": lambda t: t.nn.functional.batch_norm(f(t, 2, 4), None, None),
    "instance_norm: one value": lambda t: t.nn.functional.instance_norm(f(t, 2, 4, 1)),
    "embedding: too large": lambda t: t.nn.functional.embedding(t.tensor([1, 7]), f(t, 4, 3)),
    "embedding: negative": lambda t: t.nn.functional.embedding(t.tensor([1, -1]), f(t, 4, 3)),
    "embedding: floats": lambda t: t.nn.functional.embedding(t.tensor([1.0]), f(t, 4, 3)),
    "embedding: vector as table": lambda t: t.nn.functional.embedding(t.tensor([1]), f(t, 3)),
    "embedding: padding": lambda t: t.nn.functional.embedding(t.tensor([1]), f(t, 4, 3), padding_idx=4),
    "bag: no offsets": lambda t: t.nn.functional.embedding_bag(t.tensor([0, 1]), f(t, 4, 3)),
    "bag: mode": lambda t: t.nn.functional.embedding_bag(t.tensor([[0, 1]]), f(t, 4, 3), mode="x"),
    "bag: range": lambda t: t.nn.functional.embedding_bag(t.tensor([[0, 7]]), f(t, 4, 3)),
    "dropout: probability": lambda t: t.nn.functional.dropout(f(t, 3), 1.5),
    "cross_entropy: target dtype": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3), t.tensor([0.0, 1.0])),
    "cross_entropy: large target": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3), t.tensor([0, 5])),
    "cross_entropy: negative target": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3), t.tensor([0, -5])),
    "cross_entropy: batch": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3), t.tensor([0, 1, 1])),
    "cross_entropy: dims": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3), f(t, 2, 4)),
    "cross_entropy: weight": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3), t.tensor([0, 1]), f(t, 4)),
    "cross_entropy: reduction": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3), t.tensor([0, 1]), reduction="x"),
    "cross_entropy: map": lambda t: t.nn.functional.cross_entropy(f(t, 2, 3, 4), t.tensor([[0], [1]])),
    "cross_entropy: smoothing": lambda t: t.nn.functional.cross_entropy(
        f(t, 2, 3), t.tensor([0, 1]), label_smoothing=2.0
    ),
    "cross_entropy: whole shares": lambda t: t.nn.functional.cross_entropy(
        f(t, 2, 3), t.tensor([[0, 1, 0], [1, 0, 0]])
    ),
    "nll_loss: target dtype": lambda t: t.nn.functional.nll_loss(f(t, 2, 3), t.tensor([0.0, 1.0])),
    "mse_loss: dtype": lambda t: t.nn.functional.mse_loss(t.ones(2, dtype=t.int64), t.ones(2, dtype=t.int64)),
    "bce: range": lambda t: t.nn.functional.binary_cross_entropy(t.tensor([2.0]), t.tensor([0.0])),
    "bce: range of the target": lambda t: t.nn.functional.binary_cross_entropy(t.tensor([0.5]), t.tensor([2.0])),
    "bce: sizes": lambda t: t.nn.functional.binary_cross_entropy(t.tensor([0.5]), t.tensor([0.0, 1.0])),
    "bce: dtype": lambda t: t.nn.functional.binary_cross_entropy(t.tensor([0.5]), t.tensor([1])),
    "bce with logits: sizes": lambda t: t.nn.functional.binary_cross_entropy_with_logits(f(t, 1), f(t, 2)),
    "bce with logits: dtype": lambda t: t.nn.functional.binary_cross_entropy_with_logits(f(t, 1), t.tensor([1])),
    "huber_loss: delta": lambda t: t.nn.functional.huber_loss(f(t, 2), f(t, 2), delta=-1),
    "smooth_l1_loss: beta": lambda t: t.nn.functional.smooth_l1_loss(f(t, 2), f(t, 2), beta=-1),
    "gaussian_nll_loss: negative": lambda t: t.nn.functional.gaussian_nll_loss(f(t, 2), f(t, 2), t.tensor([-1.0, 1.0])),
    "gaussian_nll_loss: size": lambda t: t.nn.functional.gaussian_nll_loss(f(t, 2), f(t, 2), t.ones(3)),
    "ranking: dims": lambda t: t.nn.functional.margin_ranking_loss(f(t, 2), f(t, 2, 1), f(t, 2)),
    "triplet: dims": lambda t: t.nn.functional.triplet_margin_with_distance_loss(f(t, 2, 3), f(t, 2, 3), f(t, 3)),
    "triplet: margin": lambda t: t.nn.functional.triplet_margin_loss(f(t, 2, 3), f(t, 2, 3), f(t, 2, 3), margin=-1),
    "multi_margin_loss: target": lambda t: t.nn.functional.multi_margin_loss(f(t, 2, 3), t.tensor([0, 5])),
    "multi_margin_loss: batch": lambda t: t.nn.functional.multi_margin_loss(f(t, 2, 3), t.tensor([0, 1, 1])),
    "multi_margin_loss: p": lambda t: t.nn.functional.multi_margin_loss(f(t, 2, 3), t.tensor([0, 1]), p=3),
    "cosine_embedding_loss: dims": lambda t: t.nn.functional.cosine_embedding_loss(
        f(t, 2, 3, 4), f(t, 2, 3, 4), f(t, 2)
    ),
    "cosine_similarity: dtype": lambda t: t.cosine_similarity(t.ones(2, 3).long(), t.ones(2, 3).long()),
    "cdist: columns": lambda t: t.cdist(f(t, 2, 3), f(t, 2, 4)),
    "cdist: dims": lambda t: t.cdist(f(t, 3), f(t, 2, 4)),
    "cdist: p": lambda t: t.cdist(f(t, 2, 3), f(t, 2, 3), p=-1),
    "attention: dims": lambda t: t.nn.functional.scaled_dot_product_attention(f(t, 3), f(t, 3), f(t, 3)),
    "attention: dtypes": lambda t: t.nn.functional.scaled_dot_product_attention(
        f(t, 2, 3), f(t, 2, 3), f(t, 2, 3, dtype="float64")
    ),
    "attention: sizes": lambda t: t.nn.functional.scaled_dot_product_attention(
        f(t, 1, 2, 3), f(t, 1, 2, 4), f(t, 1, 2, 3)
    ),
    "attention: values": lambda t: t.nn.functional.scaled_dot_product_attention(
        f(t, 1, 2, 3), f(t, 1, 2, 3), f(t, 1, 4, 3)
    ),
    "attention: mask and causal": lambda t: t.nn.functional.scaled_dot_product_attention(
        *[f(t, 1, 2, 3)] * 3, attn_mask=t.ones(2, 2), is_causal=True
    ),
    "attention: dtype of the mask": lambda t: t.nn.functional.scaled_dot_product_attention(
        *[f(t, 1, 2, 3)] * 3, attn_mask=t.ones(2, 2, dtype=t.int64)
    ),
    "attention: shared heads": lambda t: t.nn.functional.scaled_dot_product_attention(
        f(t, 1, 3, 2, 3), f(t, 1, 2, 2, 3), f(t, 1, 2, 2, 3), enable_gqa=True
    ),
}


def raised(call, module) -> Exception:
    with pytest.raises(Exception) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(module)
    return caught.value


@pytest.mark.parametrize("call", MISTAKES.values(), ids=MISTAKES)
def test_mistakes_raise_what_pytorch_raises(call):
    ours, theirs = raised(call, backlight), raised(call, torch)
    kind = RuntimeError if isinstance(theirs, RuntimeError) else type(theirs)
    assert isinstance(ours, kind)
    assert str(ours).startswith(str(theirs).strip().removesuffix("."))


# --- node names -------------------------------------------------------------------------------------------------------

NAMED = {
    "mm": lambda t, x: x(2, 3) @ x(3, 4),
    "dot": lambda t, x: x(3) @ x(3),
    "mv": lambda t, x: x(2, 3) @ x(3),
    "vm": lambda t, x: x(3) @ x(3, 2),
    "stack and matrix": lambda t, x: x(2, 2, 3) @ x(3, 4),
    "stacks": lambda t, x: x(2, 2, 3) @ x(2, 3, 4),
    "four dims": lambda t, x: x(5, 2, 2, 3) @ x(5, 2, 3, 4),
    "stack and vector": lambda t, x: x(2, 2, 3) @ x(3),
    "bmm": lambda t, x: t.bmm(x(2, 2, 3), x(2, 3, 4)),
    "linear": lambda t, x: t.nn.functional.linear(x(2, 3), x(4, 3), x(4)),
    "linear without bias": lambda t, x: t.nn.functional.linear(x(2, 3), x(4, 3)),
    "linear of three dims": lambda t, x: t.nn.functional.linear(x(2, 2, 3), x(4, 3), x(4)),
    "linear of three dims without bias": lambda t, x: t.nn.functional.linear(x(2, 2, 3), x(4, 3)),
    "linear of a vector": lambda t, x: t.nn.functional.linear(x(3), x(4, 3), x(4)),
    "outer": lambda t, x: t.outer(x(2), x(3)),
    "addmm": lambda t, x: t.addmm(x(4), x(2, 3), x(3, 4)),
    "addmv": lambda t, x: t.addmv(x(2), x(2, 3), x(3)),
    "addr": lambda t, x: t.addr(x(2, 3), x(2), x(3)),
    "addbmm": lambda t, x: t.addbmm(x(2, 4), x(5, 2, 3), x(5, 3, 4)),
    "baddbmm": lambda t, x: t.baddbmm(x(5, 2, 4), x(5, 2, 3), x(5, 3, 4)),
    "tensordot": lambda t, x: t.tensordot(x(2, 3), x(3, 4), dims=1),
    "cross": lambda t, x: t.cross(x(2, 3), x(2, 3), dim=1),
    "vdot": lambda t, x: t.vdot(x(3), x(3)),
    "softmax": lambda t, x: x(2, 3).softmax(1),
    "log_softmax": lambda t, x: x(2, 3).log_softmax(1),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x(2, 3), (3,)),
    "group_norm": lambda t, x: t.group_norm(x(2, 4, 3), 2),
    "batch_norm": lambda t, x: t.nn.functional.batch_norm(x(2, 4, 3), None, None, training=True),
    "instance_norm": lambda t, x: t.nn.functional.instance_norm(x(2, 4, 3)),
    "rms_norm": lambda t, x: t.rms_norm(x(2, 3), (3,), x(3)),
    "embedding": lambda t, x: t.nn.functional.embedding(t.tensor([1, 2]), x(4, 3)),
    "dropout": lambda t, x: t.nn.functional.dropout(x(3)),
    "alpha_dropout": lambda t, x: t.nn.functional.alpha_dropout(x(3), training=True),
    "cross_entropy": lambda t, x: t.nn.functional.cross_entropy(x(2, 3), t.tensor([0, 1])),
    "cross_entropy of maps": lambda t, x: t.nn.functional.cross_entropy(x(2, 3, 4), t.zeros(2, 4, dtype=t.int64)),
    "cross_entropy, smoothed": lambda t, x: t.nn.functional.cross_entropy(
        x(2, 3), t.tensor([0, 1]), label_smoothing=0.1
    ),
    "nll_loss": lambda t, x: t.nn.functional.nll_loss(x(2, 3), t.tensor([0, 1])),
    "mse_loss": lambda t, x: t.nn.functional.mse_loss(x(2), x(2)),
    "l1_loss": lambda t, x: t.nn.functional.l1_loss(x(2), x(2)),
    "smooth_l1_loss": lambda t, x: t.nn.functional.smooth_l1_loss(x(2), x(2)),
    "huber_loss": lambda t, x: t.nn.functional.huber_loss(x(2), x(2)),
    "bce": lambda t, x: t.nn.functional.binary_cross_entropy(x(2).sigmoid(), x(2).sigmoid()),
    "bce with logits": lambda t, x: t.nn.functional.binary_cross_entropy_with_logits(x(2), x(2)),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(*[x(1, 2, 3, 4)] * 3),
    "cosine_similarity": lambda t, x: t.cosine_similarity(x(2, 3), x(2, 3)),
    "cdist": lambda t, x: t.cdist(x(2, 3), x(4, 3)),
}


@pytest.mark.parametrize("call", NAMED.values(), ids=NAMED)
def test_nodes_are_named_as_pytorch_names_them(call):
    ours, theirs = (call(t, lambda *shape, t=t: filled(t, *shape).requires_grad_()) for t in BOTH)
    assert node_name(ours) == node_name(theirs)


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["int64", "int32", "uint8"])
@pytest.mark.parametrize("shapes", [((2, 3), (3, 4)), ((3,), (3,)), ((2, 3), (3,)), ((2, 2, 3), (2, 3, 4))])
def test_integers_are_multiplied_in_their_dtype(kind, shapes):
    ours, theirs = (
        t.matmul(*[t.arange(int(np.prod(shape))).reshape(shape).to(getattr(t, kind)) for shape in shapes]) for t in BOTH
    )
    assert_same(ours, theirs, 0, 0)


def test_only_the_input_gets_a_gradient_where_only_it_is_asked_for():
    x, w = filled(backlight, 2, 3).requires_grad_(), filled(backlight, 4, 3)
    F.linear(x, w, filled(backlight, 4)).sum().backward()
    assert w.grad is None
    assert_same(x.grad, torch.tensor(w.numpy()).sum(0).expand(2, 3), 1e-6, 1e-6)


@pytest.mark.parametrize("shapes", [((2, 3), (2, 4)), ((2, 3, 2), (3, 1, 4))])
def test_kron_of_matrices_equals_pytorch(shapes):
    ours, theirs = (t.kron(*[filled(t, *shape) for shape in shapes]) for t in BOTH)
    assert_same(ours, theirs, 1e-6, 1e-6)


def test_beta_of_zero_keeps_nan_out():
    total = backlight.addmm(
        backlight.full((2, 2), float("nan")), filled(backlight, 2, 3), filled(backlight, 3, 2), beta=0
    )
    assert not total.isnan().any()


def test_multi_dot_takes_the_cheapest_order():
    matrices = [filled(backlight, *shape).requires_grad_() for shape in ((2, 30), (30, 3), (3, 40))]
    last = backlight.linalg.multi_dot(matrices).grad_fn.next_functions[0][0]
    assert last._saved_self.shape == (2, 3)  # the first two were multiplied first


def test_chain_matmul_warns_that_it_is_old():
    with pytest.warns(UserWarning, match="torch.chain_matmul is deprecated"):
        product = backlight.chain_matmul(filled(backlight, 2, 3), filled(backlight, 3, 4))
    assert product.shape == (2, 4)


EQUATIONS = ["ab,bc->ac", "ab,bc->ca", "abc,cd,bd->a", "ab,ab->ab", "ab,cb,ca->", "a,ba,b->ab", "abc,abd->adc"]


@pytest.mark.parametrize("equation", EQUATIONS)
def test_contraction_equals_numpy_einsum(equation):
    sizes, rng = {"a": 3, "b": 4, "c": 5, "d": 2}, np.random.default_rng(0)
    terms, output = equation.split("->")[0].split(","), equation.split("->")[1]
    arrays = [rng.normal(size=[sizes[label] for label in term]) for term in terms]
    found = contraction.contract(arrays, tuple(terms), output)
    np.testing.assert_allclose(found, np.einsum(equation, *arrays), rtol=1e-12)


def test_einsum_of_one_operand_is_a_view():
    x = filled(backlight, 2, 3)
    assert backlight.einsum("ij->ji", x).data_ptr() == x.data_ptr()


# --- softmax and norms ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_softmax_without_dim_warns_and_chooses_as_pytorch(name, dims):
    results = []
    for t in BOTH:
        with pytest.warns(
            UserWarning, match=f"Implicit dimension choice for {name} has been deprecated. Change the call"
        ):
            results.append(getattr(t.nn.functional, name)(filled(t, *(2,) * dims)))
    assert_same(*results, 1e-6, 1e-6)


def test_softmax_converts_first_if_told_to():
    ours, theirs = (t.nn.functional.softmax(t.tensor([1, 2, 3]), 0, dtype=t.float64) for t in BOTH)
    assert_same(ours, theirs, 1e-12, 0)


@pytest.mark.parametrize(
    "values", [[1e30, 0.0], [-1e30, -1e30], [float("-inf"), 1.0], [float("inf"), 1.0], [200.0, 201.0]]
)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_of_extreme_numbers_equals_pytorch(name, values):
    ours, theirs = (getattr(t, name)(t.tensor([values, [0.5, 1.0]]), 1) for t in BOTH)
    assert_same(ours, theirs, 1e-6, 1e-30)


def test_rows_that_need_no_shift_give_the_same_as_shifted_ones():
    x = np.random.default_rng(0).normal(size=(5, 33)) * 3
    shifted = rows.shifted(x, -1)
    expected = np.exp(shifted) / np.exp(shifted).sum(-1, keepdims=True)
    np.testing.assert_allclose(rows.softmax(x), expected, rtol=1e-13)
    np.testing.assert_allclose(rows.log_softmax(x), np.log(expected), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("shape", [(3, 4), (3, 4, 2)])
def test_batch_norm_moves_the_running_statistics_as_pytorch(shape):
    results = []
    for t in BOTH:
        mean, variance = t.zeros(4), t.ones(4)
        t.nn.functional.batch_norm(filled(t, *shape), mean, variance, training=True, momentum=0.3)
        results.append((mean, variance))
    assert_same(*results, 1e-5, 1e-6)


def test_instance_norm_moves_the_running_statistics_as_pytorch():
    results = []
    for t in BOTH:
        mean, variance = t.zeros(4), t.ones(4)
        out = t.nn.functional.instance_norm(filled(t, 3, 4, 5), mean, variance, momentum=0.3)
        results.append((out, mean, variance))
    assert_same(*results, 1e-4, 1e-5)


def test_changing_a_bare_layer_norm_in_place_is_noticed_nowhere_and_harms_nothing():
    x = filled(backlight, 2, 4, dtype="float64").requires_grad_()
    out = F.layer_norm(x, (4,))
    out.mul_(2)
    (grad,) = backlight.autograd.grad(out[0, 0], x)
    y = torch.tensor(x.detach().numpy()).requires_grad_()
    (expected,) = torch.autograd.grad(torch.nn.functional.layer_norm(y, (4,))[0, 0] * 2, y)
    assert_same(grad, expected, 1e-9, 1e-10)


# --- tables -----------------------------------------------------------------------------------------------------------


def embedding_gradient(t, **options):
    weight = filled(t, 5, 3, dtype="float64").requires_grad_()
    out = t.nn.functional.embedding(t.tensor([[1, 2, 1], [4, 1, 2]]), weight, **options)
    (out * filled(t, 2, 3, 3, dtype="float64")).sum().backward()
    return out.detach(), weight.grad


@pytest.mark.parametrize("options", [{"padding_idx": 1}, {"padding_idx": -4}, {"scale_grad_by_freq": True}], ids=str)
def test_embedding_options_change_the_gradient_as_in_pytorch(options):
    assert_same(embedding_gradient(backlight, **options), embedding_gradient(torch, **options), 1e-12, 1e-12)


def test_embedding_shortens_long_rows_in_the_table():
    tables = [filled(t, 5, 3) * 4 for t in BOTH]
    for t, table in zip(BOTH, tables):
        t.nn.functional.embedding(t.tensor([1, 2]), table, max_norm=1.0)
    assert_same(*tables, 1e-6, 1e-6)


def test_embedding_with_padding_has_a_second_derivative():
    weight = filled(backlight, 4, 2, dtype="float64").requires_grad_()
    out = F.embedding(backlight.tensor([0, 1, 1]), weight, padding_idx=0)
    (grad,) = backlight.autograd.grad((out * out).sum(), weight, create_graph=True)
    (second,) = backlight.autograd.grad(grad.sum(), weight)
    assert second[:, 0].tolist() == [0.0, 4.0, 0.0, 0.0]


@pytest.mark.parametrize("count", [0, 1, 50])
def test_sums_by_index_equals_adding_one_by_one(count):
    rng = np.random.default_rng(0)
    index, values = rng.integers(0, 8, count), rng.normal(size=(count, 3))
    expected = np.zeros((8, 3))
    np.add.at(expected, index, values)
    np.testing.assert_allclose(sums_by_index(values, index, 8), expected, rtol=1e-12)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_may_be_empty(mode):
    results = []
    for t in BOTH:
        weight = filled(t, 5, 3, dtype="float64").requires_grad_()
        offsets = t.tensor([0, 2, 2, 4])
        out = t.nn.functional.embedding_bag(
            t.tensor([1, 2, 1, 4]), weight, offsets, mode=mode, include_last_offset=True
        )
        (out * out).sum().backward()
        results.append((out.detach(), weight.grad))
    assert_same(*results, 1e-12, 1e-12)


# --- dropout ----------------------------------------------------------------------------------------------------------

DROPOUTS = ("dropout", "alpha_dropout", "feature_alpha_dropout", "dropout1d", "dropout2d", "dropout3d")
DROPOUT_SHAPES = {"dropout1d": (40, 50, 2), "dropout2d": (40, 50, 2, 2), "dropout3d": (40, 50, 2, 2, 1)}


@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_keeps_the_mean(name):
    backlight.manual_seed(0)
    x = backlight.ones(*DROPOUT_SHAPES.get(name, (100, 200)))
    if "alpha" in name:
        x = backlight.randn(100, 200)
    out = getattr(F, name)(x, 0.3, training=True)
    assert abs(out.mean().item() - x.mean().item()) < 0.05


@pytest.mark.parametrize("name", ["dropout1d", "dropout2d", "dropout3d"])
def test_feature_dropout_drops_whole_channels(name):
    backlight.manual_seed(0)
    out = getattr(F, name)(backlight.ones(*DROPOUT_SHAPES[name]), 0.5).reshape(2000, -1)
    assert {tuple(channel) for channel in out.tolist()} == {(0.0,) * out.shape[1], (2.0,) * out.shape[1]}


@pytest.mark.parametrize("name", DROPOUTS)
@pytest.mark.parametrize("options", [{"p": 0.0, "training": True}, {"training": False}], ids=str)
def test_idle_dropout_returns_its_input(name, options):
    x = backlight.ones(*DROPOUT_SHAPES.get(name, (3, 4)))
    assert getattr(F, name)(x, **options) is x


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout"])
def test_dropout_of_everything_gives_zeros_and_a_zero_gradient(name):
    x = backlight.ones(3).requires_grad_()
    out = getattr(F, name)(x, 1.0, training=True)
    out.sum().backward()
    assert out.tolist() == x.grad.tolist() == [0.0, 0.0, 0.0]


def test_dropout_in_place_writes_to_its_input():
    x = backlight.ones(50)
    assert F.dropout(x, 0.5, inplace=True) is x
    assert set(x.tolist()) == {0.0, 2.0}


def test_gumbel_softmax_may_be_hard_and_keeps_its_gradient():
    backlight.manual_seed(0)
    logits = filled(backlight, 4, 3).requires_grad_()
    draw = F.gumbel_softmax(logits, hard=True)
    assert np.allclose(np.sort(draw.detach().numpy(), 1), [[0, 0, 1]] * 4)
    (draw * filled(backlight, 4, 3)).sum().backward()
    assert logits.grad.abs().sum() > 0


# --- attention --------------------------------------------------------------------------------------------------------


def attended(t, dtype="float32", mask=None, lead=(2, 3), keys=5, **options):
    query, key, value = (
        filled(t, *lead, size, 4, dtype=dtype, start=start).requires_grad_()
        for size, start in ((6, 0.1), (keys, 0.7), (keys, 1.9))
    )
    out = t.nn.functional.scaled_dot_product_attention(query, key, value, mask, **options)
    (out * filled(t, *out.shape, dtype=dtype)).sum().backward()
    return out.detach(), query.grad, key.grad, value.grad


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_and_its_gradients_equal_pytorch(dtype, causal):
    tolerance = {"float64": 1e-11, "float32": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}[dtype]
    ours, theirs = (attended(t, dtype, is_causal=causal) for t in BOTH)
    assert_same(ours, theirs, tolerance, tolerance)


def masks(t):
    """Masks of all kinds: rows that see nothing, one value a key, numbers small and huge."""
    sees = (t.arange(30).reshape(6, 5) % 3) != 1
    nothing = t.zeros(6, 5, dtype=t.bool)
    numbers = filled(t, 2, 1, 6, 5) * 5
    infinite = t.where(sees, 0.0, float("-inf"))
    lowest = t.where(sees, 0.0, t.finfo(t.float32).min)
    return [sees, sees[:1], nothing, numbers, infinite, lowest, sees.float() - 300, numbers * 100]


@pytest.mark.parametrize("number", range(8))
def test_masked_attention_equals_pytorch(number):
    ours, theirs = (attended(t, mask=masks(t)[number]) for t in BOTH)
    assert_same(ours, theirs, 1e-4, 1e-5)


@pytest.mark.parametrize("scale", [1.0, 40.0])
def test_attention_weights_equal_their_definition(scale):
    rng = np.random.default_rng(0)
    scores, mask = rng.normal(size=(3, 7, 9)) * scale, rng.random((7, 9)) < 0.7
    mask[2] = False
    shifted = np.where(mask, scores, -np.inf)
    weights = np.exp(shifted - np.where(mask, scores, -1e9).max(-1, keepdims=True))
    total = weights.sum(-1, keepdims=True)
    expected = np.divide(weights, total, out=np.zeros_like(weights), where=total != 0)
    np.testing.assert_allclose(rows.attention_weights(scores.copy(), mask), expected, rtol=1e-12)
    numbers = np.where(mask, 0.0, -np.inf)
    np.testing.assert_allclose(rows.attention_weights(scores.copy(), numbers), expected, rtol=1e-12)


def test_attention_drops_probabilities():
    backlight.manual_seed(0)
    eye = backlight.eye(200)
    shares = F.scaled_dot_product_attention(backlight.zeros(200, 200), eye, eye, dropout_p=0.25)
    dropped = (shares == 0).float().mean().item()
    assert abs(dropped - 0.25) < 0.02
    assert np.allclose(shares[shares != 0].numpy(), 1 / 200 / 0.75)


def test_attention_without_dropout_draws_nothing():
    backlight.manual_seed(0)
    before = backlight.get_rng_state()
    attended(backlight)
    assert backlight.equal(before, backlight.get_rng_state())


# --- losses -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_of_unequal_sizes_warn_and_broadcast(name):
    results = []
    for t in BOTH:
        with pytest.warns(
            UserWarning, match=r"Using a target size \(torch.Size\(\[4\]\)\) that is different to the input"
        ):
            results.append(getattr(t.nn.functional, name)(filled(t, 3, 1), filled(t, 4)))
    assert_same(*results, 1e-6, 1e-6)


@pytest.mark.parametrize("options", [{"size_average": False}, {"reduce": False}, {"size_average": True}], ids=str)
def test_old_names_of_reductions_warn_and_work(options):
    results = []
    for t in BOTH:
        with pytest.warns(UserWarning, match="size_average and reduce args will be deprecated, please use reduction="):
            results.append(t.nn.functional.cross_entropy(filled(t, 3, 4), t.tensor([0, 1, 2]), **options))
    assert_same(*results, 1e-6, 1e-6)


def test_kl_div_warns_of_its_mean():
    with pytest.warns(UserWarning, match="reduction: 'mean' divides the total loss by both"):
        ours = F.kl_div(filled(backlight, 2, 3), filled(backlight, 2, 3).softmax(1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = torch.nn.functional.kl_div(filled(torch, 2, 3), filled(torch, 2, 3).softmax(1))
    assert_same(ours, theirs, 1e-6, 1e-6)


def test_cross_entropy_of_nothing_but_ignored_targets_is_nan():
    assert F.cross_entropy(filled(backlight, 2, 3), backlight.tensor([-100, -100])).isnan()


def test_cross_entropy_takes_bytes_as_classes():
    ours, theirs = (t.nn.functional.cross_entropy(filled(t, 2, 3), t.tensor([0, 2], dtype=t.uint8)) for t in BOTH)
    assert_same(ours, theirs, 1e-6, 1e-6)


def test_cross_entropy_is_log_softmax_then_nll():
    logits, target = filled(backlight, 5, 4, dtype="float64").requires_grad_(), backlight.tensor([0, 3, 1, 2, 2])
    fused = F.cross_entropy(logits, target)
    apart = F.nll_loss(F.log_softmax(logits, 1), target)
    assert_same(fused.detach(), torch.tensor(apart.item(), dtype=torch.float64), 1e-14, 0)
    (a,), (b,) = backlight.autograd.grad(fused, logits), backlight.autograd.grad(apart, logits)
    np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("target", [0.0, 1.0])
@pytest.mark.parametrize("logit", [-800.0, 0.0, 800.0])
def test_bce_with_logits_never_overflows(logit, target):
    results = []
    for t in BOTH:
        x = t.tensor([logit], requires_grad=True)
        loss = t.nn.functional.binary_cross_entropy_with_logits(x, t.tensor([target]))
        loss.backward()
        results.append((loss.detach(), x.grad))
    assert_same(*results, 1e-6, 1e-6)


def test_gradient_of_a_distance_of_zero_is_zero():
    x = backlight.zeros(2, 3, dtype=backlight.float64).requires_grad_()
    backlight.cdist(x, x.detach()).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2


def test_cosine_similarity_of_zero_is_zero_and_its_gradient_finite():
    x = backlight.zeros(3).requires_grad_()
    similarity = F.cosine_similarity(x, backlight.ones(3), dim=0)
    similarity.backward()
    assert similarity.item() == 0
    assert np.isfinite(x.grad.numpy()).all()


def test_linear_passes_gradcheck_in_fast_mode_with_broadcast_rows():
    inputs = [filled(backlight, *shape, dtype="float64").requires_grad_() for shape in ((2, 5, 3), (4, 3), (4,))]
    assert gradcheck(F.linear, inputs, fast_mode=True)
