"""Public hooks on `state_dict` and `load_state_dict`."""

from said import error
from torch import nn

model = nn.Sequential(nn.Linear(1, 1), nn.BatchNorm1d(1))
log = []
model.register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append(("pre", prefix, keep_vars)))
after = model.register_state_dict_post_hook(lambda module, state, prefix, meta: log.append(("post", len(state))))
before = model[0].register_load_state_dict_pre_hook(
    lambda module, state, prefix, meta, strict, missing, unexpected, errors: log.append(("load", prefix, len(state)))
)
done = model.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
state = model.state_dict()
del state["0.bias"]
print(model.load_state_dict(state), log)
print(
    len(model._state_dict_pre_hooks), len(model._load_state_dict_post_hooks), len(model[0]._load_state_dict_pre_hooks)
)
for handle in (after, before, done):
    handle.remove()
try:
    model.load_state_dict(state)
except RuntimeError as problem:
    print(problem)
model.register_state_dict_post_hook(lambda module, state, prefix, meta: state)
try:
    model.state_dict()
except RuntimeError as problem:
    print(error(problem))
