"""Hooks of every kind on random graphs are called in PyTorch's order, with PyTorch's gradients."""

import random
import threading
import warnings

import pytest
import torch

import backlight

SIDES = pytest.mark.parametrize("lib", [torch, backlight], ids=["torch", "backlight"])
MAKERS = {
    "mul": lambda lib, a, b: a * b,
    "add": lambda lib, a, b: a + b,
    "sub": lambda lib, a, b: a - b * 2,
    "tanh": lambda lib, a, b: a.tanh(),
    "split": lambda lib, a, b: lib.cat(a.split(1)[::-1]),
    "where": lambda lib, a, b: lib.where(a > b, a, b * 3),
    "both": lambda lib, a, b: a * a + b,
    "view": lambda lib, a, b: a.reshape(2, 1).expand(2, 2).sum(1),
}


class Trace:
    """A random program on one library: the seed alone decides what it does."""

    def __init__(self, lib, seed: int):
        self.lib, self.draw, self.log, self.handles = lib, random.Random(seed), [], []
        self.tensors = [
            lib.tensor([0.5 + n, -1.5 + n], dtype=lib.float64, requires_grad=n != 2)
            for n in range(self.draw.randint(2, 4))
        ]
        for _ in range(self.draw.randint(3, 8)):
            name = self.draw.choice(sorted(MAKERS))
            made = MAKERS[name](lib, self.draw.choice(self.tensors), self.draw.choice(self.tensors))
            self.tensors.append(made)
            if made.requires_grad and self.draw.random() < 0.25:
                self.hook_on(made)
                made.mul_(2)
        for tensor in self.tensors:
            while tensor.requires_grad and self.draw.random() < 0.6:
                self.hook_on(tensor)
        self.several()

    def told(self, name: str, grads) -> None:
        grads = grads if isinstance(grads, (tuple, list)) else [grads]
        self.log.append((name, [None if g is None else [f"{v:.6g}" for v in g.flatten().tolist()] for g in grads]))

    def hook_on(self, tensor) -> None:
        """Put a random hook on a tensor or its node."""
        kind, name = self.draw.choice(["tensor", "tensor", "pre", "post", "retain", "leaf"]), f"{len(self.handles)}"
        factor, removed = self.draw.choice([None, None, 2, 3]), self.draw.random() < 0.15
        node = tensor.grad_fn
        if kind == "retain" or (kind == "leaf" and node is not None):
            tensor.retain_grad()
            self.handles.append(None)
            return
        if node is None:
            node = tensor.view_as(tensor).grad_fn.next_functions[0][0]
            self.keep = [*getattr(self, "keep", []), node]
        place = len(self.handles)
        self.handles.append(None)

        def hook(*seen):
            for number, grads in enumerate(seen):
                self.told(f"{kind} {name}.{number}", grads)
            if removed and self.handles[place] is not None:
                self.handles[place].remove()
            if factor is None or kind == "leaf":
                return None
            first = seen[0]
            return first * factor if kind == "tensor" else tuple(None if g is None else g * factor for g in first)

        if kind == "leaf":
            post = tensor.register_post_accumulate_grad_hook
            self.handles[place] = post(lambda leaf: self.told(f"leaf {name}", leaf.grad))
        else:
            register = {"tensor": tensor.register_hook, "pre": node.register_prehook, "post": node.register_hook}[kind]
            self.handles[place] = register(hook)

    def several(self) -> None:
        """Put a hook on several tensors."""
        able = [one for one in self.tensors if one.requires_grad]
        register = self.lib.autograd.graph.register_multi_grad_hook
        chosen = self.draw.sample(able, min(3, len(able)))
        self.handles.append(register(chosen, lambda grads: self.told("all", grads)))
        self.handles.append(register(chosen, lambda grad: self.told("any", grad), mode="any"))

    def run(self) -> list:
        """Run several backwards."""
        able = [one for one in self.tensors[-4:] if one.requires_grad and one.grad_fn is not None]
        for turn in range(3):
            if not able:
                break
            self.log.append(turn)
            root = self.draw.choice(able).sum()
            leaves = [one for one in self.tensors if one.requires_grad and one.is_leaf]
            kind = self.draw.choice(["plain", "plain", "inputs", "recorded"])
            chosen = self.draw.sample(leaves, 1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    self.backward(root, kind, chosen)
                except RuntimeError as problem:  # what was saved has been written to
                    self.log.append(str(problem)[:60])
                    break
                for one in self.tensors:
                    self.told("grad", one.grad)
                    one.grad = one.grad.detach() if one.grad is not None else None
            if self.draw.random() < 0.3:
                live = [handle for handle in self.handles if handle is not None]
                self.draw.choice(live).remove()
        return self.log

    def backward(self, root, kind: str, chosen: list) -> None:
        if kind == "inputs":
            root.backward(inputs=chosen, retain_graph=True)
        else:
            root.backward(retain_graph=True, create_graph=kind == "recorded")


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_all_hooks_are_called_in_pytorchs_order(first):
    for seed in range(first, first + 100):
        expected, found = (Trace(lib, seed).run() for lib in (torch, backlight))
        assert found == expected, f"seed {seed}"


def start(lib):
    a, b = (lib.tensor(values, requires_grad=True) for values in ([1.0, 2.0], [3.0, 4.0]))
    return a, b, a * b, a * b


def lists(grads) -> list:
    return [None if one is None else one.tolist() for one in grads]


@SIDES
def test_a_hook_on_several_waits_for_those_that_the_backward_reaches(lib):
    a, b, c, d = start(lib)
    log = []
    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c, d), lambda grads: log.append(lists(grads)))
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=(a,), retain_graph=True)
    (c + d).sum().backward(retain_graph=True)
    handle.remove()
    c.sum().backward()
    assert log == [
        [[3, 4], [1, 2], [1, 1], None],
        [[3, 4], None, [1, 1], None],
        [[6, 8], [2, 4], [1, 1], [1, 1]],
    ]


@SIDES
def test_a_hook_on_any_of_several_sees_the_first_gradient_of_each_backward(lib):
    a, _, c, d = start(lib)
    log = []
    with lib.autograd.graph.register_multi_grad_hook(
        (a, lib.ones(2), c), lambda grad: log.append(grad.tolist()), mode="any"
    ):
        c.sum().backward(retain_graph=True)
        d.sum().backward(retain_graph=True)
    c.sum().backward()
    assert log == [[1, 1], [3, 4]]


@SIDES
def test_a_hook_on_several_may_remove_itself(lib):
    a, b, c, _ = start(lib)
    log = []

    def once(grads):
        log.append(lists(grads))
        handle.remove()

    handle = lib.autograd.graph.register_multi_grad_hook((a, b, c), once)
    c.sum().backward(retain_graph=True)
    c.sum().backward()
    assert len(log) == 1


@SIDES
def test_a_backward_in_a_hook_on_several_is_counted_for_itself(lib):
    a, _, c, d = start(lib)
    log, other = [], (a * 5).sum()

    def nested(grads):
        log.append(lists(grads))
        if len(log) < 3:
            with lib.enable_grad():
                other.backward(retain_graph=True)

    lib.autograd.graph.register_multi_grad_hook((a, d), nested)
    (c + d).sum().backward()
    assert log == [[[6, 8], [1, 1]], [[5, 5], None], [[5, 5], None]]


@SIDES
def test_threads_do_not_disturb_each_others_hooks_on_several(lib):
    a, b, _, _ = start(lib)
    log = []
    lib.autograd.graph.register_multi_grad_hook((a, b), lambda grads: log.append(lists(grads)))

    def work():
        for _ in range(20):
            (a * b).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert log == [[[3, 4], [1, 2]]] * 80


@pytest.mark.parametrize("mode", ["all", "some"])
def test_what_cannot_be_waited_for_is_refused_as_in_pytorch(mode):
    problems = []
    for lib in (torch, backlight):
        a, *_ = start(lib)
        with pytest.raises((AssertionError, ValueError)) as problem:
            lib.autograd.graph.register_multi_grad_hook((a, lib.ones(2)), print, mode=mode)
        problems.append(str(problem.value))
    assert problems[1].startswith(problems[0])


class ModuleTrace:
    """A random small network on one library, with hooks of every kind on its modules and on all modules."""

    def __init__(self, lib, seed: int):
        self.lib, self.draw, self.log, self.handles = lib, random.Random(seed), [], []
        nn, trace = lib.nn, self

        class Fails(nn.Module):
            def forward(self, x):
                if trace.failing:
                    raise KeyError("failing")
                return x * 2

        self.failing = False
        kinds = [nn.Tanh, nn.Identity, Fails, lambda: nn.Sequential(nn.Tanh(), nn.Identity())]
        self.model = nn.Sequential(*(self.draw.choice(kinds)() for _ in range(self.draw.randint(1, 4))))
        self.modules = list(self.model.modules())
        for number in range(self.draw.randint(2, 10)):
            self.hook(number)

    def told(self, name: str, module, *values) -> None:
        found = []
        for value in values:
            several = value if isinstance(value, tuple) else (value,)
            found.append([one if one is None else [f"{v:.6g}" for v in one.flatten().tolist()] for one in several])
        self.log.append((name, self.modules.index(module), found))

    def hook(self, number: int) -> None:
        """Register one hook."""
        kind = self.draw.choice(["before", "after", "grads", "all grads"])
        factor, everywhere = self.draw.choice([None, None, 2, 3]), self.draw.random() < 0.3
        removed, prepend = self.draw.random() < 0.1, self.draw.random() < 0.3
        always = kind == "after" and self.draw.random() < 0.4
        name = f"{kind} {number}"

        def hook(module, *values):
            self.told(name, module, *(() if always and values[-1] is None else values))
            if removed:
                self.handles[number].remove()
            first = values[-1] if kind == "after" else values[0]
            if factor is None or first is None:
                return None
            if isinstance(first, tuple):
                return tuple(None if one is None else one * factor for one in first)
            return first * factor

        options = {"always_call": True} if always else {}
        if everywhere:
            space = self.lib.nn.modules.module
            names = {
                "before": "forward_pre",
                "after": "forward",
                "grads": "full_backward_pre",
                "all grads": "full_backward",
            }
            register = getattr(space, f"register_module_{names[kind]}_hook")
        else:
            module = self.draw.choice(self.modules)
            names = {
                "before": "forward_pre",
                "after": "forward",
                "grads": "full_backward_pre",
                "all grads": "full_backward",
            }
            register = getattr(module, f"register_{names[kind]}_hook")
            options["prepend"] = prepend
        self.handles.append(register(hook, **options))

    def run(self) -> list:
        """Run forward and backward, once with a module that fails."""
        try:
            for turn in range(3):
                self.log.append(turn)
                self.failing = turn == 1
                x = self.lib.tensor([0.5, -1.5], dtype=self.lib.float64, requires_grad=True)
                try:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        self.model(x).sum().backward()
                except KeyError as problem:
                    self.log.append(str(problem))
                self.log.append(None if x.grad is None else [f"{v:.6g}" for v in x.grad.tolist()])
        finally:
            for handle in self.handles:
                handle.remove()
        return self.log


def test_module_hooks_are_called_in_pytorchs_order():
    for seed in range(150):
        expected, found = (ModuleTrace(lib, seed).run() for lib in (torch, backlight))
        assert found == expected, f"seed {seed}"
