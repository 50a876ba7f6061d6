"""BL1xx: reading and setting `.grad`."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

AUTOGRAD_NOTES = "PyTorch's documentation, Autograd mechanics"

RULES = (
    Rule(
        id="BL101",
        slug="grad-of-non-leaf",
        title=".grad of a tensor that an op computed is read: it is None",
        level=WARNING,
        cause="Only leaves keep their gradient. This tensor is the result of an op.",
        cure="Call .retain_grad() on it before backward(), or read .grad of the leaf that it was computed from.",
        says="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
        reference="torch.Tensor.retain_grad",
    ),
    Rule(
        id="BL102",
        slug="leaf-lost-at-creation",
        title="requires_grad=True is inside an expression: what the name holds is no leaf",
        level=WARNING,
        cause="An op was applied to the new leaf in the same line: the leaf has no name, and its result is no leaf.",
        cure="Compute the values first and set requires_grad last.",
        says="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
        reference="torch.Tensor.is_leaf",
    ),
    Rule(
        id="BL103",
        slug="grad-without-requires-grad",
        title=".grad of a tensor that does not require grad is read: it is None",
        level=WARNING,
        cause="The tensor was made without requires_grad=True, so no gradient is computed for it.",
        cure="Make it with requires_grad=True, or call .requires_grad_() before the forward.",
        reference=AUTOGRAD_NOTES + ", Setting requires_grad",
    ),
    Rule(
        id="BL104",
        slug="retain-grad-without-requires-grad",
        title="retain_grad() on a tensor that does not require grad",
        cause="The tensor is not part of a graph: nothing that it was computed from requires grad, or it was detached.",
        cure="Let what it is computed from require grad, or remove the call.",
        says="can't retain_grad on Tensor that has requires_grad=False",
        reference="torch.Tensor.retain_grad",
    ),
    Rule(
        id="BL105",
        slug="retain-grad-on-leaf",
        title="retain_grad() on a leaf does nothing: a leaf's .grad is kept anyway",
        level=NOTE,
        cause="The tensor was made by the user and not by an op.",
        cure="Remove the call.",
        reference="torch.Tensor.retain_grad",
    ),
    Rule(
        id="BL106",
        slug="retained-gradient",
        title="a gradient is kept because of retain_grad()",
        level=NOTE,
        cause="retain_grad() was called before backward().",
        cure="Nothing needs to change. An optimiser's zero_grad() does not reset it, and a second backward through the "
        "same graph replaces it.",
        reference="torch.Tensor.retain_grad",
    ),
    Rule(
        id="BL107",
        slug="assigned-grad-shape",
        title="a gradient of another shape is assigned to .grad",
        cause="A gradient has its tensor's shape, element for element.",
        cure="Sum it over the dims that were broadcast, or reshape it.",
        says="attempting to assign a gradient of size",
    ),
    Rule(
        id="BL108",
        slug="assigned-grad-dtype",
        title="a gradient of another dtype is assigned to .grad",
        cause="A gradient has its tensor's dtype; NumPy arrays become float64, float32 tensors do not.",
        cure="Convert it: .to(tensor.dtype).",
        says="attempting to assign a gradient with dtype",
    ),
    Rule(
        id="BL109",
        slug="assigned-grad-kind",
        title="something that is no tensor is assigned to .grad",
        cause="A number or an array was assigned.",
        cure="Assign a tensor of the same shape and dtype, or None.",
        says="assigned grad expected to be a Tensor or None but got grad of type",
    ),
)
