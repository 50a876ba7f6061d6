"""The layer at which an exception was raised: its name in the model, the line that made it, what it was given."""

import ast
from dataclasses import dataclass
from typing import Any

from backlight.lens.doctor.corrections.lines import replace
from backlight.lens.doctor.errors.error_context import ErrorContext
from backlight.lens.doctor.source import Spot, span, spelled

# for the first word of a layer's class: the argument that states the size of its input
SIZES = {
    "Linear": "in_features",
    "Bilinear": "in1_features",
    "Conv": "in_channels",
    "ConvTranspose": "in_channels",
    "LSTM": "input_size",
    "GRU": "input_size",
    "RNN": "input_size",
    "BatchNorm": "num_features",
    "InstanceNorm": "num_features",
    "LayerNorm": "normalized_shape",
    "Embedding": "num_embeddings",
}


@dataclass(frozen=True)
class Layer:
    """A layer that raised.

    Args:
        module: the layer.
        path: its dotted name in the outermost model that ran; "" for that model itself.
        given: what its forward was given first.
        spots: the user's instructions on the way to it, the innermost first.
    """

    module: Any
    path: str
    given: Any
    spots: tuple[Spot, ...]

    @property
    def kind(self) -> str:
        """Its class."""
        return type(self.module).__name__

    @property
    def name(self) -> str:
        """What to call it: `model.2 (Linear)` or `Linear`."""
        return f"{self.path} ({self.kind})" if self.path else self.kind

    @property
    def size_name(self) -> str | None:
        """The argument of its constructor that states the size of its input."""
        return SIZES.get(self.kind.rstrip("123d").removeprefix("Lazy"))

    @property
    def size(self) -> Any:
        """The size of input that it was made for; a tuple of one number is that number."""
        size = getattr(self.module, self.size_name, None) if self.size_name else None
        return size[0] if isinstance(size, tuple) and len(size) == 1 else size

    def made(self) -> Spot | None:
        """Return the call that made it: the only one in the user's files with its class and size."""
        for file in dict.fromkeys(spot.file for spot in self.spots):
            tree = next(spot.tree for spot in self.spots if spot.file == file)
            calls = [node for node in ast.walk(tree or ast.Module()) if self._is_maker(node)]
            if len(calls) > 1:
                calls = [node for node in calls if self._is_stored(node)]
            if len(calls) == 1:
                return Spot(file, "", span(calls[0]))
        return None

    def _is_maker(self, node: ast.AST) -> bool:
        if not isinstance(node, ast.Call) or (spelled(node.func) or "").rpartition(".")[2] != self.kind:
            return False
        stated = self.stated(node)
        return isinstance(stated, ast.Constant) and stated.value == self.size

    def _is_stored(self, node: ast.AST) -> bool:
        """Return whether a call's result is assigned to an attribute of the layer's name."""
        statement = getattr(node, "parent", None)
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        return isinstance(target, ast.Attribute) and target.attr == self.path.rpartition(".")[2]

    def stated(self, call: ast.Call) -> ast.AST | None:
        """Return the syntax that states the size in a constructor's call."""
        named = next((word.value for word in call.keywords if word.arg == self.size_name), None)
        return named or (call.args[0] if call.args else None)

    def remade(self, size: int) -> tuple[Spot, str] | None:
        """Return the line that made it, and that line with another size."""
        made = self.made()
        stated = None if made is None else self.stated(made.call)
        text = None if stated is None else made.edited(replace(stated, str(size)))
        return None if text is None else (made, text)


def layer_of(context: ErrorContext) -> Layer | None:
    """Return the innermost layer that an exception came out of."""
    kinds = tuple(engine.module.nn.Module for engine in context.session.engines)
    running = []  # modules whose forward runs, the innermost first
    given = None
    for frame in context.frames():
        module = frame.f_locals.get("self")
        if isinstance(module, kinds):
            if not running:
                given = frame.f_locals.get("input", frame.f_locals.get("x"))
            running.append(module)
    if not running:
        return None
    names = {id(module): name for name, module in running[-1].named_modules()}
    return Layer(running[0], names.get(id(running[0]), ""), given, tuple(context.spots()))
