"""BL3xx: in-place writes, and memory that two tensors share."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

IN_PLACE = "PyTorch's documentation, Autograd mechanics, In-place operations with autograd"
MODIFIED = "one of the variables needed for gradient computation has been modified by an inplace operation"

RULES = (
    Rule(
        id="BL301",
        slug="in-place-on-leaf",
        title="an in-place op on a leaf that requires grad",
        cause="A leaf's value is where its gradient is taken: an op that writes to it would have to be differentiated "
        "through.",
        cure="Write a new tensor (a = a + 1), or write inside torch.no_grad() to leave the write out of the graph.",
        says="a leaf Variable that requires grad is being used in an in-place operation.",
        reference=IN_PLACE,
        explanation="A leaf that requires grad is where differentiation ends: its gradient is the slope of "
        "the loss by the value that the forward used. An in-place op would turn that value into "
        "the result of an op and make the leaf an intermediate tensor, so it is refused.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            a += 1
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = a + 1
        """,
    ),
    Rule(
        id="BL302",
        slug="update-without-no-grad",
        title="a parameter is updated outside of torch.no_grad()",
        cause="The step of the optimiser is written by hand and would be recorded.",
        cure="Put the update inside with torch.no_grad():",
        says="a leaf Variable that requires grad is being used in an in-place operation.",
        reference="torch.no_grad",
        explanation="A step of gradient descent changes the parameter's value and is not to be "
        "differentiated. no_grad() says so; the parameter stays the same leaf, and optimisers see"
        " the new value.",
        wrong="""
            w = torch.ones(2, requires_grad=True)
            (w * 2).sum().backward()
            w -= 0.1 * w.grad
        """,
        right="""
            w = torch.ones(2, requires_grad=True)
            (w * 2).sum().backward()
            with torch.no_grad():
                w -= 0.1 * w.grad
        """,
    ),
    Rule(
        id="BL303",
        slug="in-place-on-view-of-leaf",
        title="an in-place op on a view of a leaf that requires grad",
        cause="Indexing and view() share the leaf's memory, so that writing to them writes to the leaf.",
        cure="Write inside torch.no_grad(), or to a clone().",
        says="a view of a leaf Variable that requires grad is being used in an in-place operation.",
        reference=IN_PLACE,
        explanation="a[0], a.view(-1) and a.t() share the memory of a: a write to them is a write to the leaf"
        " a, which is refused as in BL301.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            a[0] = 5
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = a.clone()
            b[0] = 5
        """,
    ),
    Rule(
        id="BL304",
        slug="saved-tensor-modified",
        title="a tensor that backward needs was written to after it was saved",
        cause="A derivative needs the value that the forward used; an in-place op has replaced it.",
        cure="Use the out-of-place form of the writing op, or write to a clone().",
        says=MODIFIED,
        reference=IN_PLACE,
        explanation="Many derivatives need what the forward computed: that of exp its result, that of a "
        "product the other factor. The graph keeps the tensor itself, not a copy, and a count of "
        "writes (its version). In backward the count is compared: a tensor that was written to "
        "since would give a wrong gradient, so the walk stops. PyTorch names neither the line "
        "that saved nor the line that wrote; the evidence here does.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            b = torch.exp(a)
            b.add_(1)
            b.sum().backward()
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = torch.exp(a)
            b = b.add(1)
            b.sum().backward()
        """,
    ),
    Rule(
        id="BL305",
        slug="step-before-backward",
        title="optimizer.step() changed parameters that a later backward() still needs",
        cause="Part of the graph was built before step(), and its backward() comes after it.",
        cure="Call all backward() before step(), or compute the forward again after it.",
        says=MODIFIED,
        reference="torch.optim, Taking an optimization step",
        explanation="optimizer.step() writes to the parameters in place, and a graph that was built before it"
        " keeps them for its derivatives. A backward() after the step would use the new weights "
        "for a forward that ran with the old ones. It happens with two optimisers (GANs, actor "
        "and critic) that step in between, and with retain_graph=True.",
        wrong="""
            first, second = nn.Linear(2, 2), nn.Linear(2, 1)
            optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
            y = second(first(torch.ones(1, 2))).sum()
            y.backward(retain_graph=True)
            optimizer.step()
            y.backward()
        """,
        right="""
            first, second = nn.Linear(2, 2), nn.Linear(2, 1)
            optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
            for step in range(2):
                optimizer.zero_grad()
                second(first(torch.ones(1, 2))).sum().backward()
                optimizer.step()
        """,
    ),
    Rule(
        id="BL306",
        slug="data-write-to-saved",
        title="a write through .data changed a tensor that backward needs: the gradient is wrong",
        level=WARNING,
        cause=".data is not watched: no version is counted and no error is raised.",
        cure="Write inside torch.no_grad() instead of through .data, and to a clone() if backward needs the value.",
        reference=IN_PLACE,
        explanation=".data gives a tensor that shares memory and knows nothing of the graph: writes through "
        "it are not counted, and backward computes with the new value as if the forward had used "
        "it. The gradient is wrong, and nothing is said. Strict mode finds it by fingerprints of "
        "what was saved.",
        wrong="""
            a = torch.tensor(3.0, requires_grad=True)
            h = a * 1
            y = h * h
            h.data.fill_(100.0)
            y.backward()
            print(a.grad)  # 200, right is 6
        """,
        right="""
            a = torch.tensor(3.0, requires_grad=True)
            h = a * 1
            y = h * h
            y.backward()
            print(a.grad)
        """,
    ),
    Rule(
        id="BL307",
        slug="array-write-to-saved",
        title="a write to a NumPy array changed a tensor that backward needs: the gradient is wrong",
        level=WARNING,
        cause="t.detach().numpy() shares the tensor's memory, and NumPy's writes are not counted.",
        cure="Copy first: t.detach().numpy().copy().",
        reference="torch.Tensor.numpy",
        explanation="t.detach().numpy() is the tensor's own memory under NumPy's name. NumPy's writes are not"
        " counted, so that backward computes with the new value as if the forward had used it.",
        wrong="""
            a = torch.tensor([3.0], requires_grad=True)
            h = a * 1
            y = (h * h).sum()
            h.detach().numpy()[0] = 100.0
            y.backward()
            print(a.grad)  # 200, right is 6
        """,
        right="""
            a = torch.tensor([3.0], requires_grad=True)
            h = a * 1
            y = (h * h).sum()
            h.detach().numpy().copy()[0] = 100.0
            y.backward()
            print(a.grad)
        """,
    ),
    Rule(
        id="BL308",
        slug="detached-shares-memory",
        title="a write to a detached tensor changes the tensor that it was detached from",
        level=WARNING,
        cause="detach() shares memory; it does not copy.",
        cure="Copy first: t.detach().clone().",
        reference="torch.Tensor.detach",
        explanation="detach() returns a tensor without history that shares memory with the one it was called "
        "on. Writing to it changes both. (The write is counted, so that backward notices if it "
        "needed the old value.)",
        wrong="""
            weights = torch.ones(2, requires_grad=True)
            before = weights.detach()
            before[0] = 9
            print(weights)  # 9 as well
        """,
        right="""
            weights = torch.ones(2, requires_grad=True)
            before = weights.detach().clone()
            before[0] = 9
            print(weights)
        """,
    ),
    Rule(
        id="BL309",
        slug="in-place-on-one-of-several-views",
        title="an in-place op on one of several views that one op returned",
        cause="split, unbind, chunk and iterating over a tensor return views that share one history.",
        cure="Use the out-of-place op, or index instead: a[:2] is a view that may be written to.",
        says="Output 0 of Split is a view and is being modified inplace. This view is the output of a function that "
        "returns multiple views.",
        reference="PyTorch's documentation, Tensor Views",
        explanation="A write to a view is recorded as a new history of its base. An op that returns several "
        "views of one base at once (split, chunk, unbind, iterating) has one node for all of "
        "them, whose history cannot be rewritten for one.",
        wrong="""
            a = torch.ones(4, requires_grad=True) * 1
            first, second = a.split(2)
            first.mul_(2)
        """,
        right="""
            a = torch.ones(4, requires_grad=True) * 1
            a[:2].mul_(2)
        """,
    ),
    Rule(
        id="BL310",
        slug="view-made-in-no-grad",
        title="a view that was made under no_grad() is written to with recording on",
        cause="It is not clear whether the write should be part of the graph.",
        cure="Put both the view and the write inside the block, or both outside.",
        says="A view was created in no_grad mode and is being modified inplace with grad mode enabled.",
        reference="torch.no_grad",
        explanation="A view made without recording has no history, its base has one. Whether a write to the "
        "view should be recorded in the base's history is not clear, so it is refused.",
        wrong="""
            a = torch.ones(4, requires_grad=True) * 1
            with torch.no_grad():
                view = a.view(2, 2)
            view.mul_(2)
        """,
        right="""
            a = torch.ones(4, requires_grad=True) * 1
            view = a.view(2, 2)
            view.mul_(2)
        """,
    ),
    Rule(
        id="BL311",
        slug="write-to-expanded",
        title="an in-place op on an expanded tensor, whose elements share memory",
        cause="expand() and broadcast_to() repeat without copying.",
        cure="Copy first: t.expand(3).clone().",
        says="more than one element of the written-to tensor refers to a single memory location.",
        reference="torch.Tensor.expand",
        explanation="expand() makes a tensor larger by reading the same memory several times. A write would "
        "meet itself: which of the values should win is not defined.",
        wrong="""
            a = torch.ones(1)
            a.expand(3).add_(torch.arange(3.0))
        """,
        right="""
            a = torch.ones(1)
            a.expand(3).clone().add_(torch.arange(3.0))
        """,
    ),
    Rule(
        id="BL312",
        slug="in-place-on-view-is-recorded",
        title="a write to a view is a write to its base, and gradients follow it",
        level=NOTE,
        cause="The view shares its base's memory.",
        cure="Nothing needs to change; use clone() if the base was not to change.",
        reference="PyTorch's documentation, Tensor Views",
        explanation="b[:2].mul_(3) changes b, and the graph knows: the gradient of the first two elements is "
        "three times as large. This is correct, and surprises those who took the slice for a "
        "copy.",
        wrong="""
            a = torch.ones(4, requires_grad=True)
            b = a * 1
            view = b[:2]
            view.mul_(3)
            b.sum().backward()
        """,
        right="""
            a = torch.ones(4, requires_grad=True)
            b = a * 1
            view = b[:2].clone()
            b.sum().backward()
        """,
    ),
    Rule(
        id="BL313",
        slug="buffer-joins-graph",
        title="an in-place op made a tensor that required no grad part of the graph",
        level=NOTE,
        cause="Something that requires grad was added to it in place.",
        cure="Nothing needs to change if that was meant; add .detach() to what is added if not.",
        reference=IN_PLACE,
        explanation="An in-place op on a tensor that requires no grad, with one that does, makes the first "
        "part of the graph: it requires grad from then on. For a buffer that runs over many "
        "iterations that keeps all their graphs alive.",
        wrong="""
            total = torch.zeros(2)
            w = torch.ones(2, requires_grad=True)
            total += w
        """,
        right="""
            total = torch.zeros(2)
            w = torch.ones(2, requires_grad=True)
            total += w.detach()
        """,
    ),
)
