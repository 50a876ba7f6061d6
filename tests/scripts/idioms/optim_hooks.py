"""Hooks of optimizers: on steps, on state dicts, and for all optimizers."""

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

layer = nn.Linear(1, 1)
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.9)
log = []
handles = [
    register_optimizer_step_pre_hook(lambda opt, args, kwargs: log.append(("all pre", len(args), kwargs))),
    register_optimizer_step_post_hook(lambda opt, args, kwargs: log.append(("all post", type(opt).__name__))),
    optimizer.register_step_pre_hook(lambda opt, args, kwargs: log.append("pre")),
    optimizer.register_step_post_hook(lambda opt, args, kwargs: log.append("post")),
    optimizer.register_state_dict_pre_hook(lambda opt: log.append("saving")),
    optimizer.register_state_dict_post_hook(lambda opt, state: {**state, "note": 1}),
    optimizer.register_state_dict_post_hook(lambda opt, state: log.append(("first", "note" in state)), prepend=True),
    optimizer.register_load_state_dict_pre_hook(
        lambda opt, state: {key: state[key] for key in ("state", "param_groups")}
    ),
    optimizer.register_load_state_dict_post_hook(lambda opt: log.append("loaded")),
]
layer(torch.ones(1, 1)).sum().backward()
optimizer.step()
state = optimizer.state_dict()
print(sorted(state), log)
log.clear()
optimizer.load_state_dict(state)
optimizer.step(lambda: torch.tensor(3.0))
optimizer.step()
print(log)
for handle in handles:
    handle.remove()
log.clear()
optimizer.step()
optimizer.load_state_dict(optimizer.state_dict())
print(log, sorted(optimizer.state_dict()))
print(len(optimizer._optimizer_step_pre_hooks), len(optimizer._optimizer_state_dict_post_hooks))
bad = optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
try:
    optimizer.step()
except RuntimeError as problem:
    print(str(problem)[-45:])
