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
    ),
    Rule(
        id="BL403",
        slug="requires-grad-on-non-leaf",
        title="requires_grad = True is set on a tensor that an op computed",
        cause="It requires grad already, through what it was computed from.",
        cure="Remove the line; call .retain_grad() to see its gradient, or .detach().requires_grad_() for a new leaf.",
        says=NON_LEAF,
        reference="torch.Tensor.requires_grad",
    ),
    Rule(
        id="BL404",
        slug="detach-in-place-of-view",
        title="detach_() on a view",
        cause="A view's history belongs to its base and cannot be cut alone.",
        cure="Use detach(), which returns a new tensor.",
        says="Can't detach views in-place. Use detach() instead.",
        reference="torch.Tensor.detach_",
    ),
    Rule(
        id="BL405",
        slug="deepcopy-of-non-leaf",
        title="copy.deepcopy of a tensor that an op computed",
        cause="A deep copy would need a copy of the graph. A module that keeps computed tensors has the same problem.",
        cure="Copy the values: t.detach().clone(); do not keep computed tensors as attributes of a module.",
        says="Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.",
    ),
    Rule(
        id="BL406",
        slug="non-leaf-to-process",
        title="a tensor with a graph is sent to another process",
        cause="A graph cannot leave its process.",
        cure="Send t.detach().",
        says="Cowardly refusing to serialize non-leaf tensor which requires_grad",
        reference="torch.multiprocessing",
    ),
    Rule(
        id="BL407",
        slug="module-requires-grad",
        title="requires_grad is set on a module: it changes no parameter",
        level=WARNING,
        cause="module.requires_grad = False makes a plain attribute.",
        cure="Call module.requires_grad_(False), with an underscore.",
        reference="torch.nn.Module.requires_grad_",
    ),
    Rule(
        id="BL408",
        slug="detached-leaf",
        title="backward() ends at a leaf that was made of a detached result: what is before it gets no gradient",
        level=WARNING,
        cause=".detach().requires_grad_() makes a new leaf, from which no way leads back.",
        cure="Leave out .detach(); use .retain_grad() to see a gradient on the way.",
        reference="torch.Tensor.detach",
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
    ),
    Rule(
        id="BL410",
        slug="parameter-rebound-in-no-grad",
        title="w = w - ... under no_grad() makes a new tensor that does not require grad",
        cause="The update was written out of place; the new tensor knows nothing of requires_grad.",
        cure="Update in place inside torch.no_grad(): w -= lr * w.grad.",
        says="element 0 of tensors does not require grad and does not have a grad_fn",
        reference="torch.no_grad",
    ),
    Rule(
        id="BL411",
        slug="all-frozen",
        title="backward() of a model whose parameters are all frozen",
        cause="requires_grad_(False) was called on all that the loss was computed from.",
        cure="Leave what is to be learned unfrozen, or let the input require grad.",
        says="element 0 of tensors does not require grad and does not have a grad_fn",
        reference="torch.nn.Module.requires_grad_",
    ),
)
