"""What views of a channels_last tensor allow and refuse, and the errors of memory formats that do not fit."""

import torch


def show(name, make):
    try:
        made = make()
    except Exception as problem:
        kind = next(one.__name__ for one in type(problem).__mro__ if one.__module__ == "builtins")
        print(f"{name}: {kind}: {str(problem).splitlines()[0].split('; ')[0]}")
    else:
        print(f"{name}: {tuple(made.shape)} {made.stride()}" if isinstance(made, torch.Tensor) else f"{name}: {made}")


x = torch.arange(24.0).reshape(1, 2, 3, 4)
last = x.contiguous(memory_format=torch.channels_last)
print(last)
print(torch.equal(x, last), x.stride(), last.stride(), last.is_contiguous())
show("view", lambda: last.view(1, -1))
show("reshape", lambda: last.reshape(1, -1))
show("view of planes", lambda: last.view(1, 2, 12))
show("permuted to rows", lambda: last.permute(0, 2, 3, 1).view(-1, 2))
show("is", lambda: last.permute(0, 2, 3, 1).is_contiguous())
show("flatten", lambda: last.flatten(1))
show("contiguous view", lambda: last.contiguous().view(-1))
for name in ("sum", "mean", "argmax", "softmax", "cumsum", "unsqueeze", "select"):
    show(name, lambda name=name: getattr(last, name)(1) if name != "select" else last.select(1, 0))
show("expand", lambda: last[:, :1].expand(2, 2, 3, 4))
show("permuted elementwise", lambda: x.permute(3, 1, 0, 2).exp() + 1)
show("two orders", lambda: x + last)
show("two orders, the other way", lambda: last + x)
show("a vector of channels", lambda: torch.ones(2, 1, 1) + last)
show("cat", lambda: torch.cat([last, last]))
show("cat of two orders", lambda: torch.cat([last, x]))
show("stack", lambda: torch.stack([last, last], 1))
show("where", lambda: torch.where(last > 3, last, 0.0))
show("index", lambda: last[:, [1, 0]])
show("in place", lambda: last.clone().add_(1).mul_(2))
show("out", lambda: torch.add(last, 1, out=torch.empty(0)).shape)
show("sort", lambda: last.sort(-1).values)

flat = torch.ones(2, 3)
formats = (torch.channels_last, torch.channels_last_3d)
for wanted in formats:
    show("contiguous", lambda w=wanted: flat.contiguous(memory_format=w))
    show("clone", lambda w=wanted: flat.clone(memory_format=w))
    show("to", lambda w=wanted: flat.to(memory_format=w))
    show("empty", lambda w=wanted: torch.empty(2, 3, memory_format=w))
    show("zeros_like", lambda w=wanted: torch.zeros_like(flat, memory_format=w))
    show("is_contiguous", lambda w=wanted: flat.is_contiguous(memory_format=w))
    show("module", lambda w=wanted: torch.nn.Linear(2, 2).to(memory_format=w).weight)
show("resize_", lambda: torch.ones(6).resize_(1, 2, 3, 1, memory_format=torch.channels_last))
show("contiguous of preserve", lambda: flat.t().contiguous(memory_format=torch.preserve_format))
show("empty of preserve", lambda: torch.empty(2, memory_format=torch.preserve_format))
show("no format", lambda: flat.contiguous(memory_format=3))
