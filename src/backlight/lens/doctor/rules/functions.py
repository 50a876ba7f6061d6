"""BL9xx: hooks, custom Functions, checkpoints."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

EXTENDING = "PyTorch's documentation, Extending PyTorch, torch.autograd"
CHECKPOINT = "torch.utils.checkpoint"

RULES = (
    Rule(
        id="BL901",
        slug="hook-without-requires-grad",
        title="a hook on a tensor that does not require grad",
        cause="No gradient ever reaches it.",
        cure="Let it require grad before, or hook another tensor.",
        says="cannot register a hook on a tensor that doesn't require gradient",
        reference="torch.Tensor.register_hook",
        explanation="A hook is called with the gradient that arrives at a tensor. None arrives at one that "
        "does not require grad.",
        wrong="""
            torch.ones(1).register_hook(print)
        """,
        right="""
            torch.ones(1, requires_grad=True).register_hook(print)
        """,
    ),
    Rule(
        id="BL902",
        slug="hook-changed-shape",
        title="a hook returned a gradient of another shape",
        cause="What a hook returns takes the gradient's place.",
        cure="Return a gradient of the same shape, or None to leave it.",
        says="has changed the size of value",
        reference="torch.Tensor.register_hook",
        explanation="What a hook returns is used instead of the gradient from there on, so that it must have "
        "its shape.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            b = a * 2
            b.register_hook(lambda grad: grad.sum())
            b.sum().backward()
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            b = a * 2
            b.register_hook(lambda grad: grad * 2)
            b.sum().backward()
        """,
    ),
    Rule(
        id="BL903",
        slug="hook-returned-no-tensor",
        title="a hook returned something that is no tensor",
        cause="What a hook returns takes the gradient's place.",
        cure="Return a tensor, or None to leave the gradient as it is.",
        says="expected Variable, but hook returned",
        reference="torch.Tensor.register_hook",
        explanation="What a hook returns is used instead of the gradient. A hook that only looks returns None.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            b = a * 2
            b.register_hook(lambda grad: 1)
            b.sum().backward()
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            b = a * 2
            b.register_hook(lambda grad: None)
            b.sum().backward()
        """,
    ),
    Rule(
        id="BL904",
        slug="post-accumulate-hook-on-non-leaf",
        title="a post-accumulate hook on a tensor that an op computed",
        cause="Only leaves accumulate a gradient.",
        cure="Use register_hook, or hook the leaf.",
        says="post accumulate grad hooks cannot be registered on non-leaf tensors",
        reference="torch.Tensor.register_post_accumulate_grad_hook",
        explanation="A post-accumulate hook runs when .grad of a leaf has been written. An intermediate "
        "tensor accumulates nothing.",
        wrong="""
            a = torch.ones(2, requires_grad=True)
            (a * 2).register_post_accumulate_grad_hook(print)
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            a.register_post_accumulate_grad_hook(print)
        """,
    ),
    Rule(
        id="BL905",
        slug="backward-hook-and-in-place",
        title="the output of a module with a full backward hook is written to in place",
        cause="The hook wraps the module's output in a Function of its own, whose output may not be written to.",
        cure="Use the out-of-place op (y = y + 1), or a tensor hook on the output.",
        says="Output 0 of BackwardHookFunction is a view and is being modified inplace.",
        reference="torch.nn.Module.register_full_backward_hook",
        explanation="A full backward hook wraps input and output of its module in a custom Function, to see "
        "their gradients. The module's output is then a view that this Function returned, and may"
        " not be written to (as BL906).",
        wrong="""
            layer = nn.Linear(2, 2)
            layer.register_full_backward_hook(lambda *args: None)
            y = layer(torch.ones(1, 2, requires_grad=True))
            y.add_(1)
        """,
        right="""
            layer = nn.Linear(2, 2)
            layer.register_full_backward_hook(lambda *args: None)
            y = layer(torch.ones(1, 2, requires_grad=True))
            y = y + 1
        """,
    ),
    Rule(
        id="BL906",
        slug="function-returned-view",
        title="a view that a custom Function returned is written to in place",
        cause="The Function returns its input, or a view of it: the write would go around its backward.",
        cure="Return a clone() from the Function, or write out of place.",
        says="This view was created inside a custom Function",
        reference=EXTENDING,
        explanation="A write to a view is recorded as a new history of its base. The base of a view that a "
        "custom Function returned is the Function's input: the new history would not pass through"
        " the Function's backward, and the gradient would be wrong.",
        wrong="""
            class Same(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.view_as(x)
                @staticmethod
                def backward(ctx, grad):
                    return grad
            y = Same.apply(torch.ones(4, requires_grad=True) * 1)
            y.mul_(2)
        """,
        right="""
            class Same(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x.clone()
                @staticmethod
                def backward(ctx, grad):
                    return grad
            y = Same.apply(torch.ones(4, requires_grad=True) * 1)
            y.mul_(2)
        """,
    ),
    Rule(
        id="BL907",
        slug="function-gradient-shape",
        title="a custom Function's backward returned a gradient of the wrong shape",
        cause="Each gradient has to have the shape of the forward's input.",
        cure="Reshape it, or sum it over the dims that were broadcast.",
        says="Function BadBackward returned an invalid gradient at index 0",
        reference=EXTENDING,
        explanation="backward(ctx, grad) gets the gradient of the output and returns that of each input: of "
        "the input's shape, whatever the output's is.",
        wrong="""
            class Double(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 2
                @staticmethod
                def backward(ctx, grad):
                    return grad.sum().expand(5)
            Double.apply(torch.ones(3, requires_grad=True)).sum().backward()
        """,
        right="""
            class Double(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 2
                @staticmethod
                def backward(ctx, grad):
                    return grad * 2
            Double.apply(torch.ones(3, requires_grad=True)).sum().backward()
        """,
    ),
    Rule(
        id="BL908",
        slug="function-gradient-count",
        title="a custom Function's backward returned the wrong number of gradients",
        cause="backward() returns one gradient for each argument of forward(), None for those that need none.",
        cure="Return as many as forward() has arguments.",
        says="returned an incorrect number of gradients",
        reference=EXTENDING,
        explanation="backward() returns one gradient for each argument of forward() after ctx, in the same "
        "order; None for what needs none, such as options.",
        wrong="""
            class Product(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, y):
                    return x * y
                @staticmethod
                def backward(ctx, grad):
                    return grad
            x = torch.ones(3, requires_grad=True)
            Product.apply(x, x).sum().backward()
        """,
        right="""
            class Product(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x, y):
                    ctx.save_for_backward(x, y)
                    return x * y
                @staticmethod
                def backward(ctx, grad):
                    x, y = ctx.saved_tensors
                    return grad * y, grad * x
            x = torch.ones(3, requires_grad=True)
            Product.apply(x, x).sum().backward()
        """,
    ),
    Rule(
        id="BL909",
        slug="unpack-changed-tensor",
        title="an unpack hook returned another tensor than was packed",
        level=WARNING,
        cause="saved_tensors_hooks gives backward what unpack returns, and nothing checks it.",
        cure="Return a tensor of the shape and dtype that was packed.",
        reference="torch.autograd.graph.saved_tensors_hooks",
        explanation="saved_tensors_hooks(pack, unpack) lets a program keep saved tensors its own way: on "
        "disk, compressed. Backward computes with whatever unpack returns. A tensor of another "
        "shape may broadcast, and give a wrong gradient or, as here, the right one by chance.",
        wrong="""
            a = torch.ones(3, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:1]):
                b = a * a
            b.sum().backward()
        """,
        right="""
            a = torch.ones(3, requires_grad=True)
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                b = a * a
            b.sum().backward()
        """,
    ),
    Rule(
        id="BL910",
        slug="saved-tensor-hooks-disabled",
        title="saved_tensors_hooks inside disable_saved_tensors_hooks",
        cause="The block around forbids them.",
        cure="Move one of the two blocks.",
        says="what disable_saved_tensors_hooks was given as its message",
        reference="torch.autograd.graph.disable_saved_tensors_hooks",
        explanation="disable_saved_tensors_hooks(message) forbids hooks inside its block, for code that could"
        " not work with them; the error is the message that it was given.",
        wrong="""
            with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
                with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                    pass
        """,
        right="""
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                pass
        """,
    ),
    Rule(
        id="BL911",
        slug="checkpoint-without-use-reentrant",
        title="checkpoint() without use_reentrant",
        level=WARNING,
        cause="The two variants behave differently, and the default is to change.",
        cure="Pass use_reentrant=False.",
        says="torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly.",
        reference=CHECKPOINT,
        explanation="The reentrant variant runs a second backward inside of backward and has limits: no "
        "autograd.grad, inputs must require grad. The other one has none of these, and is what "
        "PyTorch recommends.",
        wrong="""
            from torch.utils.checkpoint import checkpoint
            checkpoint(lambda x: x * 2, torch.ones(1, requires_grad=True))
        """,
        right="""
            from torch.utils.checkpoint import checkpoint
            checkpoint(lambda x: x * 2, torch.ones(1, requires_grad=True), use_reentrant=False)
        """,
    ),
    Rule(
        id="BL912",
        slug="checkpoint-without-grad-inputs",
        title="a reentrant checkpoint whose inputs require no grad: its parameters get no gradient",
        level=WARNING,
        cause="The reentrant variant records its output only if an input requires grad.",
        cure="Pass use_reentrant=False.",
        says="None of the inputs have requires_grad=True. Gradients will be None",
        reference=CHECKPOINT,
        explanation="The reentrant variant is a custom Function around the block. Its output requires grad "
        "only if an input does; parameters inside do not count. A first block, whose input is "
        "data, learns nothing.",
        wrong="""
            from torch.utils.checkpoint import checkpoint
            layer = nn.Linear(1, 1)
            y = checkpoint(layer, torch.ones(1, 1), use_reentrant=True)
        """,
        right="""
            from torch.utils.checkpoint import checkpoint
            layer = nn.Linear(1, 1)
            y = checkpoint(layer, torch.ones(1, 1), use_reentrant=False)
        """,
    ),
    Rule(
        id="BL913",
        slug="mutation-allowed",
        title="allow_mutation_on_saved_tensors copies what is written to: correct, and costs memory",
        level=NOTE,
        cause="A saved tensor was written to inside the block.",
        cure="Nothing needs to change.",
        reference="torch.autograd.graph.allow_mutation_on_saved_tensors",
        explanation="Inside the block a saved tensor that is written to is copied first, so that backward "
        "still finds what the forward used.",
        wrong="""
            with torch.autograd.graph.allow_mutation_on_saved_tensors():
                a = torch.ones(2, requires_grad=True)
                b = torch.exp(a)
                c = b * b
                b.zero_()
                c.sum().backward()
        """,
        right="""
            a = torch.ones(2, requires_grad=True)
            b = torch.exp(a)
            c = b * b
            c.sum().backward()
        """,
    ),
    Rule(
        id="BL914",
        slug="anomaly-mode-on",
        title="anomaly mode is on: each step takes several times as long",
        level=NOTE,
        cause="detect_anomaly() or set_detect_anomaly(True) was left on.",
        cure="Switch it off when the mistake is found.",
        says="Anomaly Detection has been enabled.",
        reference="torch.autograd.detect_anomaly",
        explanation="Anomaly mode keeps a traceback for each node and looks at every gradient. It is meant "
        "for one search, not for training.",
        wrong="""
            with torch.autograd.detect_anomaly():
                torch.ones(1, requires_grad=True).sum().backward()
        """,
        right="""
            torch.ones(1, requires_grad=True).sum().backward()
        """,
    ),
)
