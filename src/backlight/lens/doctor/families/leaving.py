"""BL5xx: values that leave the engine: NumPy, Python numbers, new tensors."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

RULES = (
    Rule(
        id="BL501",
        slug="numpy-requires-grad",
        title="a tensor that requires grad is turned into a NumPy array",
        cause="NumPy records nothing, so the graph would end there unnoticed.",
        cure="Say so: t.detach().numpy().",
        says="Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        reference="torch.Tensor.numpy",
    ),
    Rule(
        id="BL502",
        slug="scalar-requires-grad",
        title="a tensor that requires grad is turned into a Python number",
        level=WARNING,
        cause="float(t) leaves the graph: what is computed from the number gets no gradient.",
        cure="Say so: t.item() or t.detach(); or keep the tensor if the result is to be differentiated.",
        says="Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.",
        reference="torch.Tensor.item",
    ),
    Rule(
        id="BL503",
        slug="many-elements-to-scalar",
        title="a tensor of several elements is turned into one Python number",
        cause="The tensor was not reduced.",
        cure="Reduce it (.sum(), .mean()), or use .tolist().",
        says="only one element tensors can be converted to Python scalars",
        reference="torch.Tensor.item",
    ),
    Rule(
        id="BL504",
        slug="tolist-requires-grad",
        title="tolist() of a tensor that requires grad leaves the graph",
        level=NOTE,
        cause="The numbers in the list have no history.",
        cure="Nothing needs to change if they are only printed or logged.",
        reference="torch.Tensor.tolist",
    ),
    Rule(
        id="BL505",
        slug="copy-construct",
        title="torch.tensor(t) copies the values of a tensor and leaves its graph",
        level=WARNING,
        cause="torch.tensor makes a new leaf from values.",
        cure="Use t itself, or t.detach().clone() if a copy without history is meant.",
        says="To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone()",
        reference="torch.tensor",
    ),
    Rule(
        id="BL506",
        slug="tensor-of-tensors",
        title="torch.tensor([t1, t2]) of tensors that require grad leaves their graph",
        level=WARNING,
        cause="torch.tensor reads each as a number.",
        cure="Use torch.stack([t1, t2]).",
        reference="torch.stack",
    ),
    Rule(
        id="BL507",
        slug="numpy-of-conjugate",
        title="a lazily conjugated tensor is turned into a NumPy array",
        cause="conj() only marks the tensor; NumPy would see the values before it.",
        cure="Use t.resolve_conj().numpy().",
        says="Can't call numpy() on Tensor that has conjugate bit set.",
        reference="torch.Tensor.resolve_conj",
    ),
)
