"""The printed form and defaults of optimizers, and groups added late."""

import torch

first, second = torch.nn.Parameter(torch.ones(1)), torch.nn.Parameter(torch.ones(1))
optimizer = torch.optim.AdamW([first], lr=0.5)
optimizer.add_param_group({"params": [second], "lr": 0.25})
print(optimizer)
print(sorted(optimizer.defaults), len(optimizer.state))
for kind in (torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.LBFGS):
    print(kind([first]))
sgd = torch.optim.SGD([("first", first), ("second", second)], lr=1)
print(sgd.param_groups[0]["param_names"], torch.optim.Optimizer.__name__, isinstance(sgd, torch.optim.Optimizer))
print(torch.optim.SGD.step.__name__, hasattr(torch.optim.SGD.step, "hooked"))


class Signs(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad.sign(), alpha=-group["lr"])
                    self.state[p]["seen"] = self.state[p].get("seen", 0) + 1


signs = Signs([first], lr=0.1)
signs.register_step_post_hook(lambda opt, args, kwargs: print("stepped", args[1:], kwargs))
first.grad = torch.ones(1)
signs.step()
print(first.item(), signs.state_dict())
