"""DLPack both ways: the memory is the same, and what cannot be shared is refused in PyTorch's words."""

import gc
import weakref

import numpy as np
import pytest
import torch

import backlight
from backlight.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

KINDS = ["float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64", "bool"]
VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.t(),
    "a part": lambda x: x[1:, ::2],
    "one element": lambda x: x[1, 1],
    "no element": lambda x: x[:0],
    "expanded": lambda x: x[:1].expand(3, 4),
}


def values(module, kind: str):
    return module.arange(12).reshape(3, 4).to(getattr(module, kind))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(("source", "target"), [(torch, backlight), (backlight, torch), (backlight, backlight)])
def test_every_dtype_and_view_goes_over_without_a_copy(kind, view, source, target):
    given = VIEWS[view](values(source, kind))
    taken = target.from_dlpack(given)
    assert str(taken.dtype) == str(given.dtype)
    assert tuple(taken.shape) == tuple(given.shape)
    assert taken.tolist() == given.tolist()
    if given.numel():
        assert taken.data_ptr() == given.data_ptr()
    if given.numel() > 1:
        assert taken.stride() == given.stride()


@pytest.mark.parametrize("source", [torch, backlight])
@pytest.mark.parametrize("target", [torch, backlight])
def test_what_one_library_writes_the_other_reads(source, target):
    given = source.zeros(2, 3)
    taken = target.from_dlpack(given)
    taken[0, 1] = 7
    given[1, 2] = 5
    assert taken.tolist() == given.tolist() == [[0, 7, 0], [0, 0, 5]]


def test_numpy_takes_and_gives_memory_too():
    x = backlight.arange(6.0).reshape(2, 3).t()
    array = np.from_dlpack(x)
    assert np.shares_memory(array, x.numpy())
    assert array.strides == (4, 12)
    array = np.arange(3.0)
    taken = backlight.from_dlpack(array)
    taken.fill_(2)
    assert array.tolist() == [2, 2, 2]


def test_a_write_to_taken_memory_is_counted():
    taken = backlight.from_dlpack(torch.ones(3))
    w = backlight.ones(3, requires_grad=True)
    y = (w * taken).sum()
    taken.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


@pytest.mark.parametrize("module", [torch, backlight])
def test_the_memory_lives_as_long_as_either_side(module):
    class Owner(np.ndarray):
        pass

    array = np.arange(4.0).view(Owner)
    ghost = weakref.ref(array)
    taken = backlight.from_dlpack(array)
    del array
    gc.collect()
    assert taken.tolist() == [0, 1, 2, 3]
    given = module.arange(4.0)
    held = backlight.from_dlpack(given)
    del given
    gc.collect()
    assert held.tolist() == [0, 1, 2, 3]
    del taken
    gc.collect()
    assert ghost() is None


def test_the_old_functions_pass_a_capsule_that_can_be_used_once():
    x = backlight.arange(3.0)
    capsule = to_dlpack(x)
    assert from_dlpack(capsule).data_ptr() == x.data_ptr()
    theirs = torch.arange(3.0)
    their_capsule = torch.utils.dlpack.to_dlpack(theirs)
    torch.from_dlpack(their_capsule)
    with pytest.raises(RuntimeError) as expected:
        torch.from_dlpack(their_capsule)
    with pytest.raises(RuntimeError) as found:
        from_dlpack(capsule)
    assert str(found.value).startswith(str(expected.value))
    torch.from_dlpack(to_dlpack(x))[0] = 5
    from_dlpack(to_dlpack(x))[1] = 6
    assert x.tolist() == [5, 6, 2]
    assert backlight.from_dlpack(torch.utils.dlpack.to_dlpack(theirs)).data_ptr() == theirs.data_ptr()


def test_capsules_are_of_the_version_that_is_asked_for():
    x = backlight.ones(2)
    assert '"dltensor"' in repr(x.__dlpack__())
    assert '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8)))
    assert '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    assert x.__dlpack_device__() == (DLDeviceType.kDLCPU, 0)
    assert {kind.name: kind.value for kind in DLDeviceType} == {
        kind.name: kind.value for kind in torch.utils.dlpack.DLDeviceType
    }


@pytest.mark.parametrize(
    "use", ["module.from_dlpack(x)", "x.__dlpack__()", "np.from_dlpack(x)", "other.from_dlpack(x)"]
)
def test_a_tensor_that_requires_grad_is_refused(use):
    messages = []
    for module, other in ((torch, backlight), (backlight, torch)):
        for x in (module.ones(2, requires_grad=True), module.ones(2, requires_grad=True) * 2):
            with pytest.raises(BufferError) as problem:
                eval(use, {"np": np, "module": module, "other": other, "x": x})
            messages.append(str(problem.value))
    assert set(messages) == {"Can't export tensors that require gradient, use tensor.detach()"}


def test_copies_are_made_when_asked_for():
    x = backlight.ones(3)
    assert backlight.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()
    assert backlight.from_dlpack(x, copy=False).data_ptr() == x.data_ptr()
    assert backlight.from_dlpack(x, device="cpu").data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="Torch not compiled with CUDA enabled"):
        backlight.from_dlpack(x, device="cuda")
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="stream should be None on cpu"):
        x.__dlpack__(stream=1)


def test_memory_of_a_library_from_before_version_1():
    class Old:
        def __init__(self):
            self.array = np.arange(3.0)

        def __dlpack__(self, stream=None):
            return self.array.__dlpack__(stream=stream)

        def __dlpack_device__(self):
            return (1, 0)

    old = Old()
    backlight.from_dlpack(old)[0] = 9
    backlight.from_dlpack(old, copy=True)[0] = 5
    assert old.array.tolist() == [9, 1, 2]


def test_memory_that_runs_backward_or_lies_elsewhere_is_refused():
    class Elsewhere:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self, **options):
            raise AssertionError

    with pytest.raises(ValueError, match="At least one stride"):
        backlight.from_dlpack(np.arange(3.0)[::-1])  # PyTorch ends the process here
    with pytest.raises(BufferError, match="memory of the CPU, got device 2"):
        backlight.from_dlpack(Elsewhere())
    for wrong in (3, [1.0], None):
        with pytest.raises(RuntimeError, match="from_dlpack received an invalid capsule"):
            backlight.from_dlpack(wrong)
    assert backlight.from_dlpack(np.arange(3, dtype=np.uint32)).dtype is backlight.uint32


def test_read_only_memory_is_read_and_not_written():
    array = np.arange(3.0)
    array.flags.writeable = False
    taken = backlight.from_dlpack(array)
    assert taken.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        taken.fill_(1)
