"""How a model on PyTorch is called: what holds during a call, its inputs on their device, and the two fast ways.

NOTE [End to end]
On one thread of a processor the layers of a model of BERT's shape work on the tokens alone, laid end to end, and
attention goes sequence by sequence: where that gives the scores of padded sequences to 1e-5, which is tried once.
Scoring then takes 0.90 of the time, a gradient 0.95 (MiniLM-L6, 32 pairs of 20 to 256 tokens). On several threads, on
a GPU, compiled, or where layers are shown, sequences are padded: there it was not shown to be faster.

NOTE [Compiled layers]
`torch.compile` compiles a model's layers, one code for all of them; what is around, and hooks, stay as they are. Where
that fails, or gives other scores, a warning says so, the layers run as they are, and `Execution` says so too.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from backlight.adapters.padded_batches import Group, PaddedBatch
from backlight.adapters.torch_library import sent, torch_library
from backlight.adapters.torch_models.kinds import Inputs
from backlight.adapters.torch_models.temporary_changes import (
    evaluation_mode,
    forwards_replaced,
    layers_end_to_end,
    repeated_layers,
)
from backlight.errors import InputError
from backlight.system.fork_safety import cached_property
from backlight.system.user_warnings import warn_outside

HALF = {"float16", "bfloat16"}


class Running:
    """Calls a model (see NOTE [A model on PyTorch] in kinds.py).

    Args:
        model: what runs.
        device: where its inputs go.
        dtype: what it runs in under autocast; None: as its weights are.
        compiled: whether its layers are compiled.

    Raises:
        InputError: a function is to be compiled.
    """

    def __init__(self, model: Any, device: str, dtype: str | None, compiled: bool):
        if compiled and model.core is None:
            raise InputError(f"compile must be left out: {model.name} is a function; give torch.compile of it")
        self.model, self.device, self.dtype, self.compiled = model, device, dtype, compiled

    def calling(self) -> ExitStack:
        """Return what holds during a call: evaluation mode, and autocast where another dtype was chosen."""
        stack = ExitStack()
        if self.model.module is not None:
            stack.enter_context(evaluation_mode(self.model.module))
        if self.dtype is not None:
            torch = torch_library()
            stack.enter_context(torch.autocast(self.device.partition(":")[0], dtype=getattr(torch, self.dtype)))
        return stack

    def inputs(self, part: PaddedBatch) -> Inputs:
        """Return a rectangle as tensors on the device."""
        ids, mask, types, rows, columns = (
            self.tensor(one) for one in (part.ids, part.mask, part.type_ids, part.rows, part.columns)
        )
        return Inputs(ids, mask, types, (rows, columns))

    def tensor(self, array: np.ndarray) -> Any:
        """Return an array as a tensor on the device."""
        return sent(torch_library().from_numpy(array), self.device)

    def leaves(self, group: Group, embeddings: np.ndarray | None) -> list:
        """Return the word embeddings of a group's tokens by side; none where they are the model's own."""
        return [] if embeddings is None else [self.tensor(embeddings[part.tokens]) for part in group]

    def scores(self, group: Group, leaves: Sequence = (), *, fast: bool = False, end_to_end: bool = False) -> Any:
        """Return the scores of a group's pairs, (rows,), with leaves in place of word embeddings where there are.

        Args:
            fast: whether layers that are compiled may be used: not where they are shown.
            end_to_end: whether layers work on the tokens alone.
        """
        sides = enumerate(zip(group, leaves or [None] * len(group)))
        encoded = [self.encode(side, *own, fast=fast, end_to_end=end_to_end) for side, own in sides]
        with self.calling():
            return self.model.compare(*encoded)

    def encode(
        self, side: int, part: PaddedBatch, leaf: Any = None, *, fast: bool = False, end_to_end: bool = False
    ) -> Any:
        """Return what the model makes of the sequences of one side; arguments as `scores`."""
        inputs = self.inputs(part)
        with self.calling() as stack:
            if fast and self.compiled:
                stack.enter_context(forwards_replaced(*self._layers_and_compiled))
            if end_to_end:
                lengths = np.bincount(part.rows).tolist()
                stack.enter_context(layers_end_to_end(self.model.core, inputs.places, lengths))
            return self.model.encode(side, inputs, leaf)

    def uncompiled(self, why: object) -> None:
        """Run layers as they are from now on, and warn."""
        self.compiled = False
        said = str(why).strip().split("\n")[0][:200]
        warn_outside(f"torch.compile cannot be used for {self.model.name}, which runs uncompiled: {said}")

    @cached_property
    def _layers_and_compiled(self) -> tuple[list, list]:
        """The layers of the model, and the compiled `forward` of each."""
        layers = repeated_layers(self.model.core)
        return layers, [torch_library().compile(layer.forward, dynamic=True) for layer in layers]
