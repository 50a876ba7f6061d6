"""BL4xx: requires_grad, and leaves that got lost."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import WARNING

NON_LEAF = "you can only change requires_grad flags of leaf variables."

RULES = (
    Rule(
        id="BL401",
        slug="integers-require-grad",
        title="a tensor of integers or booleans is to require grad",
        cause="Only floating point (and complex) values can be changed by a small step.",
        cure="Make it floating point: write 1. instead of 1, or .float() first.",
        says="Only Tensors of floating point and complex dtype can require gradients",
        reference="torch.Tensor.requires_grad",
        explanation="A gradient says how the loss changes when a value changes by a very small step. An "
        "integer cannot change by a small step. torch.tensor([1, 2]) is int64; a decimal point "
        "makes it float32.",
        wrong="""
            w = torch.tensor([1, 2], requires_grad=True)
        """,
        right="""
            w = torch.tensor([1.0, 2.0], requires_grad=True)
        """,
    ),
    Rule(
        id="BL402",
        slug="freeze-non-leaf",
        title="requires_grad is switched off on a tensor that an op computed",
        cause="Whether a result requires grad follows from what it was computed from.",
        cure="Use .detach() to go on without its history.",
        says=NON_LEAF
        + " If you want to use a computed variable in a subgraph that doesn't require differentiation use",
        reference="torch.Tensor.detach",
        explanation="requires_grad of a result is a consequence: it is True if an input's is. It can be "
        "chosen for leaves only. detach() returns the same values without their history.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            b = a * 2
            b.requires_grad = False
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = a * 2
            b = b.detach()
        """,
    ),
    Rule(
        id="BL403",
        slug="requires-grad-on-non-leaf",
        title="requires_grad = True is set on a tensor that an op computed",
        cause="It requires grad already, through what it was computed from.",
        cure="Remove the line; call .retain_grad() to see its gradient, or .detach().requires_grad_() for a new leaf.",
        says=NON_LEAF,
        reference="torch.Tensor.requires_grad",
        explanation="A tensor that an op computed from something that requires grad requires grad already. If"
        " it is to be a starting point of its own, it has to be cut off first, and then nothing "
        "before it gets a gradient.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            b = a * 2
            b.requires_grad = True
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = a * 2
            b.retain_grad()
        """,
    ),
    Rule(
        id="BL404",
        slug="detach-in-place-of-view",
        title="detach_() on a view",
        cause="A view's history belongs to its base and cannot be cut alone.",
        cure="Use detach(), which returns a new tensor.",
        says="Can't detach views in-place. Use detach() instead.",
        reference="torch.Tensor.detach_",
        explanation="detach_() would cut a view off from its base while both share memory and versions. "
        "detach() leaves the view as it is and returns a new tensor.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            b = (a * 2).view(-1)
            b.detach_()
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = (a * 2).view(-1)
            b = b.detach()
        """,
    ),
    Rule(
        id="BL405",
        slug="deepcopy-of-non-leaf",
        title="copy.deepcopy of a tensor that an op computed",
        cause="A deep copy would need a copy of the graph. A module that keeps computed tensors has the same problem.",
        cure="Copy the values: t.detach().clone(); do not keep computed tensors as attributes of a module.",
        says="Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.",
        explanation="A computed tensor refers to its graph, which a deep copy would have to copy, parameters "
        "included. Modules are copied by deepcopy (for averages of weights, for early stopping), "
        "and fail if one keeps a computed tensor as an attribute.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            b = a * 2
            copy.deepcopy(b)
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = a * 2
            b.detach().clone()
        """,
    ),
    Rule(
        id="BL406",
        slug="non-leaf-to-process",
        title="a tensor with a graph is sent to another process",
        cause="A graph cannot leave its process.",
        cure="Send t.detach().",
        says="Cowardly refusing to serialize non-leaf tensor which requires_grad",
        reference="torch.multiprocessing",
        explanation="A tensor that goes to another process travels as memory and shape. Its graph cannot: it "
        "refers to objects of this process.",
        wrong="""
            import torch.multiprocessing as mp
            a = torch.ones(2, requires_grad=True)
            mp.reductions.reduce_tensor(a * 2)
        """,
        right="""
            import torch.multiprocessing as mp
            a = torch.ones(2, requires_grad=True)
            mp.reductions.reduce_tensor((a * 2).detach())
        """,
    ),
    Rule(
        id="BL407",
        slug="module-requires-grad",
        title="requires_grad is set on a module: it changes no parameter",
        level=WARNING,
        cause="module.requires_grad = False makes a plain attribute.",
        cure="Call module.requires_grad_(False), with an underscore.",
        reference="torch.nn.Module.requires_grad_",
        explanation="A module takes any attribute. `requires_grad` is one of parameters, not of modules: "
        "assigning it to a module sets a plain attribute that nobody reads, and all parameters go"
        " on learning.",
        wrong="""
            layer = nn.Linear(2, 2)
            layer.requires_grad = False
        """,
        right="""
            layer = nn.Linear(2, 2)
            layer.requires_grad_(False)
        """,
    ),
    Rule(
        id="BL408",
        slug="detached-leaf",
        title="backward() ends at a leaf that was made of a detached result: what is before it gets no gradient",
        level=WARNING,
        cause=".detach().requires_grad_() makes a new leaf, from which no way leads back.",
        cure="Leave out .detach(); use .retain_grad() to see a gradient on the way.",
        reference="torch.Tensor.detach",
        explanation="detach() cuts, and requires_grad_() makes what is left a leaf. backward() is content "
        "with it and stops there: nothing that was computed before gets a gradient.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            d = (a * 2).detach().requires_grad_()
            d.sum().backward()
            print(a.grad)  # None
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            d = a * 2
            d.retain_grad()
            d.sum().backward()
            print(a.grad, d.grad)
        """,
    ),
    Rule(
        id="BL409",
        slug="parameter-rebound",
        title="w = w - ... makes a new tensor: the name no longer holds the leaf",
        level=WARNING,
        cause="The update was written out of place, with recording on.",
        cure="Update in place inside torch.no_grad(): w -= lr * w.grad.",
        says="The .grad attribute of a Tensor that is not a leaf Tensor is being accessed.",
        reference="torch.Tensor.is_leaf",
        explanation="`w = w - lr * w.grad` computes a new tensor and gives it the old name. The new one is "
        "the result of an op: no leaf, so that the next backward() leaves its .grad None. `w -= "
        "...` writes into the leaf, inside no_grad().",
        wrong="""
            w = torch.ones(2, requires_grad=True)
            for step in range(2):
                (w * 2).sum().backward()
                print(w.grad)
                w = w - 0.1
        """,
        right="""
            w = torch.ones(2, requires_grad=True)
            for step in range(2):
                w.grad = None
                (w * 2).sum().backward()
                with torch.no_grad():
                    w -= 0.1
        """,
    ),
    Rule(
        id="BL410",
        slug="parameter-rebound-in-no-grad",
        title="w = w - ... under no_grad() makes a new tensor that does not require grad",
        cause="The update was written out of place; the new tensor knows nothing of requires_grad.",
        cure="Update in place inside torch.no_grad(): w -= lr * w.grad.",
        says="element 0 of tensors does not require grad and does not have a grad_fn",
        reference="torch.no_grad",
        explanation="Inside no_grad() `w = w - lr * w.grad` makes a new tensor that was not recorded and does"
        " not require grad. The name no longer holds the parameter, and the next backward() finds"
        " no graph.",
        wrong="""
            w = torch.ones(2, requires_grad=True)
            (w * 2).sum().backward()
            with torch.no_grad():
                w = w - 0.1 * w.grad
            (w * 2).sum().backward()
        """,
        right="""
            w = torch.ones(2, requires_grad=True)
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
            (w * 2).sum().backward()
        """,
    ),
    Rule(
        id="BL411",
        slug="all-frozen",
        title="backward() of a model whose parameters are all frozen",
        cause="requires_grad_(False) was called on all that the loss was computed from.",
        cure="Leave what is to be learned unfrozen, or let the input require grad.",
        says="element 0 of tensors does not require grad and does not have a grad_fn",
        reference="torch.nn.Module.requires_grad_",
        explanation="If no parameter and no input requires grad, nothing is recorded, and there is nothing "
        "for backward() to do. It happens when a whole model is frozen, and the new head was "
        "meant to be left out.",
        wrong="""
            model = nn.Linear(1, 1).requires_grad_(False)
            model(torch.ones(1, 1)).sum().backward()
        """,
        right="""
            backbone = nn.Linear(1, 1).requires_grad_(False)
            head = nn.Linear(1, 1)
            head(backbone(torch.ones(1, 1))).sum().backward()
        """,
    ),
)
