"""Wrong arguments to optimizers and their messages."""

import torch
from said import error

weights = torch.nn.Parameter(torch.ones(1))
for call in (
    lambda: torch.optim.SGD(weights, lr=0.1),
    lambda: torch.optim.SGD([], lr=0.1),
    lambda: torch.optim.SGD([weights], lr=-1),
    lambda: torch.optim.SGD([weights * 2], lr=0.1),
    lambda: torch.optim.SGD([{"params": [weights]}, {"params": [weights]}], lr=0.1),
    lambda: torch.optim.SGD([3], lr=0.1),
    lambda: torch.optim.SGD([weights], lr=0.1, nesterov=True),
    lambda: torch.optim.Adam([weights], betas=(1.0, 0.9)),
    lambda: torch.optim.Adam([weights], eps=-1),
    lambda: torch.optim.SGD([weights], lr=torch.tensor([0.1, 0.2])),
    lambda: torch.optim.SGD([weights]).load_state_dict({"state": {}, "param_groups": []}),
    lambda: torch.optim.LBFGS([{"params": [weights]}, {"params": [torch.nn.Parameter(torch.ones(1))]}]),
    lambda: torch.optim.SGD([weights]).add_param_group([weights]),
    lambda: torch.optim.Adam([weights], lr=torch.tensor(0.1), foreach=True),
):
    try:
        call()
        print("fine")
    except Exception as problem:
        print(error(problem))
