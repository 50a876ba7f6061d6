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
        explanation="NumPy does not record. The graph would end at the array without a word, and a loss "
        "computed with NumPy would have no gradient; so the conversion has to be asked for by "
        "detach(). np.sin(t), np.array(t) and plotting convert as well.",
        wrong="""
            x = torch.ones(2, requires_grad=True)
            x.numpy()
        """,
        right="""
            x = torch.ones(2, requires_grad=True)
            x.detach().numpy()
        """,
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
        explanation="float(t) and math.sqrt(t) return plain Python numbers. What is computed from these is a "
        "constant for the graph. For printing and logging that is right, and .item() says that it"
        " is meant.",
        wrong="""
            loss = torch.ones((), requires_grad=True) * 2
            print(float(loss))
        """,
        right="""
            loss = torch.ones((), requires_grad=True) * 2
            print(loss.item())
        """,
    ),
    Rule(
        id="BL503",
        slug="many-elements-to-scalar",
        title="a tensor of several elements is turned into one Python number",
        cause="The tensor was not reduced.",
        cure="Reduce it (.sum(), .mean()), or use .tolist().",
        says="only one element tensors can be converted to Python scalars",
        reference="torch.Tensor.item",
        explanation="Only a tensor of one element is a number.",
        wrong="""
            losses = torch.ones(2)
            float(losses)
        """,
        right="""
            losses = torch.ones(2)
            float(losses.mean())
        """,
    ),
    Rule(
        id="BL504",
        slug="tolist-requires-grad",
        title="tolist() of a tensor that requires grad leaves the graph",
        level=NOTE,
        cause="The numbers in the list have no history.",
        cure="Nothing needs to change if they are only printed or logged.",
        reference="torch.Tensor.tolist",
        explanation="tolist() returns plain Python numbers. What is computed from these is a constant for the graph.",
        wrong="""
            x = torch.ones(2, requires_grad=True)
            print(x.tolist())
        """,
        right="""
            x = torch.ones(2, requires_grad=True)
            print(x.detach().tolist())
        """,
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
        explanation="torch.tensor(t) reads the values of t and makes a leaf without history. If a copy is "
        "meant, detach().clone() says so; if the tensor itself is meant, it needs no wrapping.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            b = torch.tensor(a)
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = a.detach().clone()
        """,
    ),
    Rule(
        id="BL506",
        slug="tensor-of-tensors",
        title="torch.tensor([t1, t2]) of tensors that require grad leaves their graph",
        level=WARNING,
        cause="torch.tensor reads each as a number.",
        cure="Use torch.stack([t1, t2]).",
        reference="torch.stack",
        explanation="torch.tensor([a, b]) reads a and b as numbers and makes a leaf that requires no grad. "
        "torch.stack joins the tensors themselves.",
        wrong="""
            a = torch.ones((), requires_grad=True)
            b = torch.tensor([a, a * 2])
        """,
        right="""
            a = torch.ones((), requires_grad=True)
            b = torch.stack([a, a * 2])
        """,
    ),
    Rule(
        id="BL507",
        slug="numpy-of-conjugate",
        title="a lazily conjugated tensor is turned into a NumPy array",
        cause="conj() only marks the tensor; NumPy would see the values before it.",
        cure="Use t.resolve_conj().numpy().",
        says="Can't call numpy() on Tensor that has conjugate bit set.",
        reference="torch.Tensor.resolve_conj",
        explanation="conj() of a complex tensor sets a mark instead of computing. NumPy would read the memory"
        " as it is.",
        wrong="""
            torch.ones(2, dtype=torch.complex64).conj().numpy()
        """,
        right="""
            torch.ones(2, dtype=torch.complex64).conj().resolve_conj().numpy()
        """,
    ),
)
