"""PyTorch's files of distributions, and the names in them, are found under their paths."""

import importlib
import pkgutil

import pytest
import torch

import backlight
from backlight.torch_api.module_names import torch_names

FILES = [name for _, name, _ in pkgutil.iter_modules(torch.distributions.__path__, "torch.distributions.")]


def test_all_public_names_are_here():
    assert {*backlight.distributions.__all__} == {*torch.distributions.__all__}


@pytest.mark.parametrize("path", FILES)
def test_a_file_of_pytorchs_has_its_names(path):
    names = importlib.import_module(path).__all__
    with torch_names():
        ours = importlib.import_module(path)
        assert {name for name in names if hasattr(ours, name)} == {*names}


def test_usual_ways_to_import_them_give_the_same_classes():
    found = {}
    lines = [
        "import torch",
        "import torch.distributions as D",
        "from torch.distributions import Normal, constraints, kl_divergence",
        "from torch.distributions.categorical import Categorical",
        "from torch.distributions.multivariate_normal import MultivariateNormal",
        "from torch.distributions.transforms import TanhTransform",
        "from torch.distributions.utils import broadcast_all",
        "from torch.distributions.constraints import positive, _GreaterThan",
        "from torch.distributions.relaxed_bernoulli import LogitRelaxedBernoulli",
        "from torch.distributions.kl import register_kl, _KL_REGISTRY",
    ]
    with torch_names():
        exec("\n".join(lines), found)
    ours = backlight.distributions
    assert found["D"].Normal is found["Normal"] is found["torch"].distributions.Normal is ours.Normal
    assert found["Categorical"] is ours.Categorical
    assert found["MultivariateNormal"] is ours.MultivariateNormal
    assert found["constraints"].positive is found["positive"]
    assert isinstance(found["positive"], found["_GreaterThan"])


@pytest.mark.parametrize("name", [name for name in backlight.distributions.__all__ if name[0].isupper()])
def test_every_class_says_what_it_is(name):
    assert getattr(backlight.distributions, name).__doc__
