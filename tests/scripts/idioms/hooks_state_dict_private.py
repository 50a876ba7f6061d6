"""`_register_state_dict_hook`, `_register_load_state_dict_pre_hook` and their dictionaries."""

import torch
from torch import nn


class Old(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self._register_load_state_dict_pre_hook(self.rename)
        self._register_state_dict_hook(self.stamp)

    def rename(self, state, prefix, metadata, strict, missing, unexpected, errors):
        print("rename", prefix, sorted(state), metadata.get("version"), strict)
        if prefix + "gamma" in state:
            state[prefix + "weight"] = state.pop(prefix + "gamma")

    @staticmethod
    def stamp(module, state, prefix, metadata):
        state[prefix + "stamp"] = torch.tensor(7)
        return state


model = nn.Sequential(Old())
print(len(model[0]._state_dict_hooks), len(model[0]._load_state_dict_pre_hooks))
print(sorted(model.state_dict()))
print(model.load_state_dict({"0.gamma": torch.zeros(2)}))
print(model[0].weight.tolist())


class WithModule(nn.Linear):
    def __init__(self):
        super().__init__(1, 1)
        self._register_load_state_dict_pre_hook(self.look, with_module=True)

    def look(self, module, state, prefix, *rest):
        print(module is self, prefix, len(rest))


layer = WithModule()
layer.load_state_dict(layer.state_dict())
replaced = nn.Linear(1, 1)
replaced._register_state_dict_hook(lambda module, state, prefix, metadata: {prefix + "all": 1})
print(replaced.state_dict())
