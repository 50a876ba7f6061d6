"""Section 6 of the catalogue: autograd.grad."""

from catalogue.case import Case

CASES = (
    Case(
        "6a",
        "unused input",
        """
        a=torch.tensor(2.,requires_grad=True); b=torch.tensor(3.,requires_grad=True)
        torch.autograd.grad(a*2,[a,b])
        """,
        rule="BL601",
        line=2,
    ),
    Case(
        "6b",
        "allow_unused",
        """
        a=torch.tensor(2.,requires_grad=True); b=torch.tensor(3.,requires_grad=True)
        print(torch.autograd.grad(a*2,[a,b],allow_unused=True))
        print(torch.autograd.grad(a*2,[a,b],materialize_grads=True))
        """,
        rule="BL606",
        line=2,
    ),
    Case(
        "6c",
        "input does not require grad",
        """
        a=torch.tensor(2.,requires_grad=True); b=torch.tensor(3.)
        torch.autograd.grad(a*b,[b])
        """,
        rule="BL602",
        line=2,
    ),
    Case(
        "6d",
        "grad of grad without create_graph",
        """
        a=torch.tensor(2.,requires_grad=True)
        g,=torch.autograd.grad(a**3,a)
        torch.autograd.grad(g,a)
        """,
        rule="BL603",
        line=3,
    ),
    Case(
        "6e",
        "a re-made input (clone / slice) is not the one in the graph",
        """
        a=torch.ones(3,requires_grad=True)
        y=(a*2).sum()
        torch.autograd.grad(y,a[0])
        """,
        rule="BL604",
        line=3,
    ),
    Case(
        "6f",
        "gradgrad of a once_differentiable function",
        """
        from torch.autograd.function import once_differentiable
        class Sq(torch.autograd.Function):
            @staticmethod
            def forward(ctx,x): ctx.save_for_backward(x); return x*x
            @staticmethod
            @once_differentiable
            def backward(ctx,g): x,=ctx.saved_tensors; return 2*x*g
        a=torch.tensor(2.,requires_grad=True)
        g,=torch.autograd.grad(Sq.apply(a),a,create_graph=True)
        g.backward()
        """,
        rule="BL605",
        line=10,
    ),
)
