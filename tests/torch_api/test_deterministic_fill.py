"""New memory is filled, as in PyTorch, while only deterministic algorithms may be used."""

import pytest
import torch

import backlight
from backlight.torch_api.module_names import torch_names

KINDS = ("float32", "float64", "float16", "bfloat16", "complex64", "int8", "uint8", "int64", "bool")
PROGRAMS = {
    "empty": lambda module, kind: module.empty(3, dtype=kind),
    "empty_like": lambda module, kind: module.empty_like(module.zeros(2, 2, dtype=kind)),
    "empty_strided": lambda module, kind: module.empty_strided((2, 2), (1, 2), dtype=kind),
    "new_empty": lambda module, kind: module.zeros(1, dtype=kind).new_empty(2),
    "resize_": lambda module, kind: module.zeros(2, dtype=kind).resize_(4),
}


@pytest.fixture(autouse=True)
def only_deterministic():
    for module in (torch, backlight):
        module.use_deterministic_algorithms(True)
    yield
    for module in (torch, backlight):
        module.use_deterministic_algorithms(False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_new_memory_is_filled_as_in_pytorch(name):
    for kind in KINDS:
        expected, found = (PROGRAMS[name](module, getattr(module, kind)) for module in (torch, backlight))
        assert str(found.tolist()) == str(expected.tolist()), kind


def test_the_filling_can_be_switched_off_in_a_program():
    with torch_names():
        import torch as stand_in
        import torch.utils.deterministic as switch

        assert stand_in.utils.deterministic is switch
        assert switch.fill_uninitialized_memory is True
        stand_in.utils.deterministic.fill_uninitialized_memory = False
        try:
            assert not backlight.settings.fills_memory()
        finally:
            switch.fill_uninitialized_memory = True
    assert backlight.settings.fills_memory()
