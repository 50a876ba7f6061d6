"""State dicts of older versions lack options: defaults are filled in."""

import torch
from torch import nn

for kind in (
    torch.optim.SGD,
    torch.optim.Adam,
    torch.optim.AdamW,
    torch.optim.RMSprop,
    torch.optim.Adagrad,
    torch.optim.Adadelta,
    torch.optim.Adamax,
    torch.optim.NAdam,
    torch.optim.RAdam,
    torch.optim.Rprop,
    torch.optim.ASGD,
):
    layer = nn.Linear(1, 1)
    optimizer = kind(layer.parameters(), lr=0.1)
    layer(torch.ones(1, 1)).sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    for group in state["param_groups"]:
        for newer in (
            "maximize",
            "foreach",
            "differentiable",
            "fused",
            "capturable",
            "amsgrad",
            "nesterov",
            "centered",
            "decoupled_weight_decay",
        ):
            group.pop(newer, None)
    for entry in state["state"].values():
        if "step" in entry:
            entry["step"] = int(entry["step"])
    fresh = kind(layer.parameters(), lr=0.2)
    fresh.load_state_dict(state)
    layer(torch.ones(1, 1)).sum().backward()
    fresh.step()
    print(
        kind.__name__,
        sorted(fresh.param_groups[0]),
        [type(e["step"]).__name__ for e in fresh.state.values() if "step" in e],
    )
