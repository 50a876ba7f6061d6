"""Layers that override `_save_to_state_dict` and `_load_from_state_dict` with PyTorch's signature."""

import torch
from torch import nn


class Versioned(nn.Module):
    _version = 2

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.register_buffer("steps", torch.tensor(0))

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "note"] = "saved"

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        version = local_metadata.get("version", None)
        print("version", version, "strict", strict, local_metadata.get("assign_to_params_buffers"))
        if version is None or version < 2:
            state_dict.setdefault(prefix + "steps", torch.tensor(5))
        state_dict.pop(prefix + "note", None)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


model = nn.Sequential(Versioned(), nn.BatchNorm1d(1))
state = model.state_dict()
print(list(state), dict(state._metadata.items()))
print(model.load_state_dict(state))
plain = {
    "0.weight": torch.zeros(1),
    "1.weight": torch.ones(1),
    "1.bias": torch.ones(1),
    "1.running_mean": torch.ones(1),
    "1.running_var": torch.ones(1),
}
print(model.load_state_dict(plain, strict=False), model[0].steps.item())
print(model.load_state_dict(state, assign=True))
print(model.load_state_dict({}, strict=False))
