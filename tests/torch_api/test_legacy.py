"""The old constructors make what PyTorch's make, and subclasses of Tensor work."""

import gc

import pytest
from parity import assert_same, lines

import backlight

OLD_STYLE = """
torch.Tensor()
torch.Tensor([1, 2])
torch.Tensor((2, 3))
torch.Tensor([1.5, True])
torch.Tensor([[1, 2], [3]])
torch.Tensor(2.5)
torch.Tensor("a")
torch.Tensor(None)
torch.Tensor(2, "a")
torch.Tensor(2, 2.5)
torch.Tensor(-1)
torch.Tensor(range(3))
torch.Tensor(np.array([1, 2]))
torch.Tensor(torch.tensor([1, 2]))
torch.Tensor(0, 3)
torch.Tensor([1], device="cpu")
torch.FloatTensor([1, 2])
torch.DoubleTensor([1, 2])
torch.LongTensor([1.7, 2])
torch.HalfTensor([1, 2])
torch.ByteTensor([1, 2])
torch.BoolTensor([1, 0])
torch.IntTensor(0)
torch.ShortTensor([3])
torch.CharTensor([3])
torch.BFloat16Tensor([1, 2])
torch.FloatTensor(np.array([1.0, 2.0]))
torch.FloatTensor.dtype
torch.FloatTensor
isinstance(torch.ones(2), torch.FloatTensor)
isinstance(torch.tensor([1]), torch.FloatTensor)
torch.ones(2).type(torch.DoubleTensor)
torch.tensor([1]).type()
"""


@pytest.mark.parametrize("call", lines(OLD_STYLE))
def test_old_constructors(call):
    assert_same(call)


def test_old_constructor_of_sizes_has_that_shape():
    assert backlight.Tensor(2, 3).shape == (2, 3)
    assert backlight.Tensor(backlight.Size([2, 3])).shape == (2, 3)
    assert backlight.LongTensor(4).dtype is backlight.int64


def test_old_constructor_refuses_a_tensor_of_another_dtype():
    with pytest.raises(
        TypeError, match=r"expected TensorOptions\(dtype=long int, .*\(got TensorOptions\(dtype=float, "
    ):
        backlight.LongTensor(backlight.ones(2))


def test_old_constructor_shares_a_tensors_memory_and_history():
    source = backlight.ones(2, requires_grad=True)
    alias = backlight.Tensor(source)
    assert alias is not source
    assert alias.data_ptr() == source.data_ptr()
    alias.sum().backward()
    assert source.grad.tolist() == [1.0, 1.0]


@pytest.fixture
def labelled():
    """Return a subclass, as users write them."""

    class Labelled(backlight.Tensor):
        pass

    yield Labelled
    del Labelled
    gc.collect()


def test_a_subclass_is_made_by_the_old_constructor(labelled):
    made = labelled([1, 2])
    assert type(made) is labelled
    assert isinstance(made, backlight.Tensor)
    assert type(made * 2) is labelled
    assert repr(made) == "Labelled([1., 2.])"


def test_as_subclass_shares_memory_and_history(labelled):
    source = backlight.ones(2, requires_grad=True)
    made = (source * 2).as_subclass(labelled)
    assert type(made) is labelled
    made.sum().backward()
    assert source.grad.tolist() == [2.0, 2.0]
    leaf = backlight.Tensor._make_subclass(labelled, source, True)
    assert leaf.is_leaf
    assert leaf.requires_grad
    assert leaf.data_ptr() == source.data_ptr()


def test_set_default_tensor_type_sets_the_default_dtype():
    backlight.set_warn_always(True)
    try:
        with pytest.warns(UserWarning, match="set_default_tensor_type"):
            backlight.set_default_tensor_type(backlight.DoubleTensor)
        assert backlight.tensor(1.0).dtype is backlight.float64
        with pytest.warns(UserWarning, match="set_default_tensor_type"):
            backlight.set_default_tensor_type("torch.FloatTensor")
        assert backlight.tensor(1.0).dtype is backlight.float32
    finally:
        backlight.set_default_dtype(backlight.float32)
        backlight.set_warn_always(False)
