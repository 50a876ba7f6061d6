"""Products, layers and losses raise PyTorch's errors for the same mistakes, and make nodes of PyTorch's names."""

import warnings

import pytest
import torch
from filled import BOTH
from filled import filled as f

import backlight
import backlight.nn.functional

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
    ours, theirs = (call(t, lambda *shape, t=t: f(t, *shape).requires_grad_()) for t in BOTH)
    assert type(ours.grad_fn).__name__ == type(theirs.grad_fn).__name__
