"""Which rule an error or a warning belongs to: PyTorch's wording, with which backlight's begins too."""

import re
from typing import NamedTuple


class Message(NamedTuple):
    """A pattern that is looked for anywhere in a text, and the rule that it means."""

    pattern: re.Pattern
    rule: str


def _messages(*pairs: tuple[str, str]) -> tuple[Message, ...]:
    return tuple(Message(re.compile(pattern), rule) for pattern, rule in pairs)


ERRORS = _messages(
    (r"can't retain_grad on Tensor that has requires_grad=False", "BL104"),
    (r"attempting to assign a gradient of size", "BL107"),
    (r"attempting to assign a gradient with dtype", "BL108"),
    (r"assigned grad expected to be a Tensor or None", "BL109"),
    (r"grad can be implicitly created only for scalar outputs", "BL201"),
    (r"grad can be implicitly created only for real scalar outputs", "BL202"),
    (r"Trying to backward through the graph a second time", "BL203"),
    (r"element \d+ of tensors does not require grad and does not have a grad_fn", "BL208"),
    (r"trying to differentiate twice a function that was marked with @once_differentiable", "BL605"),
    (r"Mismatch in shape: grad_output\[\d+\] has a shape of", "BL213"),
    (r"got \d+ tensors and \d+ gradients", "BL214"),
    (r"a view of a leaf Variable that requires grad is being used in an in-place operation", "BL303"),
    (r"a leaf Variable that requires grad is being used in an in-place operation", "BL301"),
    (r"modified by an inplace operation", "BL304"),
    (r"Output \d+ of BackwardHookFunction is a view and is being modified inplace", "BL905"),
    (r"is a view and is being modified inplace\. This view was created inside a custom Function", "BL906"),
    (r"is a view and is being modified inplace\. This view is the output of a function that returns", "BL309"),
    (r"A view was created in no_grad mode and is being modified inplace", "BL310"),
    (r"more than one element of the written-to tensor refers to a single memory location", "BL311"),
    (r"[Oo]nly Tensors of floating point (and complex )?dtype can require gradients", "BL401"),
    (r"you can only change requires_grad flags of leaf variables\. If you want", "BL402"),
    (r"you can only change requires_grad flags of leaf variables", "BL403"),
    (r"Can't detach views in-place", "BL404"),
    (r"Only Tensors created explicitly by the user \(graph leaves\) support the deepcopy protocol", "BL405"),
    (r"Cowardly refusing to serialize non-leaf tensor", "BL406"),
    (r"Can't call numpy\(\) on Tensor that requires grad", "BL501"),
    (r"only one element tensors can be converted to Python scalars", "BL503"),
    (r"a Tensor with \d+ elements cannot be converted to Scalar", "BL503"),
    (r"Can't call numpy\(\) on Tensor that has conjugate bit set", "BL507"),
    (r"differentiated Tensor at index \d+ appears to not have been used in the graph", "BL601"),
    (r"One of the differentiated Tensors (appears to not have been used in the graph)", "BL601"),
    (r"One of the differentiated Tensors does not require grad", "BL602"),
    (r"Inference tensors cannot be saved for backward", "BL611"),
    (r"Setting requires_grad=True on inference tensor outside InferenceMode", "BL612"),
    (r"Inplace update to inference tensor outside InferenceMode", "BL613"),
    (r"'type' object does not support the context manager protocol", "BL614"),
    (r"can't optimize a non-leaf Tensor", "BL701"),
    (r"optimizer got an empty parameter list", "BL702"),
    (r"expected target dtype to be Long or Byte", "BL713"),
    (r"Expected to have finished reduction in the prior iteration before starting a new one", "BL714"),
    (r"Function '\w+' returned nan values in its \d+th output", "BL801"),
    (r"The total norm of order .* is non-finite, so it cannot be clipped", "BL803"),
    (r"cannot register a hook on a tensor that doesn't require gradient", "BL901"),
    (r"hook '.*' has changed the size of value", "BL902"),
    (r"expected Variable, but hook returned", "BL903"),
    (r"post accumulate grad hooks cannot be registered on non-leaf tensors", "BL904"),
    (r"[Ff]unction \w+ returned an invalid gradient at index \d+", "BL907"),
    (r"[Ff]unction \w+ returned an incorrect number of gradients", "BL908"),
)

WARNINGS = _messages(
    (r"The \.grad attribute of a Tensor that is not a leaf Tensor is being accessed", "BL101"),
    (r"Using backward\(\) with create_graph=True will create a reference cycle", "BL216"),
    (r"Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior", "BL502"),
    (r"To copy construct from a tensor, it is recommended to use", "BL505"),
    (r"Detected call of `lr_scheduler\.step\(\)` before `optimizer\.step\(\)`", "BL706"),
    (r"Using a target size \(.*\) that is different to the input size", "BL711"),
    (r"Implicit dimension choice for \w+ has been deprecated", "BL712"),
    (r"the use_reentrant parameter should be passed explicitly", "BL911"),
    (r"None of the inputs have requires_grad=True\. Gradients will be None", "BL912"),
    (r"Anomaly Detection has been enabled", "BL914"),
)


def rule_of_error(text: str) -> str | None:
    """Return the id of the rule that an error's text means; None for one that the doctor does not know."""
    return _first(ERRORS, text)


def rule_of_warning(text: str) -> str | None:
    """Return the id of the rule that a warning's text means; None for one that the doctor does not know."""
    return _first(WARNINGS, text)


def _first(messages: tuple[Message, ...], text: str) -> str | None:
    return next((message.rule for message in messages if message.pattern.search(text)), None)
