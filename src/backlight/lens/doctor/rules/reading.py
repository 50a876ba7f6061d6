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
        explanation="backward() adds gradients to the .grad of leaves, the tensors that the user made with "
        "requires_grad=True. What ops compute on the way has a gradient only while backward "
        "passes through, and then it is dropped: a network has far more intermediate values than "
        "parameters, and keeping them all would cost memory. retain_grad() asks for one to be "
        "kept.",
        wrong="""
            x = torch.ones(3, requires_grad=True)
            hidden = x * 2
            hidden.sum().backward()
            print(hidden.grad)  # None
        """,
        right="""
            x = torch.ones(3, requires_grad=True)
            hidden = x * 2
            hidden.retain_grad()
            hidden.sum().backward()
            print(hidden.grad)  # tensor([1., 1., 1.])
        """,
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
        explanation="A leaf is a tensor that no op made. requires_grad=True inside an expression makes a leaf"
        " that has no name, and the name gets the result of the op: a tensor that is no leaf, "
        "whose .grad stays None and which no optimiser accepts. The same happens with "
        ".to(device), .reshape() or .half() after requires_grad=True.",
        wrong="""
            w = torch.randn(3, requires_grad=True) * 0.1
            w.sum().backward()
            print(w.grad)  # None: the leaf is the tensor before * 0.1
        """,
        right="""
            w = (torch.randn(3) * 0.1).requires_grad_()
            w.sum().backward()
            print(w.grad)
        """,
    ),
    Rule(
        id="BL103",
        slug="grad-without-requires-grad",
        title=".grad of a tensor that does not require grad is read: it is None",
        level=WARNING,
        cause="The tensor was made without requires_grad=True, so no gradient is computed for it.",
        cure="Make it with requires_grad=True, or call .requires_grad_() before the forward.",
        reference=AUTOGRAD_NOTES + ", Setting requires_grad",
        explanation="Gradients are computed only for tensors that ask for them by requires_grad=True, and for"
        " what is computed from these. A plain tensor takes part in the forward as a constant; "
        "its .grad is None before and after.",
        wrong="""
            a = torch.tensor(2.0)
            b = torch.tensor(3.0, requires_grad=True)
            (a * b).backward()
            print(a.grad)  # None: a is a constant
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            b = torch.tensor(3.0, requires_grad=True)
            (a * b).backward()
            print(a.grad)
        """,
    ),
    Rule(
        id="BL104",
        slug="retain-grad-without-requires-grad",
        title="retain_grad() on a tensor that does not require grad",
        cause="The tensor is not part of a graph: nothing that it was computed from requires grad, or it was detached.",
        cure="Let what it is computed from require grad, or remove the call.",
        says="can't retain_grad on Tensor that has requires_grad=False",
        reference="torch.Tensor.retain_grad",
        explanation="retain_grad() asks for a gradient to be kept when backward passes. A tensor that does "
        "not require grad is not part of any graph, so none will ever pass.",
        wrong="""
            x = torch.ones(2)
            x.retain_grad()
        """,
        right="""
            x = torch.ones(2, requires_grad=True)
            y = x * 2
            y.retain_grad()
        """,
    ),
    Rule(
        id="BL105",
        slug="retain-grad-on-leaf",
        title="retain_grad() on a leaf does nothing: a leaf's .grad is kept anyway",
        level=NOTE,
        cause="The tensor was made by the user and not by an op.",
        cure="Remove the call.",
        reference="torch.Tensor.retain_grad",
        explanation="The .grad of a leaf is kept in any case, so that retain_grad() on it changes nothing; "
        "retains_grad stays False.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            a.retain_grad()
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
        """,
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
        explanation="After retain_grad() an intermediate tensor has a .grad of its own, which is what "
        "backward through that tensor gave. It is no parameter: optimiser.zero_grad() does not "
        "know it.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            c = a * 3
            c.retain_grad()
            (c * 2).backward()
            print(c.grad)
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            c = a * 3
            (c * 2).backward()
            print(a.grad)
        """,
    ),
    Rule(
        id="BL107",
        slug="assigned-grad-shape",
        title="a gradient of another shape is assigned to .grad",
        cause="A gradient has its tensor's shape, element for element.",
        cure="Sum it over the dims that were broadcast, or reshape it.",
        says="attempting to assign a gradient of size",
        explanation="An optimiser subtracts .grad from the tensor element by element, so both must have the "
        "same shape. A gradient of another shape mostly comes from a loss whose batch dim was not"
        " summed, or from a broadcast.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            a.grad = torch.ones(2)
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            a.grad = torch.ones(3)
        """,
    ),
    Rule(
        id="BL108",
        slug="assigned-grad-dtype",
        title="a gradient of another dtype is assigned to .grad",
        cause="A gradient has its tensor's dtype; NumPy arrays become float64, float32 tensors do not.",
        cure="Convert it: .to(tensor.dtype).",
        says="attempting to assign a gradient with dtype",
        explanation="A gradient has the dtype of its tensor, so that optimisers can compute with both. "
        "float64 often comes in through NumPy, whose default it is.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            a.grad = torch.from_numpy(np.ones(3))  # float64
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            a.grad = torch.from_numpy(np.ones(3)).to(a.dtype)
        """,
    ),
    Rule(
        id="BL109",
        slug="assigned-grad-kind",
        title="something that is no tensor is assigned to .grad",
        cause="A number or an array was assigned.",
        cure="Assign a tensor of the same shape and dtype, or None.",
        says="assigned grad expected to be a Tensor or None but got grad of type",
        explanation="`.grad` is a tensor or None. A number or a NumPy array has to be made a tensor of the "
        "right shape first.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            a.grad = 1.0
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            a.grad = torch.ones(3)
        """,
    ),
)
