"""BL6xx: autograd.grad, no_grad, inference_mode."""

from backlight.lens.doctor.rule import Rule
from backlight.lens.finding import NOTE, WARNING

INFERENCE = "PyTorch's documentation, Autograd mechanics, Inference Mode"
UNUSED = "The differentiated Tensor at index 0 appears to not have been used in the graph."

RULES = (
    Rule(
        id="BL601",
        slug="unused-input",
        title="autograd.grad is asked for the gradient of a tensor that the output does not depend on",
        cause="No way leads from the output to that tensor.",
        cure="Check that the forward uses this very tensor, or pass allow_unused=True to get None.",
        says=UNUSED,
        reference="torch.autograd.grad",
        explanation="autograd.grad(y, x) follows the graph of y back to x. If x is not in it, there is no "
        "gradient: not 0, but none. Mostly the forward used another tensor than x, for instance a"
        " copy.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            b = torch.tensor(3.0, requires_grad=True)
            torch.autograd.grad(a * 2, [a, b])
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            b = torch.tensor(3.0, requires_grad=True)
            torch.autograd.grad(a * b, [a, b])
        """,
    ),
    Rule(
        id="BL602",
        slug="input-without-requires-grad",
        title="autograd.grad is asked for the gradient of a tensor that does not require grad",
        cause="The tensor was made without requires_grad=True.",
        cure="Call .requires_grad_() on it before the forward.",
        says="One of the differentiated Tensors does not require grad",
        reference="torch.autograd.grad",
        explanation="A tensor that does not require grad was a constant for the forward. Its gradient can "
        "only be had if it required grad when the forward ran.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            x = torch.tensor(3.0)
            torch.autograd.grad(a * x, [x])
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            x = torch.tensor(3.0, requires_grad=True)
            torch.autograd.grad(a * x, [x])
        """,
    ),
    Rule(
        id="BL603",
        slug="grad-without-create-graph",
        title="a gradient is to be differentiated, and was computed without create_graph=True",
        cause="Without create_graph=True the backward is not recorded: the gradient is a plain value.",
        cure="Pass create_graph=True to the first autograd.grad.",
        says="element 0 of tensors does not require grad and does not have a grad_fn",
        reference="torch.autograd.grad, create_graph",
        explanation="Second derivatives (gradient penalties, Hessians, meta learning) differentiate a "
        "gradient. It has a graph only if its own computation was recorded, by create_graph=True.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            (slope,) = torch.autograd.grad(a ** 3, a)
            torch.autograd.grad(slope, a)
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            (slope,) = torch.autograd.grad(a ** 3, a, create_graph=True)
            torch.autograd.grad(slope, a)
        """,
    ),
    Rule(
        id="BL604",
        slug="remade-input",
        title="autograd.grad is asked for the gradient of a copy or slice made after the forward",
        cause="An index, clone() or view() makes a new tensor, and the forward did not use that one.",
        cure="Ask for the gradient of the tensor that the forward used, and index the gradient.",
        says=UNUSED,
        reference="torch.autograd.grad",
        explanation="x[0] and x.clone() are new tensors each time that they are written. The forward used x "
        "itself; a slice made afterwards is not in its graph.",
        wrong="""
            x = torch.ones(3, requires_grad=True)
            y = (x * 2).sum()
            torch.autograd.grad(y, x[0])
        """,
        right="""
            x = torch.ones(3, requires_grad=True)
            y = (x * 2).sum()
            torch.autograd.grad(y, x)[0][0]
        """,
    ),
    Rule(
        id="BL605",
        slug="once-differentiable",
        title="a Function marked @once_differentiable is differentiated twice",
        cause="Its backward runs without recording, so that its result has no graph.",
        cure="Write the backward in differentiable ops and remove @once_differentiable.",
        says="element 0 of tensors does not require grad and does not have a grad_fn",
        reference="torch.autograd.function.once_differentiable",
        explanation="@once_differentiable says that a backward is not written in differentiable ops. It runs "
        "without recording, so that its result cannot be differentiated again.",
        wrong="""
            from torch.autograd.function import once_differentiable
            class Square(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x * x
                @staticmethod
                @once_differentiable
                def backward(ctx, grad):
                    (x,) = ctx.saved_tensors
                    return 2 * x * grad
            a = torch.tensor(2.0, requires_grad=True)
            (slope,) = torch.autograd.grad(Square.apply(a), a, create_graph=True)
            slope.backward()
        """,
        right="""
            class Square(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    ctx.save_for_backward(x)
                    return x * x
                @staticmethod
                def backward(ctx, grad):
                    (x,) = ctx.saved_tensors
                    return 2 * x * grad
            a = torch.tensor(2.0, requires_grad=True)
            (slope,) = torch.autograd.grad(Square.apply(a), a, create_graph=True)
            slope.backward()
        """,
    ),
    Rule(
        id="BL606",
        slug="allow-unused",
        title="autograd.grad returns None for an input that the output does not depend on",
        level=NOTE,
        cause="allow_unused=True (or materialize_grads=True, which gives zeros) was passed.",
        cure="Nothing needs to change; check for None before using it.",
        reference="torch.autograd.grad, allow_unused",
        explanation="With allow_unused=True an input that the output does not depend on has the gradient "
        "None; with materialize_grads=True it is a tensor of zeros.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            b = torch.tensor(3.0, requires_grad=True)
            torch.autograd.grad(a * 2, [a, b], allow_unused=True)
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            torch.autograd.grad(a * 2, [a])
        """,
    ),
    Rule(
        id="BL611",
        slug="inference-tensor-in-graph",
        title="a tensor made in inference_mode() is used in a computation that is recorded",
        cause="inference_mode() makes tensors that can never take part in a graph.",
        cure="Use torch.no_grad() instead, or .clone() the tensor outside of the block.",
        says="Inference tensors cannot be saved for backward.",
        reference=INFERENCE,
        explanation="inference_mode() saves more than no_grad(): tensors made inside have no version count "
        "and can never be saved for backward, also after the block. What is computed from them "
        "later with recording on may have to save them.",
        wrong="""
            layer = nn.Linear(2, 2)
            with torch.inference_mode():
                h = torch.ones(1, 2) * 2
            layer(h).sum().backward()
        """,
        right="""
            layer = nn.Linear(2, 2)
            with torch.no_grad():
                h = torch.ones(1, 2) * 2
            layer(h).sum().backward()
        """,
    ),
    Rule(
        id="BL612",
        slug="inference-tensor-requires-grad",
        title="requires_grad is set on a tensor made in inference_mode()",
        cause="inference_mode() makes tensors that can never take part in a graph.",
        cure="Use torch.no_grad() instead, or .clone() the tensor outside of the block.",
        says="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.",
        reference=INFERENCE,
        explanation="A tensor made in inference_mode() stays an inference tensor, and cannot become a leaf of a graph.",
        wrong="""
            with torch.inference_mode():
                h = torch.ones(2)
            h.requires_grad_(True)
        """,
        right="""
            with torch.no_grad():
                h = torch.ones(2)
            h.requires_grad_(True)
        """,
    ),
    Rule(
        id="BL613",
        slug="inference-tensor-written",
        title="a tensor made in inference_mode() is written to outside of it",
        cause="It has no version count, so that a write could not be noticed.",
        cure="Use torch.no_grad() instead, or .clone() the tensor outside of the block.",
        says="Inplace update to inference tensor outside InferenceMode is not allowed.",
        reference=INFERENCE,
        explanation="A tensor made in inference_mode() has no count of writes, so that a write outside of the"
        " block could not be noticed by a graph that saved it.",
        wrong="""
            with torch.inference_mode():
                h = torch.ones(2)
            h.add_(1)
        """,
        right="""
            with torch.inference_mode():
                h = torch.ones(2)
            h = h.clone()
            h.add_(1)
        """,
    ),
    Rule(
        id="BL614",
        slug="no-grad-not-called",
        title="with torch.no_grad: names the class and does not call it",
        cause="The parentheses are missing.",
        cure="with torch.no_grad():",
        says="'type' object does not support the context manager protocol",
        reference="torch.no_grad",
        explanation="torch.no_grad is a class. `with` needs an object of it, which the parentheses make.",
        wrong="""
            with torch.no_grad:
                pass
        """,
        right="""
            with torch.no_grad():
                pass
        """,
    ),
    Rule(
        id="BL615",
        slug="bare-no-grad",
        title="torch.no_grad() as a statement of its own does nothing",
        level=WARNING,
        cause="It makes a context manager that nothing enters.",
        cure="with torch.no_grad(): around what is not to be recorded, or torch.set_grad_enabled(False).",
        reference="torch.no_grad",
        explanation="torch.no_grad() on a line of its own makes a context manager and drops it. Recording "
        "goes on, memory too, and nothing is said. torch.set_grad_enabled(False) does switch "
        "recording off at once.",
        wrong="""
            torch.no_grad()
            y = torch.ones(1, requires_grad=True) * 2
        """,
        right="""
            with torch.no_grad():
                y = torch.ones(1, requires_grad=True) * 2
        """,
    ),
    Rule(
        id="BL616",
        slug="no-grad-decorator-without-parentheses",
        title="@torch.no_grad without parentheses works as @torch.no_grad() does",
        level=NOTE,
        cause="PyTorch allows both since 2.0; older ones do not.",
        cure="Nothing needs to change; write @torch.no_grad() for older PyTorch.",
        reference="torch.no_grad",
        explanation="The class takes a function as well as nothing, and decorates it.",
        wrong="""
            @torch.no_grad
            def double(x):
                return x * 2
            double(torch.ones(1, requires_grad=True))
        """,
        right="""
            @torch.no_grad()
            def double(x):
                return x * 2
            double(torch.ones(1, requires_grad=True))
        """,
    ),
    Rule(
        id="BL617",
        slug="leaf-made-in-no-grad",
        title="a leaf made under no_grad() may require grad; what is computed from it there does not",
        level=NOTE,
        cause="no_grad() switches recording off, and not the flag of new leaves.",
        cure="Nothing needs to change if that was meant.",
        reference="torch.no_grad",
        explanation="no_grad() keeps ops from being recorded. Making a tensor is no op, so that "
        "requires_grad=True holds; what is computed from it inside the block does not require "
        "grad.",
        wrong="""
            with torch.no_grad():
                x = torch.ones(2, requires_grad=True)
                y = x * 2
        """,
        right="""
            x = torch.ones(2, requires_grad=True)
            with torch.no_grad():
                y = x * 2
        """,
    ),
    Rule(
        id="BL618",
        slug="backward-in-no-grad",
        title="backward() inside no_grad() works: the graph was recorded before",
        level=NOTE,
        cause="no_grad() only keeps new ops from being recorded.",
        cure="Nothing needs to change.",
        reference="torch.no_grad",
        explanation="The graph was recorded when the forward ran. backward() only walks it, and needs no "
        "recording unless create_graph=True.",
        wrong="""
            a = torch.tensor(2.0, requires_grad=True)
            b = a * a
            with torch.no_grad():
                b.backward()
        """,
        right="""
            a = torch.tensor(2.0, requires_grad=True)
            b = a * a
            b.backward()
        """,
    ),
    Rule(
        id="BL619",
        slug="eval-records",
        title="a forward in eval() mode is recorded: eval() does not switch gradients off",
        level=NOTE,
        cause="eval() changes dropout and batch norm only.",
        cure="Use torch.no_grad() or torch.inference_mode() as well where no gradient is needed.",
        reference="torch.nn.Module.eval",
        explanation="eval() changes what dropout and batch norm do. Ops are recorded as before, and the graph"
        " costs memory until the result is dropped.",
        wrong="""
            model = nn.Linear(1, 1).eval()
            scores = model(torch.ones(1, 1))
        """,
        right="""
            model = nn.Linear(1, 1).eval()
            with torch.inference_mode():
                scores = model(torch.ones(1, 1))
        """,
    ),
)
