"""Values leave and enter tensors as in PyTorch: numbers, lists, NumPy arrays, copies, pickles, other libraries."""

import copy
import pickle

import numpy as np
import pytest
import torch
from parity import assert_same, lines, without_cuda

import backlight
from backlight.system.user_warnings import _given

NUMBERS = """
float(torch.tensor(2.7))
int(torch.tensor(2.7))
int(torch.tensor(-2.7))
int(torch.tensor(True))
complex(torch.tensor(2.7))
float(torch.tensor([[3]]))
float(torch.tensor([]))
float(torch.ones(2))
int(torch.tensor([1, 2]))
bool(torch.tensor(0.5))
bool(torch.tensor([[0]]))
bool(torch.ones(2))
bool(torch.tensor([]))
torch.tensor(2.5).item()
torch.tensor([[True]]).item()
torch.tensor(2.5, dtype=torch.bfloat16).item()
torch.tensor(7, dtype=torch.uint8).item()
torch.ones(2, 3).item()
torch.tensor([]).item()
torch.tensor(2.5).tolist()
torch.tensor([[1.5, 2], [3, 4]]).tolist()
torch.tensor([1.5, 2], dtype=torch.bfloat16).tolist()
torch.zeros(2, 0).tolist()
torch.ones(2, requires_grad=True).tolist()
torch.tensor([True, False]).tolist()
range(torch.tensor(3))
[1, 2, 3][torch.tensor(1)]
[1, 2, 3][torch.tensor([1])]
[1, 2, 3][torch.tensor(1.0)]
[1, 2, 3][torch.tensor([1, 2])]
[1, 2, 3][torch.tensor(True)]
len(torch.ones(3, 2))
len(torch.tensor(1))
list(torch.tensor([1.5, 2]))
list(torch.ones(2, requires_grad=True))
list(torch.tensor(1))
list(reversed(torch.tensor([1, 2, 3])))
reversed(torch.tensor([[1, 2], [3, 4]]))
1 in torch.tensor([1, 2])
5.0 in torch.tensor([1, 2])
torch.tensor(2) in torch.tensor([1, 2])
torch.tensor([1, 2]) in torch.tensor([[1, 2], [3, 4]])
"a" in torch.tensor([1])
None in torch.tensor([1])
sorted([torch.tensor(3), torch.tensor(1)])
__import__("math").floor(torch.tensor(2.5))
__import__("math").sqrt(torch.tensor(4))
"""

ARRAYS = """
torch.tensor([1.5, 2]).numpy()
torch.ones(2, requires_grad=True).numpy()
torch.ones(2, requires_grad=True).numpy(force=True)
torch.tensor(3).numpy()
np.asarray(torch.tensor([1, 2]))
np.asarray(torch.tensor([1, 2]), dtype=np.float64)
np.array(torch.ones(2, requires_grad=True))
np.asarray(torch.ones(2, requires_grad=True))
torch.ones(2, requires_grad=True).__array__()
torch.tensor([1.5, 2]).__array__(np.float64)
np.sin(torch.zeros(2))
np.add(torch.ones(2), 1)
np.stack([torch.ones(2), torch.zeros(2)])
np.concatenate([torch.ones(2), torch.zeros(1)])
np.float64(2) * torch.ones(2)
np.float32(2) * torch.ones(2)
torch.ones(2) / np.float64(2)
torch.ones(2) * np.array([1.0, 2.0])
np.from_dlpack(torch.ones(2))
torch.from_dlpack(torch.ones(2))
"""

MEMORY = """
torch.ones(2).cpu()
torch.ones(2).is_cuda
torch.ones(2).is_cpu
torch.ones(2).is_sparse
torch.ones(2).is_quantized
torch.ones(2).is_mps
torch.ones(2).is_meta
torch.ones(2).is_complex()
torch.ones(2).is_conj()
torch.ones(2).is_neg()
torch.ones(2).is_signed()
torch.ones(2, dtype=torch.uint8).is_signed()
torch.ones(2).is_pinned()
torch.ones(2).is_shared()
torch.ones(2).is_distributed()
torch.ones(2).get_device()
torch.ones(2).is_same_size(torch.ones(2))
torch.tensor([0.0]).is_nonzero()
torch.ones(2).type()
"""


@pytest.mark.parametrize(
    "expression", [*lines(NUMBERS), *lines(ARRAYS), *lines(MEMORY), without_cuda("torch.ones(2).pin_memory()")]
)
def test_values_and_questions_are_pytorchs(expression):
    assert_same(expression)


def test_numbers_of_a_tensor_that_requires_grad_warn_once():
    leaf = backlight.tensor(2.0, requires_grad=True)
    _given.clear()
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True to a scalar "):
        assert float(leaf) == 2.0
    assert float(leaf) == 2.0
    assert complex(leaf * 2) == 4
    backlight.set_warn_always(True)
    try:
        assert backlight.is_warn_always_enabled()
        with pytest.warns(UserWarning, match="Converting a tensor"):
            complex(leaf)
    finally:
        backlight.set_warn_always(False)
    assert int(leaf) == 2


def test_iteration_is_differentiable():
    source = backlight.tensor([1.0, 2.0, 3.0], requires_grad=True)
    sum(weight * part for weight, part in zip((1, 10, 100), source)).backward()
    assert source.grad.tolist() == [1.0, 10.0, 100.0]


def test_numpy_shares_memory_also_of_0_d_tensors():
    for made in (backlight.tensor([1.0, 2.0]), backlight.tensor(1.0), backlight.tensor([1.0, 2.0]).sum()):
        made.numpy()[...] = 7
        assert set(np.ravel(made.tolist())) == {7.0}


def test_array_may_be_asked_not_to_copy():
    source = backlight.tensor([1.0, 2.0])
    np.array(source, copy=False)[0] = 5
    np.array(source)[1] = 9
    assert source.tolist() == [5.0, 2.0]


def test_numpy_functions_of_tensors_give_tensors():
    assert type(np.exp(backlight.zeros(2))) is backlight.Tensor
    assert np.isnan(backlight.zeros(2)).tolist() == [False, False]


def test_dlpack_shares_memory_with_pytorch_both_ways():
    ours = backlight.tensor([1.0, 2.0])
    torch.from_dlpack(ours)[0] = 5
    theirs = torch.tensor([3.0, 4.0])
    backlight.from_dlpack(theirs).numpy()[1] = 8
    assert ours.tolist() == [5.0, 2.0]
    assert theirs.tolist() == [3.0, 8.0]
    with pytest.raises(BufferError, match="Can't export tensors that require gradient"):
        torch.from_dlpack(ours.requires_grad_())


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda tensor: pickle.loads(pickle.dumps(tensor))])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool"])
def test_duplicates_have_the_values_and_memory_of_their_own(duplicate, dtype):
    for source in (
        backlight.ones(2, 3, dtype=getattr(backlight, dtype)).t(),
        backlight.ones((), dtype=backlight.float64),
    ):
        made = duplicate(source)
        assert type(made) is backlight.Tensor
        assert (repr(made), made.stride()) == (repr(source), source.stride())
        assert made.data_ptr() != source.data_ptr()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda tensor: pickle.loads(pickle.dumps(tensor))])
def test_duplicates_of_a_leaf_require_grad_and_keep_attributes(duplicate):
    source = backlight.ones(2, requires_grad=True)
    source.label = "weights"
    made = duplicate(source)
    assert made.requires_grad
    assert made.is_leaf
    assert made.label == "weights"


def test_deepcopy_takes_the_gradient_along_and_copies_a_tensor_once():
    source = backlight.ones(2, requires_grad=True)
    (source * 2).sum().backward()
    first, second = copy.deepcopy([source, source])
    assert first is second
    assert first.grad.tolist() == [2.0, 2.0]
    assert first.grad is not source.grad


def test_deepcopy_of_a_computed_tensor_is_refused():
    assert_same("__import__('copy').deepcopy(torch.ones(2, requires_grad=True) * 2)")


def test_a_shallow_copy_shares_memory_and_is_a_leaf():
    source = backlight.ones(2, requires_grad=True)
    made = copy.copy(source)
    assert made is not source
    assert made.data_ptr() == source.data_ptr()
    assert made.is_leaf
    assert made.requires_grad


def test_a_pickle_of_a_computed_tensor_is_a_leaf():
    made = pickle.loads(pickle.dumps(backlight.ones(2, requires_grad=True) * 2))
    assert made.is_leaf
    assert made.requires_grad
    assert made.tolist() == [2.0, 2.0]


def test_what_has_no_counterpart_here_is_refused_by_name():
    source = backlight.ones(2)
    with pytest.raises(RuntimeError, match="Torch not compiled with CUDA enabled"):
        source.cuda()


def test_classes_name_the_package():
    assert repr(type(backlight.ones(2))) == "<class 'backlight.Tensor'>"
