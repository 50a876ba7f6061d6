"""What is changed on a model for one call, and restored after it, even if the call fails.

NOTE [Nothing stays changed]
A model in memory belongs to its user, who may train it further. For a call its modules are in evaluation mode, a hook
on its embedding layer puts a leaf in place of the layer's output, and where layers are shown, `forward` asks for them
and attention is computed step by step. Each is undone in a `finally`. Weights are never moved or cast, and get no
gradient: `torch.autograd.grad` computes only what is requested, and writes no `.grad`. Copies of weights in float32
stand in for those in half precision where gradients of the two are compared, and only for that call.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from backlight.adapters.torch_library import torch_library, transformers_library
from backlight.errors import InputError

END_TO_END = "backlight_end_to_end"  # what `attention_by_sequence` is registered as in transformers
INSTALLED = "_output_capturing_hooks_installed"  # transformers sets it with hooks that it never removes


@contextmanager
def evaluation_mode(module: Any) -> Iterator[None]:
    """Put a module and all in it into evaluation mode; those that trained do so again afterwards."""
    training = [one for one in module.modules() if one.training]
    for one in training:
        one.training = False
    try:
        yield
    finally:
        for one in training:
            one.training = True


@contextmanager
def embeddings_replaced(layers: Sequence[Any], inputs: Any, leaf: Any, name: str) -> Iterator[None]:
    """Give a leaf as the output of embedding layers for the tokens of a rectangle.

    Args:
        layers: the embedding layer, and after it that of a decoder, if the model has one. The first may be given more
            columns at the right than the rectangle has, and, as by GPT-2, also the segments, which are no words. A
            decoder may be given the same tokens moved by one to the right, or only the token that starts it.
        inputs: the rectangle: its ids and segments, (rows, columns), and the places of its tokens.
        leaf: their embeddings, (tokens, hidden).
        name: of the model, for errors.

    Raises:
        InputError: the layers were called otherwise, so that the score is no function of the leaf alone.
    """
    calls: list[str] = []

    def put_in(module: Any, given: tuple, output: Any) -> Any:
        ids = given[0] if given else None
        if hasattr(ids, "data_ptr") and ids.data_ptr() == inputs.types.data_ptr():  # GPT-2 makes a view of the segments
            return output
        of_decoder = module is not layers[0]
        if of_decoder and tuple(ids.shape) == (len(inputs.ids), 1):
            return output
        call, places, values = "these", _places_in(ids, inputs.ids, inputs.places), leaf
        if places is None and of_decoder and ids.shape == inputs.ids.shape:
            rows, columns = inputs.places
            kept = columns < ids.shape[1] - 1
            rows, columns, values = rows[kept], columns[kept], leaf[kept]
            found = _places_in(ids[:, 1:], inputs.ids[:, :-1], (rows, columns))
            call, places = "moved", found and (rows, columns + 1)
        calls.append(call if places is not None else "others")
        if places is None:
            return output
        first, *others = output if isinstance(output, tuple) else (output,)
        first = first.detach().index_put(places, values.to(first.dtype))
        return (first, *others) if isinstance(output, tuple) else first

    handles = [layer.register_forward_hook(put_in) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
    if calls.count("these") != 1 or "others" in calls:
        how = "with other tokens" if "others" in calls else f"{len(calls)} times"
        raise InputError(
            f"{name} must take word embeddings for this, and does not: it calls its embedding layer {how}; choose a "
            "method that leaves words out"
        )


def _places_in(given: Any, ids: Any, places: tuple[Any, Any]) -> tuple | None:
    """Return where the tokens of a rectangle stand in what an embedding layer is given; None if it is something else.

    A model may add columns at the right, transpose the rectangle, or lay its tokens end to end.
    """
    rows, columns = ids.shape
    expected, shape = ids[places], tuple(getattr(given, "shape", ()))
    if shape in ((len(expected),), (1, len(expected))) and shape != (rows, columns):
        ends = expected.new_tensor(range(len(expected)))
        found = (ends,) if len(shape) == 1 else (ends * 0, ends)
    elif len(shape) == 2 and shape[0] == rows and shape[1] >= columns:
        found = places
    elif shape == (columns, rows):
        found = places[::-1]
    else:
        return None
    return found if bool((given[found] == expected).all()) else None


@contextmanager
def outputs_shown(core: Any, **flags: bool) -> Iterator[list]:
    """Make a transformers model give more in its output, and collect the outputs of its calls.

    Args:
        flags: arguments for its forward: `output_hidden_states=True`.
    """
    found: list = []
    ordinary, had = core.forward, vars(core).get("forward")
    before = [(module, set(module._forward_hooks), INSTALLED in vars(module)) for module in core.modules()]

    def forward(*inputs: Any, **options: Any) -> Any:
        output = ordinary(*inputs, **{**options, **flags})
        found.append(output)
        return output

    core.forward = forward
    try:
        yield found
    finally:
        if had is None:
            del core.forward
        else:
            core.forward = had
        for module, hooks, installed in before:
            for number in set(module._forward_hooks) - hooks:
                del module._forward_hooks[number]
            if INSTALLED in vars(module) and not installed:
                delattr(module, INSTALLED)


@contextmanager
def attention_step_by_step(core: Any) -> Iterator[None]:
    """Have a transformers model compute attention step by step, as it must to show it."""
    before = core.config._attn_implementation
    if before == "eager":
        yield
        return
    core.set_attn_implementation("eager")
    try:
        yield
    finally:
        core.set_attn_implementation(before)


@contextmanager
def weights_in_float32(module: Any) -> Iterator[None]:
    """Put copies in float32 in the place of a module's weights and buffers in half precision."""
    torch, copies = torch_library(), {}
    half = (torch.float16, torch.bfloat16)
    before = [
        (held, name, one)
        for part in module.modules()
        for held in (part._parameters, part._buffers)
        for name, one in held.items()
        if one is not None and one.dtype in half
    ]
    try:
        for held, name, one in before:
            if id(one) not in copies:  # one weight may stand in several places
                copy = one.detach().float()
                copies[id(one)] = torch.nn.Parameter(copy, False) if isinstance(one, torch.nn.Parameter) else copy
            held[name] = copies[id(one)]
        yield
    finally:
        for held, name, one in before:
            held[name] = one


def repeated_layers(core: Any) -> list:
    """Return the layers of a transformers model: what its longest list of modules holds; none where it has no list."""
    lists = [list(one) for one in core.modules() if isinstance(one, torch_library().nn.ModuleList)]
    return max(lists, key=len, default=[])


@contextmanager
def forwards_replaced(modules: Sequence[Any], forwards: Sequence[Any]) -> Iterator[None]:
    """Give modules another `forward`, and take the gradients of their weights out of the graph: none is requested."""
    graded = [weight for module in modules for weight in module.parameters() if weight.requires_grad]
    had = [vars(module).get("forward") for module in modules]
    try:
        for weight in graded:
            weight.requires_grad_(False)
        for module, forward in zip(modules, forwards):
            module.forward = forward
        yield
    finally:
        for module, own in zip(modules, had):
            if own is not None:
                module.forward = own
            elif "forward" in vars(module):
                del module.forward
        for weight in graded:
            weight.requires_grad_(True)


def runs_end_to_end(core: Any) -> bool:
    """Return whether a model's layers can run on sequences laid end to end: BERT's and those of its shape."""
    encoder = getattr(getattr(core, "base_model", None), "encoder", None)
    config = getattr(core, "config", None)
    return (
        isinstance(getattr(encoder, "layer", None), torch_library().nn.ModuleList)
        and getattr(config, "_attn_implementation", None) == "sdpa"
        and not getattr(config, "is_decoder", False)
    )


@contextmanager
def layers_end_to_end(core: Any, places: tuple[Any, Any], lengths: Sequence[int]) -> Iterator[None]:
    """Have the layers of a model that `runs_end_to_end` work on tokens alone, without the padding between them.

    Args:
        places: rows and columns of the tokens in the rectangle that the model is called with, row by row.
        lengths: how many tokens each row has.
    """
    encoder, config = core.base_model.encoder, core.config
    ordinary, before = encoder.forward, config._attn_implementation
    transformers_library().AttentionInterface.register(END_TO_END, attention_by_sequence)

    def forward(hidden_states: Any, *inputs: Any, attention_mask: Any = None, **options: Any) -> Any:
        config._attn_implementation = END_TO_END
        try:
            output = ordinary(hidden_states[places][None], attention_mask=None, sequence_lengths=lengths, **options)
        finally:
            config._attn_implementation = before
        rectangle = hidden_states.new_zeros(hidden_states.shape)
        output.last_hidden_state = rectangle.index_put(places, output.last_hidden_state[0])
        return output

    with forwards_replaced([encoder], [forward]):
        yield


def attention_by_sequence(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    *,
    sequence_lengths: Sequence[int],
    scaling: float | None = None,
    **options: Any,
) -> tuple[Any, None]:
    """Return attention over sequences laid end to end, (1, heads, tokens, dim) -> (1, tokens, heads, dim).

    Options that transformers gives every attention, dropout among them, are of no use in evaluation mode.
    """
    torch = torch_library()
    parts = zip(*(one.split(list(sequence_lengths), 2) for one in (query, key, value)))
    seen = [torch.nn.functional.scaled_dot_product_attention(*part, scale=scaling) for part in parts]
    return torch.cat(seen, 2).transpose(1, 2), None


def states_of(outputs: Sequence[Any], shapes: Sequence[tuple[int, int]], name: str) -> list[tuple]:
    """Return the hidden states of each output: what the first layer was given, and those after each layer.

    Args:
        shapes: rows and columns of each rectangle.
        name: of the model, for errors.

    Returns:
        For each output its states, each (rows, columns, hidden); a model may have more columns, at the right.

    Raises:
        InputError: they are not there, or not of the tokens that were read.
    """
    found = [tuple(getattr(output, "hidden_states", None) or ()) for output in outputs]
    complete = len(found) == len(shapes) and all(
        own and all(state.shape[0] == rows and state.shape[1] >= columns for state in own)
        for own, (rows, columns) in zip(found, shapes)
    )
    check_complete(complete, name)
    return found


def attentions_of(outputs: Sequence[Any], shapes: Sequence[tuple[int, int]], name: str) -> list[tuple]:
    """Return the attentions of each layer of each output; arguments and errors as `states_of`."""
    found = [tuple(getattr(output, "attentions", None) or ()) for output in outputs]
    if len(found) != len(shapes) or not all(own and all(layer is not None for layer in own) for own in found):
        raise InputError(f"{name} must show its attentions for this, and does not")
    complete = all(
        (layer.shape[0], *layer.shape[2:]) == (rows, columns, columns)
        for own, (rows, columns) in zip(found, shapes)
        for layer in own
    )
    check_complete(complete, name)
    return found


def check_complete(complete: bool, name: str) -> None:
    """Raise unless a model's layers work on the tokens that are read."""
    if not complete:
        raise InputError(
            f"the layers of {name} must work on the tokens that are read, and do not: it cuts, joins or adds some"
        )
