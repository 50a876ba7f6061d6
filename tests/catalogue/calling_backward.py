"""Section 2 of the catalogue: calling backward."""

from catalogue.case import Case

CASES = (
    Case(
        "2a",
        "non-scalar backward",
        """
        a=torch.ones(3,requires_grad=True)
        (a*2).backward()
        """,
        rule="BL201",
        line=2,
    ),
    Case(
        "2b",
        "torch.autograd.grad on non-scalar",
        """
        a=torch.ones(3,requires_grad=True)
        torch.autograd.grad(a*2,a)
        """,
        rule="BL201",
        line=2,
    ),
    Case(
        "2c",
        "complex scalar",
        """
        a=torch.ones((),dtype=torch.complex64,requires_grad=True)
        (a*2).backward()
        """,
        rule="BL202",
        line=2,
        only=("torch",),
        why="the rule is not held to complex tensors of backlight yet",
    ),
    Case(
        "2d",
        "backward twice, graph freed",
        """
        a=torch.tensor(2.,requires_grad=True)
        b=a*a
        b.backward()
        b.backward()
        """,
        rule="BL203",
        line=4,
    ),
    Case(
        "2e",
        "backward twice through a node that saves nothing: no error, grads accumulate",
        """
        a=torch.tensor(2.,requires_grad=True)
        b=a+1
        b.backward(); b.backward()
        print(a.grad)
        """,
        rule="BL207",
        line=3,
    ),
    Case(
        "2f",
        "two losses sharing a subgraph",
        """
        a=torch.tensor(2.,requires_grad=True)
        h=torch.exp(a)
        l1=h*2; l2=h*3
        l1.backward(); l2.backward()
        """,
        rule="BL204",
        line=4,
    ),
    Case(
        "2g",
        "reading a freed saved tensor from grad_fn",
        """
        a=torch.tensor(2.,requires_grad=True)
        b=torch.exp(a); b.backward()
        b.grad_fn._saved_result
        """,
        rule="BL205",
        line=3,
    ),
    Case(
        "2h",
        "hidden state carried over iterations (truncated BPTT forgotten detach)",
        """
        cell=nn.RNNCell(2,2); h=torch.zeros(1,2)
        for t in range(2):
            h=cell(torch.randn(1,2),h)
            h.sum().backward()
        """,
        rule="BL206",
        line=4,
    ),
    Case(
        "2i",
        "custom Function backward twice",
        """
        class Sq(torch.autograd.Function):
            @staticmethod
            def forward(ctx,x): ctx.save_for_backward(x); return x*x
            @staticmethod
            def backward(ctx,g): x,=ctx.saved_tensors; return 2*x*g
        a=torch.tensor(2.,requires_grad=True); y=Sq.apply(a)
        y.backward(); y.backward()
        """,
        rule="BL203",
        line=7,
    ),
    Case(
        "2j",
        "element 0 does not require grad",
        """
        torch.tensor(2.).backward()
        """,
        rule="BL208",
        line=1,
    ),
    Case(
        "2k",
        "loss built from argmax / .item() / int",
        """
        x=torch.randn(4,requires_grad=True)
        (x.argmax().float()-1).pow(2).backward()
        """,
        rule="BL209",
        line=2,
    ),
    Case(
        "2l",
        "loss rebuilt with torch.tensor(loss)",
        """
        x=torch.randn(4,requires_grad=True)
        loss=torch.tensor(x.sum())
        loss.backward()
        """,
        rule="BL210",
        line=3,
    ),
    Case(
        "2m",
        "loss = torch.tensor(loss, requires_grad=True): the silent one",
        """
        x=torch.randn(4,requires_grad=True)
        loss=torch.tensor(x.sum().item(), requires_grad=True)
        loss.backward()
        print(x.grad, loss.grad)
        """,
        rule="BL212",
        line=2,
    ),
    Case(
        "2n",
        "everything computed under no_grad",
        """
        x=torch.randn(4,requires_grad=True)
        with torch.no_grad():
            y=(x*2).sum()
        print(y.requires_grad, y.grad_fn)
        y.backward()
        """,
        rule="BL211",
        line=5,
    ),
    Case(
        "2o",
        "inference_mode tensor used later in autograd",
        """
        lin=nn.Linear(2,2)
        with torch.inference_mode():
            h=torch.ones(1,2)*2
        lin(h).sum().backward()
        """,
        rule="BL611",
        line=4,
    ),
    Case(
        "2p",
        "inference tensor modified in place outside inference mode",
        rule="BL612",
        line=3,
    ),
    Case(
        "2q",
        "inference tensor inplace update",
        rule="BL613",
        line=3,
    ),
    Case(
        "2r",
        "mismatched gradient shape",
        rule="BL213",
        line=2,
    ),
    Case(
        "2s",
        "wrong gradient dtype/ None list length",
        rule="BL214",
        line=2,
    ),
    Case(
        "2t",
        "assigning .grad with the wrong shape",
        rule="BL107",
        line=2,
    ),
    Case(
        "2u",
        "assigning .grad with the wrong dtype",
        """
        a=torch.ones(3,requires_grad=True)
        a.grad=torch.ones(3,dtype=torch.float64)
        """,
        rule="BL108",
        line=2,
    ),
    Case(
        "2v",
        "assigning .grad a non tensor",
        rule="BL109",
        line=2,
    ),
    Case(
        "2w",
        "custom Function returning a wrongly shaped gradient",
        """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx,x): return x*2
            @staticmethod
            def backward(ctx,g): return g.sum().expand(5)
        x=torch.ones(3,requires_grad=True)
        Bad.apply(x).sum().backward()
        """,
        rule="BL907",
        line=7,
    ),
    Case(
        "2x",
        "custom Function returning the wrong number of gradients",
        """
        class Bad(torch.autograd.Function):
            @staticmethod
            def forward(ctx,x,y): return x*y
            @staticmethod
            def backward(ctx,g): return g
        x=torch.ones(3,requires_grad=True)
        Bad.apply(x,x).sum().backward()
        """,
        rule="BL908",
        line=7,
    ),
    Case(
        "2y",
        "backward() passed inputs= non-leaf",
        """
        a=torch.tensor(2.,requires_grad=True); b=a*2; c=b*b
        c.backward(inputs=[b])
        print(b.grad, a.grad)
        """,
        rule="BL215",
        line=2,
    ),
    Case(
        "2z",
        "backward(create_graph=True)",
        """
        a=torch.tensor(2.,requires_grad=True)
        (a**3).backward(create_graph=True)
        print(a.grad)
        """,
        rule="BL216",
        line=2,
    ),
)
