"""`torch._check` and its kin, and assertions."""

import torch
from said import error

for call in (
    lambda: torch._check(True),
    lambda: torch._check(False, lambda: "own message"),
    lambda: torch._check(False),
    lambda: torch._check_value(False, lambda: "a value"),
    lambda: torch._check_type(False, lambda: "a kind"),
    lambda: torch._check_index(False, lambda: "an index"),
    lambda: torch._check_not_implemented(False, lambda: "not yet"),
    lambda: torch._check_with(KeyError, False, lambda: "a key"),
    lambda: torch._check(1),
    lambda: torch._check_is_size(3),
    lambda: torch._check_is_size(-3),
    lambda: torch._assert(torch.tensor(True), "no"),
    lambda: torch._assert(False, "said"),
    lambda: torch._check_tensor_all(torch.tensor([True, False]), lambda: "of a tensor"),
    lambda: torch._assert_async(torch.tensor(True)),
):
    try:
        call()
        print("fine")
    except Exception as problem:
        print(error(problem))
