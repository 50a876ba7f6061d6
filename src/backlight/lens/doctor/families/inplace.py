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
    ),
    Rule(
        id="BL302",
        slug="update-without-no-grad",
        title="a parameter is updated outside of torch.no_grad()",
        cause="The step of the optimiser is written by hand and would be recorded.",
        cure="Put the update inside with torch.no_grad():",
        says="a leaf Variable that requires grad is being used in an in-place operation.",
        reference="torch.no_grad",
    ),
    Rule(
        id="BL303",
        slug="in-place-on-view-of-leaf",
        title="an in-place op on a view of a leaf that requires grad",
        cause="Indexing and view() share the leaf's memory, so that writing to them writes to the leaf.",
        cure="Write inside torch.no_grad(), or to a clone().",
        says="a view of a leaf Variable that requires grad is being used in an in-place operation.",
        reference=IN_PLACE,
    ),
    Rule(
        id="BL304",
        slug="saved-tensor-modified",
        title="a tensor that backward needs was written to after it was saved",
        cause="A derivative needs the value that the forward used; an in-place op has replaced it.",
        cure="Use the out-of-place form of the writing op, or write to a clone().",
        says=MODIFIED,
        reference=IN_PLACE,
    ),
    Rule(
        id="BL305",
        slug="step-before-backward",
        title="optimizer.step() changed parameters that a later backward() still needs",
        cause="Part of the graph was built before step(), and its backward() comes after it.",
        cure="Call all backward() before step(), or compute the forward again after it.",
        says=MODIFIED,
        reference="torch.optim, Taking an optimization step",
    ),
    Rule(
        id="BL306",
        slug="data-write-to-saved",
        title="a write through .data changed a tensor that backward needs: the gradient is wrong",
        level=WARNING,
        cause=".data is not watched: no version is counted and no error is raised.",
        cure="Write inside torch.no_grad() instead of through .data, and to a clone() if backward needs the value.",
        reference=IN_PLACE,
    ),
    Rule(
        id="BL307",
        slug="array-write-to-saved",
        title="a write to a NumPy array changed a tensor that backward needs: the gradient is wrong",
        level=WARNING,
        cause="t.detach().numpy() shares the tensor's memory, and NumPy's writes are not counted.",
        cure="Copy first: t.detach().numpy().copy().",
        reference="torch.Tensor.numpy",
    ),
    Rule(
        id="BL308",
        slug="detached-shares-memory",
        title="a write to a detached tensor changes the tensor that it was detached from",
        level=WARNING,
        cause="detach() shares memory; it does not copy.",
        cure="Copy first: t.detach().clone().",
        reference="torch.Tensor.detach",
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
    ),
    Rule(
        id="BL310",
        slug="view-made-in-no-grad",
        title="a view that was made under no_grad() is written to with recording on",
        cause="It is not clear whether the write should be part of the graph.",
        cure="Put both the view and the write inside the block, or both outside.",
        says="A view was created in no_grad mode and is being modified inplace with grad mode enabled.",
        reference="torch.no_grad",
    ),
    Rule(
        id="BL311",
        slug="write-to-expanded",
        title="an in-place op on an expanded tensor, whose elements share memory",
        cause="expand() and broadcast_to() repeat without copying.",
        cure="Copy first: t.expand(3).clone().",
        says="more than one element of the written-to tensor refers to a single memory location.",
        reference="torch.Tensor.expand",
    ),
    Rule(
        id="BL312",
        slug="in-place-on-view-is-recorded",
        title="a write to a view is a write to its base, and gradients follow it",
        level=NOTE,
        cause="The view shares its base's memory.",
        cure="Nothing needs to change; use clone() if the base was not to change.",
        reference="PyTorch's documentation, Tensor Views",
    ),
    Rule(
        id="BL313",
        slug="buffer-joins-graph",
        title="an in-place op made a tensor that required no grad part of the graph",
        level=NOTE,
        cause="Something that requires grad was added to it in place.",
        cure="Nothing needs to change if that was meant; add .detach() to what is added if not.",
        reference=IN_PLACE,
    ),
)
