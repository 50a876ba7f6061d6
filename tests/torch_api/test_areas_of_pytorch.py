"""Small calls of the kinds that PyTorch's own tests make: same values, or PyTorch's error and its first line."""

import io

import pytest
import torch

import backlight

pytestmark = pytest.mark.filterwarnings("ignore")  # both engines warn of old names and orders

VALUES = {
    "round to decimals": lambda m: m.tensor([2.345, 1.005, -0.125, 2.5e10]).round(decimals=2).tolist(),
    "hann window": lambda m: m.hann_window(4, periodic=False).tolist(),
    "bartlett window": lambda m: m.bartlett_window(7, periodic=False).tolist(),
    "is_set_to": lambda m: [m.zeros(3).is_set_to(m.zeros(3)), *_set_to(m.zeros(3))],
    "parameter dicts merged": lambda m: [list(one) for one in _merged(m.nn.ParameterDict)],
    "parametrizations transferred": lambda m: _transferred(m),
    "i0 of special": lambda m: m.special.modified_bessel_i0(m.tensor([-2.0, 0.5])).mul(1e4).round().tolist(),
    "i1 of special": lambda m: m.special.modified_bessel_i1(m.tensor([-2.0, 0.5])).mul(1e4).round().tolist(),
    "complex nan_to_num": lambda m: m.tensor([complex("nan"), complex(1, float("inf"))]).nan_to_num(2.0).tolist(),
    "list of floats as an index": lambda m: m.arange(6).reshape(3, 2)[[1.5]].tolist(),
    "shrunk and grown": lambda m: m.arange(4.0).resize_(2).resize_(4).tolist(),
    "set to another": lambda m: _set(m.empty(0), m.arange(6.0)),
    "places of what is not zero": lambda m: [
        m.ones(2, 3).nonzero().stride(),
        *_strides(m.eye(3).nonzero(as_tuple=True)),
    ],
    "bags, old order": lambda m: m.nn.functional.embedding_bag(*_old_bag(m)).tolist(),
    "hardtanh, old names": lambda m: repr(m.nn.Hardtanh(min_value=-3, max_value=2)),
    "state by position": lambda m: list(m.nn.Linear(1, 1).state_dict({}, "p.")),
    "empty sparse": lambda m: [m.empty(2, 3, layout=m.sparse_coo)._nnz(), tuple(_sparse_like(m).shape)],
    "empty storage": lambda m: repr(m.UntypedStorage()).splitlines()[0],
    "fill bools": lambda m: m.zeros(2, dtype=m.bool).fill_(1j).tolist(),
}
ERRORS = {
    "interpolate mode": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), scale_factor=2, mode="linear"),
    "interpolate name": lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2), scale_factor=2, mode="zz"),
    "pad mode": lambda m: m.nn.functional.pad(m.ones(1, 1, 2, 2), (1, 1), mode="zz"),
    "pad away": lambda m: m.nn.ReplicationPad1d((-5, 0))(m.ones(1, 1, 4)),
    "hardtanh": lambda m: m.nn.Hardtanh(1.0, 0.0),
    "one number a group": lambda m: m.nn.functional.group_norm(m.ones(1, 4), 4),
    "layer norm of integers": lambda m: m.nn.LayerNorm(3)(m.ones(1, 3, dtype=m.int64)),
    "batch norm of integers": lambda m: m.nn.BatchNorm1d(2)(m.ones(3, 2, dtype=m.int64)),
    "padding of a batch": lambda m: _attention(m, m.ones(2, 2, dtype=m.bool)),
    "padding of keys": lambda m: _attention(m, m.ones(1, 3, dtype=m.bool)),
    "projected GRU": lambda m: m.nn.GRU(2, 3, proj_size=1),
    "projected RNN": lambda m: m.nn.RNN(2, 3, proj_size=1),
    "pruning a missing name": lambda m: _prune(m).l1_unstructured(m.nn.Linear(2, 2), "nope", 1),
    "scores of pruning": lambda m: _prune(m).l1_unstructured(m.nn.Linear(2, 2), "bias", 1, importance_scores=3),
    "take_along_dim": lambda m: m.take_along_dim(m.ones(2, 3), m.tensor([0.0]), 0),
    "indices of index_put": lambda m: m.zeros(2, 3).index_put((m.tensor([0]),) * 3, m.tensor(1.0)),
    "complex fill": lambda m: m.zeros(2).index_fill(0, m.tensor([0]), 1j),
    "expand": lambda m: m.ones(2, 1).expand(2),
    "strides": lambda m: m.empty_strided((2,), (1, 2)),
    "empty column_stack": lambda m: m.column_stack([]),
    "recursive list": lambda m: m.tensor(_recursive()),
    "device index": lambda m: m.device("cuda:1", 2),
    "negative device": lambda m: m.device(-1),
    "sorted complex": lambda m: m.tensor([1j]).sort(),
    "sign": lambda m: m.sign(m.tensor([1j])),
    "signbit": lambda m: m.signbit(m.tensor([1j])),
    "abs of bools": lambda m: m.abs(m.tensor([True])),
    "complex median": lambda m: m.tensor([1j]).median(),
    "two sizes of a storage": lambda m: m.FloatStorage(1, 2),
    "dtype of FloatStorage": lambda m: m.FloatStorage(1, dtype=m.float64),
    "text as a storage": lambda m: m.UntypedStorage("a"),
    "storage of storage": lambda m: m.TypedStorage(wrap_storage=3, dtype=m.float32),
    "storage without dtype": lambda m: m.TypedStorage(wrap_storage=m.UntypedStorage(4)),
    "index of a storage": lambda m: m.FloatStorage(2)["a"],
    "offset of set_": lambda m: m.empty(0).set_(m.ones(2).untyped_storage(), -1, (1,)),
    "dtype of set_": lambda m: m.empty(0, dtype=m.int64).set_(m.FloatStorage(2)),
    "flat boundaries": lambda m: m.searchsorted(m.tensor(1), m.tensor([1])),
    "sorter's dtype": lambda m: m.searchsorted(m.tensor([1]), m.tensor([1]), sorter=m.tensor([0.0])),
    "sorter's range": lambda m: m.searchsorted(m.tensor([1]), m.tensor([1]), sorter=m.tensor([4])),
    "number for two boundaries": lambda m: m.searchsorted(m.tensor([[1, 2]]), 1),
    "out of bucketize": lambda m: m.bucketize(m.tensor([1]), m.tensor([1]), out=m.empty(1)),
    "out of cat": lambda m: m.cat([m.ones(1)], out=m.empty(1, dtype=m.int32)),
    "out of isneginf": lambda m: m.isneginf(m.ones(1), out=m.empty(1)),
    "ends of diff": lambda m: m.diff(m.ones(2, 2), prepend=m.ones(3, 3)),
    "dims of diff": lambda m: m.diff(m.ones(2), prepend=m.tensor(1.0)),
    "dim of diff": lambda m: m.diff(m.ones(2), dim=3),
    "batches of addbmm": lambda m: m.addbmm(m.ones(2, 2), m.ones(1, 2, 2), m.ones(2, 2, 2)),
    "dtypes of baddbmm": lambda m: m.baddbmm(m.ones(1, 1, 1), m.ones(1, 1, 1).int(), m.ones(1, 1, 1)),
    "size of addmv": lambda m: m.addmv(m.ones(3), m.ones(2, 2), m.ones(2)),
    "vectors of addr": lambda m: m.addr(m.ones(2, 2), m.ones(2, 2), m.ones(2)),
    "factor of addr": lambda m: m.addr(m.ones(1, 1).int(), m.ones(1).int(), m.ones(1).int(), alpha=1.5),
    "dot of bools": lambda m: m.tensor([True]) @ m.tensor([True]),
    "vecdot": lambda m: m.linalg.vecdot(m.ones(2), m.ones(3)),
    "norm's dtype": lambda m: m.linalg.norm(m.ones(2), dtype=m.int32),
    "norm's complex dtype": lambda m: m.linalg.vector_norm(m.ones(2), dtype=m.complex64),
    "norm's name": lambda m: m.norm(m.ones(2, 2), "zz"),
    "complex tolerance": lambda m: m.linalg.matrix_rank(m.eye(2), tol=m.tensor(1j)),
    "label of einsum": lambda m: m.einsum(m.ones(1), [99]),
    "no matrices": lambda m: m.chain_matmul(),
    "removed": lambda m: m.symeig(m.eye(2)),
    "fftfreq": lambda m: m.fft.fftfreq(-1),
    "byte mask": lambda m: m.ones(2).__setitem__(m.tensor([1, 0], dtype=m.uint8), 5),
    "deleting": lambda m: m.ones(2).__delitem__(0),
    "number added to slices": lambda m: m.tensor(1.0).index_add(0, m.tensor([0]), m.ones(1)),
    "negative size": lambda m: m.ones(2).reshape(-2),
    "default dtype": lambda m: m.set_default_dtype("x"),
    "means": lambda m: m.normal(0.0, 1.0),
    "complex integers": lambda m: m.randint(0, 3, (2,), dtype=m.complex64),
    "sparse ones": lambda m: m.ones(2, layout=m.sparse_coo),
    "pool of nothing": lambda m: m.nn.functional.max_pool2d(m.ones(1, 1, 4, 4), 0),
    "pool's dilation": lambda m: m.nn.functional.max_pool2d(m.ones(1, 1, 4, 4), 2, dilation=0),
    "unpooled by floats": lambda m: m.nn.functional.max_unpool2d(m.ones(1, 1, 2, 2), m.zeros(1, 1, 2, 2), 2),
    "fold": lambda m: m.nn.functional.unfold(m.ones(1, 1, 3, 3), 0),
    "padding of no channels": lambda m: m.nn.functional.pad(m.ones(1, 0, 3), (1, 1), mode="reflect"),
    "loss of a number": lambda m: m.nn.functional.nll_loss(m.tensor(1.0), m.tensor(0)),
    "size of a grid": lambda m: m.nn.functional.affine_grid(m.ones(1, 2, 3), (1, 1, 2), align_corners=False),
    "offsets of floats": lambda m: m.nn.functional.embedding_bag(m.tensor([0]), m.ones(2, 2), m.tensor([0.0])),
    "called parameters": lambda m: m.nn.ParameterList()(1),
    "missing weight": lambda m: m.nn.utils.weight_norm(m.nn.Linear(1, 1), "zz"),
    "place of a file": lambda m: m.load(_saved(m), map_location="bogus"),
    "old functions in transforms": lambda m: m.func.grad(_old_function(m).apply)(m.tensor(1.0)),
    "clamp by both": lambda m: m.clamp(m.ones(2), 0, m.tensor([1.0, 2.0])),
}


def _old_function(module):
    class Same(module.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    return Same


def _set(tensor, source):
    tensor.set_(source)
    return tensor.is_set_to(source), tensor.set_(source.untyped_storage(), 1, (2, 2), (2, 1)).tolist()


def _strides(tensors):
    return [tensor.stride() for tensor in tensors]


def _old_bag(module):
    return module.arange(4.0).reshape(2, 2), module.tensor([0, 1]), module.tensor([0])


def _sparse_like(module):
    return module.zeros_like(module.ones(2, 3), layout=module.sparse_coo)


def _saved(module):
    file = io.BytesIO()
    module.save(module.ones(1), file)
    file.seek(0)
    return file


def _set_to(tensor):
    return [tensor.is_set_to(tensor), tensor.is_set_to(tensor.view(3)), tensor.is_set_to(tensor[1:])]


def _merged(kind):
    first, second = kind({"a": None}), kind({"b": None})
    yield first | second
    yield {"c": None} | second
    first |= second
    yield first
    yield second.fromkeys(["x", "y"])


def _transferred(module):
    parametrize = module.nn.utils.parametrize
    source, target = module.nn.Linear(2, 1), module.nn.Linear(2, 1)
    parametrize.register_parametrization(source, "weight", module.nn.Identity())
    parametrize.transfer_parametrizations_and_params(source, target)
    same = target.parametrizations.weight.original is source.parametrizations.weight.original
    return same, parametrize.is_parametrized(target, "weight"), parametrize.is_parametrized(target, "bias")


def _attention(module, mask):
    x = module.ones(2, 1, 4)
    return module.nn.MultiheadAttention(4, 2)(x, x, x, key_padding_mask=mask)


def _prune(module):
    return backlight.nn.utils.prune if module is backlight else __import__("torch.nn.utils.prune").nn.utils.prune


def _recursive():
    items = [1]
    items.append(items)
    return items


@pytest.mark.parametrize("name", VALUES)
def test_a_call_gives_pytorchs_values(name):
    assert VALUES[name](backlight) == VALUES[name](torch)


@pytest.mark.parametrize("name", ERRORS)
def test_a_mistake_raises_pytorchs_error(name):
    raised = []
    for module in (torch, backlight):
        with pytest.raises(Exception) as caught:
            ERRORS[name](module)
        raised.append(caught.value)
    theirs, ours = raised
    assert isinstance(ours, type(theirs))
    assert str(ours).startswith(str(theirs).splitlines()[0].rstrip("."))
