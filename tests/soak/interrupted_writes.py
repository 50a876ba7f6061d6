"""Writes and backwards that are interrupted, and what holds afterwards: no gradient is silently wrong."""

from collections.abc import Callable
from dataclasses import dataclass

import backlight as torch

CHANGED = "modified by an inplace operation"
FREED = "Trying to backward through the graph a second time"
START = [[0.5, 1.0, 2.0], [0.25, 1.5, 3.0]]


@dataclass(frozen=True)
class Interrupted:
    """What is prepared, what is interrupted, and what is wrong afterwards: lists of findings, empty if all is well."""

    prepare: Callable
    run: Callable
    wrong: Callable

    def after(self, interrupt: Callable) -> list[str]:
        """Prepare, let `interrupt` run it, and return what is wrong then."""
        state = self.prepare()
        interrupt(lambda: self.run(state))
        return self.wrong(state)


def close(found, wanted) -> bool:
    """Tell whether a gradient is there and has these numbers."""
    return found is not None and bool((found - torch.as_tensor(wanted)).abs().max() < 1e-5)


def backward(out) -> str | None:
    """Differentiate a sum; return why that was refused."""
    try:
        out.sum().backward()
    except RuntimeError as problem:
        return str(problem)
    return None


# --- recorded writes: the gradient is that of the value ---


def written(write: Callable, shown: Callable, retain: bool = False) -> Interrupted:
    """Interrupt a write to z = 1·x of which there is a view: z becomes x times a number at each place, or 0."""

    def prepare():
        x = torch.tensor(START, requires_grad=True)
        z = x * 1
        if retain:
            z.retain_grad()
        return x, z, shown(z)

    def wrong(state):
        x, z, view = state
        found = []
        for name, one, leaf in (("tensor", z, x), ("view", view, shown(x.detach()))):
            factors = (one.detach() / leaf.detach()).clone()
            (slope,) = torch.autograd.grad(one.sum(), [x], retain_graph=True)
            if not close(shown(slope) if one is view else slope, factors):
                found.append(f"the {name} is x times {factors.tolist()}, its gradient {slope.tolist()}")
        if retain:
            z.grad = None
            z.sum().backward()
            if not close(z.grad, torch.ones(2, 3)):
                found.append(f"the retained gradient of a sum is {z.grad}")
        return found

    return Interrupted(prepare, lambda state: write(state[1], state[2]), wrong)


# --- writes that are not recorded: what was saved is refused ---


def overwritten(write: Callable) -> Interrupted:
    """Interrupt a write to z, which z² had saved."""

    def prepare():
        x = torch.tensor(START, requires_grad=True)
        z = x * 1
        return x, z, z * z, z.exp()

    def run(state):
        with torch.no_grad():
            write(state[1])

    def wrong(state):
        x, _, square, _ = state
        refused = backward(square)
        if refused is None and not close(x.grad, 2 * torch.tensor(START)):
            return [f"the gradient of Σx² is {x.grad.tolist()}"]
        return [] if refused is None or CHANGED in refused else [refused]

    return Interrupted(prepare, run, wrong)


# --- optimizers ---


def stepped(make: Callable) -> Interrupted:
    """Interrupt the first step of an optimizer, after which it must go on, and what was saved be refused."""

    def prepare():
        params = [torch.tensor(START, requires_grad=True), torch.tensor(START, requires_grad=True)]
        squares = [param * param for param in params]
        optimizer = make(params)
        for param in params:
            param.grad = torch.ones(2, 3)
        return params, squares, optimizer

    def wrong(state):
        params, squares, optimizer = state
        found = []
        for param, square in zip(params, squares):
            param.grad = None
            refused = backward(square)
            if refused is None and not close(param.grad, 2 * torch.tensor(START)):
                found.append(f"the gradient of Σp² is {param.grad.tolist()}")
            elif refused is not None and CHANGED not in refused:
                found.append(refused)
            param.grad = torch.ones(2, 3)
        optimizer.step()  # a state that is begun in part would raise
        names = [set(optimizer.state[param]) for param in params]
        found += [f"states of {names}"] * (names[0] != names[1])
        found += ["a parameter is not finite"] * (not all(torch.isfinite(param).all() for param in params))
        return found

    return Interrupted(prepare, lambda state: state[2].step(), wrong)


# --- backward, twice ---


class Squared(torch.autograd.Function):
    """x²."""

    @staticmethod
    def forward(ctx, x):
        """Return the square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        """Return 2x · grad."""
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def differentiated(compute: Callable, slope: Callable, hooked: bool = False) -> Interrupted:
    """Interrupt a backward, and repeat it: it works, and each leaf has its gradient once or twice, or it is refused."""

    def prepare():
        leaves = [torch.tensor(START, requires_grad=True), torch.tensor(START, requires_grad=True)]
        if hooked:
            leaves[0].register_hook(lambda grad: grad.clone())
        return leaves, compute(*leaves).sum()

    def wrong(state):
        leaves, out = state
        wanted = [slope(leaf.detach()) for leaf in leaves]
        found = []
        before = [leaf.grad is not None for leaf in leaves]
        refused = backward(out)
        if refused is not None and FREED not in refused:
            found.append(refused)
        for leaf, once, had in zip(leaves, wanted, before):
            times = [1 + had] if refused is None else [0, 1, 2]
            if not any(close(leaf.grad, once * n) if n else leaf.grad is None for n in times):
                found.append(f"a gradient is {leaf.grad}, not {times} times {once.tolist()}; {refused}")
        return found

    return Interrupted(prepare, lambda state: state[1].backward(), wrong)


def _partly_written(a, b):
    c = a * b.exp() * 0 + a * 2 + b * 2
    c[0].mul_(1)
    return c


CASES = {
    "mul_": written(lambda z, view: z.mul_(3), lambda z: z[0]),
    "mul_ of a retained gradient": written(lambda z, view: z.mul_(3), lambda z: z[0], True),
    "mul_ of a view": written(lambda z, view: view.mul_(3), lambda z: z[0]),
    "mul_ of a transposed view": written(lambda z, view: view.mul_(3), lambda z: z.t()),
    "zero_": written(lambda z, view: z.zero_(), lambda z: z[:, 1]),
    "zero_ of a view": written(lambda z, view: view.zero_(), lambda z: z[:, 1]),
    "copy_": written(lambda z, view: z.copy_(torch.zeros(2, 3)), lambda z: z[1]),
    "an assignment": written(lambda z, view: z.__setitem__(0, 0.0), lambda z: z[:, 1:]),
    "masked_fill_": written(lambda z, view: z.masked_fill_(z > 1, 0), lambda z: z[0]),
    "add_ unrecorded": overwritten(lambda z: z.add_(1)),
    "exp_ unrecorded": overwritten(lambda z: z.exp_()),
    "fill_ unrecorded": overwritten(lambda z: z.fill_(7)),
    "copy_ unrecorded": overwritten(lambda z: z.copy_(torch.ones(2, 3))),
    "an assignment unrecorded": overwritten(lambda z: z.__setitem__((0, 1), 5.0)),
    "a mask unrecorded": overwritten(lambda z: z.__setitem__(z > 1, 5.0)),
    "indices unrecorded": overwritten(lambda z: z.__setitem__(torch.tensor([1]), torch.ones(3))),
    "out= unrecorded": overwritten(lambda z: torch.add(torch.ones(2, 3), 1, out=z)),
    "normal_ unrecorded": overwritten(lambda z: z.normal_()),
    "a view unrecorded": overwritten(lambda z: z[1].mul_(4)),
    **{
        f"a step of {name}": stepped(make)
        for name, make in {
            "SGD": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
            "Adam": lambda params: torch.optim.Adam(params, lr=0.1, amsgrad=True),
            "NAdam": lambda params: torch.optim.NAdam(params),
            "ASGD": lambda params: torch.optim.ASGD(params),
            "Rprop": lambda params: torch.optim.Rprop(params),
            "RMSprop": lambda params: torch.optim.RMSprop(params, momentum=0.9, centered=True),
            "Adafactor": lambda params: torch.optim.Adafactor(params),
            "Adagrad": lambda params: torch.optim.Adagrad(params),
        }.items()
    },
    "a backward": differentiated(lambda a, b: a * a + b * b, lambda x: 2 * x),
    "a backward with a hook": differentiated(lambda a, b: a * a + b * b, lambda x: 2 * x, True),
    "a backward of a Function": differentiated(lambda a, b: Squared.apply(a) + Squared.apply(b), lambda x: 2 * x),
    "a backward of saved outputs": differentiated(lambda a, b: a.exp() + b.exp(), lambda x: x.exp()),
    "a backward of a written view": differentiated(_partly_written, lambda x: 0 * x + 2),
}


# --- what no interrupt may touch ---


def trained() -> tuple:
    """Return a model with gradients, and its optimizer after a step: none of the programs touches them."""
    made = torch.nn.Linear(3, 2)
    optimizer = torch.optim.Adam(made.parameters())
    made(torch.ones(2, 3)).square().sum().backward()
    optimizer.step()
    return made, optimizer


KEPT = trained()


def numbers_kept() -> list:
    """Return all numbers of the model that is kept: values, versions, gradients and the optimizer's state."""
    made, optimizer = KEPT
    kept = [(one.tolist(), one._version, one.grad.tolist(), one.grad._version) for one in made.parameters()]
    return [*kept, str(optimizer.state_dict())]
