"""Random programs with nested checkpoints of both forms run on PyTorch and on backlight, and find no difference."""

import random
import warnings

import pytest
import torch
import torch.utils.checkpoint

import backlight
import backlight.utils.checkpoint

CHECKPOINT = {
    "torch": torch.utils.checkpoint.checkpoint,
    "backlight": backlight.utils.checkpoint.checkpoint,
}
KINDS = [
    "tanh",
    "square",
    "weight",
    "dropout",
    "hook",
    "write",
    "unrecorded",
    "detach",
    "view",
    "inner backward",
    "function",
]


def planned(draw: random.Random, depth: int = 3) -> list:
    """Return a random list of steps: (kind, a number), or a checkpoint with steps of its own."""
    steps = []
    for _ in range(draw.randint(1, 4)):
        kind = draw.choice([*KINDS, "checkpoint", "checkpoint"])
        if kind != "checkpoint":
            steps.append((kind, draw.random()))
        elif depth:
            options = {"use_reentrant": draw.random() < 0.25, "preserve_rng_state": draw.random() < 0.8}
            if not options["use_reentrant"]:
                options["early_stop"] = draw.random() < 0.8
            steps.append((kind, planned(draw, depth - 1), options))
    return steps


class Program:
    """One random program on one library: the seed alone decides what it does."""

    def __init__(self, lib, seed: int):
        self.lib, self.log = lib, []
        self.draw = random.Random(seed)
        self.plan = planned(self.draw)

        class Sine(lib.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                out = x.sin()
                ctx.save_for_backward(x, out)
                return out

            @staticmethod
            def backward(ctx, grad):
                x, out = ctx.saved_tensors
                return grad * x.cos() + 0 * out

        self.sine = Sine

    def told(self, *values) -> None:
        self.log.append([None if one is None else [f"{v + 0.0:.6g}" for v in one.flatten().tolist()] for one in values])

    def stepped(self, x, kind: str, number: float, place: tuple):
        """Return what one step makes of x."""
        lib, weight = self.lib, self.weight
        if kind == "hook" and x.requires_grad:
            x.register_hook(lambda grad: self.log.append(("hook", place)))
        if kind == "write":
            x = x * 1.5
            return x.mul_(2) if number < 0.5 else x.add_(weight)
        if kind == "unrecorded":
            with lib.no_grad():
                total = x.sum()
            return x + total * 0.01
        if kind == "inner backward" and x.requires_grad and number < 0.3:
            with lib.enable_grad():
                (slope,) = lib.autograd.grad((x * 2).tanh().sum(), x, retain_graph=True)
            return x + slope.detach()
        made = {
            "tanh": lambda: x.tanh(),
            "square": lambda: x * x,
            "weight": lambda: x * weight + weight.exp(),
            "dropout": lambda: lib.nn.functional.dropout(x, 0.4),
            "detach": lambda: x + x.detach() * 0.1,
            "view": lambda: x.view(2, 2).t().reshape(4),
            "function": lambda: self.sine.apply(x),
        }.get(kind)
        return x if made is None else made()

    def walked(self, steps: list, x, place: tuple = ()):
        """Run steps, and note each."""
        for number, (kind, what, *options) in enumerate(steps):
            here = (*place, number)
            self.log.append((here, kind, self.lib.is_grad_enabled()))
            if kind == "checkpoint":
                x = CHECKPOINT[self.lib.__name__](
                    lambda y, what=what, here=here: self.walked(what, y, here), x, **options[0]
                )
            else:
                x = self.stepped(x, kind, what, here)
        return x

    def run(self) -> list:
        """Run forward and backward; return all that was seen."""
        lib = self.lib
        lib.manual_seed(1)
        x = lib.tensor([0.1, -0.2, 0.3, 0.4], dtype=lib.float64, requires_grad=True)
        self.weight = lib.tensor([0.5, 0.6, -0.7, 0.8], dtype=lib.float64, requires_grad=True)
        try:
            y = self.walked(self.plan, x)
            self.told(y)
            self.differentiate(y, x)
        except RuntimeError as problem:
            self.log.append(str(problem).split("\n")[0][:70])
        self.told(x.grad, self.weight.grad, lib.rand(1))
        return self.log

    def differentiate(self, y, x) -> None:
        kind = self.draw.choice(["backward", "twice", "grad", "second"])
        if kind in ("backward", "twice"):
            y.sum().backward(retain_graph=kind == "twice")
            if kind == "twice":
                y.sum().backward()
            return
        slopes = self.lib.autograd.grad(y.sum(), [x, self.weight], create_graph=kind == "second", allow_unused=True)
        self.told(*slopes)
        again = [(one * one).sum() for one in slopes if one is not None and one.requires_grad]
        if again:
            sum(again).backward()


@pytest.mark.parametrize("first", range(0, 300, 100))
def test_programs_with_checkpoints_do_what_they_do_on_pytorch(first):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(first, first + 100):
            expected, found = (Program(lib, seed).run() for lib in (torch, backlight))
            assert found == expected, f"seed {seed}"
