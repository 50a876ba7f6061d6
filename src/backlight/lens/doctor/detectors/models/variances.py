"""Samples that are scaled by a variance where the standard deviation belongs.

NOTE [Which of the two exp(s) is]
A divergence from a normal distribution says what s is: exp(s) - s stands in it if s is the logarithm of a variance,
exp(2s) - 2s if it is one of a deviation. What multiplies the noise of a sample is the deviation, the root of the
former. It is a mistake if it is the same power of e.
"""

from itertools import islice

from backlight.dispatch.observers import Call
from backlight.lens.doctor.detector import Detector
from backlight.lens.doctor.detectors.models.log_scales import (
    KEEPS,
    argument_of,
    factor_within,
    kind_of,
    terms_of,
    users_of,
)
from backlight.lens.doctor.graph import Node, Tensor, is_computed, nodes_behind
from backlight.lens.doctor.places import brief, place_of_node
from backlight.lens.doctor.weak_id_dict import WeakIdDict
from backlight.lens.records.record import Place

DRAWS = {"randn", "randn_like", "normal"}
BACKWARDS, TWICE, DEEP, CLOSE = 6, 2, 3000, 1e-3


class Variances(Detector):
    """Finds them (see NOTE [Which of the two exp(s) is])."""

    calls = frozenset({*DRAWS, "mul", "mean"})

    def __init__(self, watch):
        super().__init__(watch)
        self.drawn: WeakIdDict[None] = WeakIdDict()  # noise
        self.products: set[int] = set()  # keys of the nodes of what is multiplied by noise
        self.sizes: dict[int, tuple] = {}
        self.looked = 0
        self.times: dict[tuple, int] = {}

    def called(self, call: Call) -> None:
        """Note what noise multiplies."""
        name, inputs, out = self.watch.name, self.watch.inputs, call.out
        if self.looked >= BACKWARDS or not self.engine.is_tensor(out):
            return
        if name in DRAWS:
            self.drawn[out] = None
        elif is_computed(out) and inputs:
            key = self.engine.key_of(self.engine.node_of(out)[0])
            if name == "mean":
                self.sizes[key] = tuple(inputs[0].shape), inputs[0].numel() // max(out.numel(), 1)
            elif any(one in self.drawn for one in inputs):
                self.products.add(key)

    def backward_called(self, tensor: Tensor, keep: bool, place: Place | None) -> None:
        """Look at the graph of a loss."""
        products, sizes = self.products, self.sizes
        self.products, self.sizes = set(), {}
        if not products or self.looked >= BACKWARDS or tensor.numel() != 1 or not is_computed(tensor):
            return
        self.looked += 1
        nodes = list(islice(nodes_behind([tensor.grad_fn]), DEEP))
        exps = [one for one in nodes if kind_of(one) == "Exp"]
        if not exps or len(nodes) == DEEP:
            return
        sized = {one: found for one in nodes if (found := sizes.get(self.engine.key_of(one))) is not None}
        terms, users = terms_of(self.engine.node_of(tensor), sized), users_of(nodes)
        for exp in exps:
            if not self._multiplies_noise(exp, users, products):
                continue
            argument, _ = argument_of(exp, terms)
            if argument is not None and any(self._is_variance(other, argument, exp, terms) for other in exps):
                self._count(exp, place)

    def _multiplies_noise(self, exp: Node, users: dict, products: set[int]) -> bool:
        stack = [exp]
        for node in stack:
            for user, _ in users[node]:
                if kind_of(user) == "Mul" and self.engine.key_of(user) in products:
                    return True
                if kind_of(user) in KEEPS:
                    stack.append(user)
        return False

    def _is_variance(self, other: Node, argument: tuple, exp: Node, terms: dict) -> bool:
        """Return whether a divergence holds an exp of the same power as a variance."""
        if (other, 0) not in terms or argument_of(other, terms)[0] != argument:
            return False
        log, power = terms[argument], terms[other, 0]
        within = factor_within(other, argument)
        if log.ways != 1 or not power.weight or log.signs == power.signs:
            return False
        of_variance = abs(log.weight / power.weight / within - 1) < CLOSE
        return of_variance and abs(factor_within(exp, argument) / within - 1) < CLOSE

    def _count(self, exp: Node, place: Place | None) -> None:
        here = place_of_node(self.engine, exp)
        key = (here.file, here.line) if here is not None else None
        self.times[key] = self.times.get(key, 0) + 1
        if self.times[key] == TWICE:
            self.report(
                "sample-scaled-by-variance",
                here or place,
                f"The divergence in the loss of backward() at {brief(place)} takes this exp() for a variance; noise is "
                f"multiplied by it at {brief(here)}.",
            )
