"""PyTorch's own test samples (OpInfo), drawn without the search that PyTorch does in the stack for each.

For each sample PyTorch looks for a unittest.TestCase among its callers, and reads their source for that: under pytest
that takes 40 ms a sample, longer than to compare it. There is no TestCase here.
"""

import functools
import random
import warnings

import numpy as np
import torch


@functools.cache
def op_database() -> tuple:
    """Return all of PyTorch's entries, those without a gradient too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal import common_utils
        from torch.testing._internal.common_methods_invocations import op_db
        from torch.testing._internal.opinfo import core
    common_utils.extract_test_fn = core.extract_test_fn = lambda: None
    common_utils.set_rng_seed = _seed
    return tuple(op_db)


def _seed(seed: int) -> None:
    """Seed what samples are drawn from, on the CPU only: for other devices torch.manual_seed formats the stack."""
    random.seed(seed)
    np.random.seed(seed)
    torch.default_generator.manual_seed(seed)
