"""Every function of PyTorch's namespaces for tensors is here, or stands in torch_names_missing.txt with a reason."""

import importlib
import warnings

import pytest
import torch
from torch_namespaces import GROUPS

import backlight
from backlight.torch_api.module_names import OURS, torch_names

SPACES = ["", "Tensor", "special", "nn.functional", "linalg", "fft", "masked"]


def names_of(space: str) -> tuple[set[str], object]:
    """Return the names of PyTorch's public functions in a namespace, and backlight's namespace."""
    theirs, ours = torch, backlight
    for part in filter(None, space.split(".")):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    public = [name for name in dir(theirs) if not name.startswith("_")]
    return {name for name in public if callable(found := getattr(theirs, name)) and not isinstance(found, type)}, ours


@pytest.mark.parametrize("space", SPACES)
def test_every_name_is_here_or_has_a_reason(space):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public, ours = names_of(space)
        absent = {name for name in public if not hasattr(ours, name)}
    listed = {name for where, _, names in GROUPS if where == f"torch.{space}".rstrip(".") for name in names.split()}
    assert not absent - listed, f"neither here nor listed: {sorted(absent - listed)}"


@pytest.mark.parametrize("space", SPACES)
def test_what_is_listed_as_missing_is_missing(space):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        public, ours = names_of(space)
        present = {name for name in public if hasattr(ours, name)}
    listed = [name for where, _, names in GROUPS if where == f"torch.{space}".rstrip(".") for name in names.split()]
    assert not present & {*listed}, f"here, and listed as missing: {sorted(present & {*listed})}"
    assert {*listed} <= public, f"PyTorch has no such names: {sorted({*listed} - public)}"
    assert len(listed) == len({*listed}), "a name is listed twice"


def test_every_group_has_a_reason():
    assert all(len(reason) > 10 for _, reason, _ in GROUPS)


# Names of backlight's own, and those that PyTorch has without exporting them.
ASKED = {"is_anomaly_enabled", "is_anomaly_check_nan_enabled"}
OWN = {
    "torch.autograd": {"GradcheckError", "SavedTensor", "is_multithreading_enabled"} | ASKED,
    "torch.autograd.anomaly_mode": ASKED,
    "torch.autograd.graph": {"Path", "Saved", "nodes", "path", "saved"},
    "torch.autograd.forward_ad": {"set_fwd_grad_enabled"},
    "torch.autograd.variable": {"variable"},
    "torch.fft": {"hfft2", "hfftn", "ihfft2", "ihfftn"},
    "torch.func": {"value_and_grad"},
    "torch.nn.utils.fusion": {"skip_init"},
    "torch.nn.utils.clip_grad": {"clip_grads_with_norm_", "get_total_norm"},
    "torch.optim.adam": {"AdamW"},
    "torch.optim.adamw": {"Adam"},
    "torch.optim.lr_scheduler": {"EPOCH_DEPRECATION_WARNING"},  # there, and in no __all__
    "torch.overrides": {"DisableTorchFunction", "DisableTorchFunctionSubclass", "answer_while_alive", "asked_about"}
    | {"dispatch_while_alive"}
    | set(dir(torch.overrides)),
    "torch.random": {"Generator", "default_generator"},
    "torch.serialization": {"load_file", "save_file"},
    "torch.utils.dlpack": {"to_dlpack"},
}


def exported(name: str) -> set[str]:
    module = importlib.import_module(name)
    return {public for public in module.__all__ if hasattr(module, public)}  # torch.sparse lists one that it lacks


def test_an_import_of_all_names_brings_none_that_pytorchs_does_not():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [
            name for name in OURS if name.startswith("torch.") and hasattr(importlib.import_module(name), "__all__")
        ]
        theirs = {name: exported(name) for name in names}
    with torch_names():
        ours = {name: exported(name) for name in names}
    more = {name: ours[name] - theirs[name] - OWN.get(name, set()) for name in names}
    assert not {name: sorted(found) for name, found in more.items() if found}


def test_switches_of_cudnn_are_off_at_first_as_in_pytorch():
    names = ("benchmark", "deterministic")
    theirs = [getattr(torch.backends.cudnn, name) for name in names]
    with torch_names():
        cudnn = importlib.import_module("torch.backends.cudnn")
        assert [getattr(cudnn, name) for name in names] == theirs == [False, False]
