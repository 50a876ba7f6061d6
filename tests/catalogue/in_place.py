"""Section 3 of the catalogue: in-place writes."""

from catalogue.case import Case

CASES = (
    Case(
        "3a",
        "in-place on a leaf",
        rule="BL301",
        line=2,
    ),
    Case(
        "3b",
        "in-place on a leaf via indexing",
        rule="BL303",
        line=2,
    ),
    Case(
        "3c",
        "in-place on a view of a leaf",
        """
        a=torch.ones(2,requires_grad=True)
        a.view(-1).mul_(2)
        """,
        rule="BL303",
        line=2,
    ),
    Case(
        "3d",
        "in-place modification of a saved tensor",
        rule="BL304",
        line=4,
    ),
    Case(
        "3e",
        "saved input modified (multiplication)",
        """
        a=torch.ones(2,requires_grad=True)
        h=a*1
        y=h*h
        h.zero_()
        y.sum().backward()
        """,
        rule="BL304",
        line=5,
    ),
    Case(
        "3f",
        "the same with anomaly mode on",
        """
        torch.autograd.set_detect_anomaly(True)
        a=torch.ones(2,requires_grad=True)
        b=torch.exp(a)
        b.add_(1)
        try: b.sum().backward()
        finally: torch.autograd.set_detect_anomaly(False)
        """,
        rule="BL304",
        line=5,
    ),
    Case(
        "3g",
        "optimizer.step() between two backwards",
        """
        lin=nn.Linear(2,2); lin2=nn.Linear(2,1); opt=torch.optim.SGD([*lin.parameters(),*lin2.parameters()],.1)
        h=lin(torch.ones(1,2)); y=lin2(h)
        y.sum().backward(retain_graph=True); opt.step(); y.sum().backward()
        """,
        rule="BL305",
        line=3,
    ),
    Case(
        "3h",
        ".data edit of a saved tensor: silently wrong gradient",
        """
        a=torch.tensor(3.,requires_grad=True)
        h=a*1; y=h*h
        h.data.fill_(100.)
        y.backward()
        print('a.grad =',a.grad,'(right: 6)')
        """,
        rule="BL306",
        line=3,
        strict=True,
    ),
    Case(
        "3i",
        "detach() shares memory: edit through it is noticed",
        """
        a=torch.tensor(3.,requires_grad=True)
        h=a*1; y=h*h
        h.detach().fill_(100.)
        y.backward()
        """,
        rule="BL304",
        line=4,
    ),
    Case(
        "3j",
        "detach() shares memory: value changes silently",
        """
        a=torch.ones(2,requires_grad=True)
        d=a.detach(); d[0]=9
        print(a)
        """,
        rule="BL308",
        line=2,
    ),
    Case(
        "3k",
        "numpy() shares memory: saved tensor changed behind autograd's back",
        """
        a=torch.tensor([3.],requires_grad=True)
        h=a*1; y=h*h
        h.detach().numpy()[0]=100.
        y.backward()
        print('a.grad =',a.grad,'(right: 6)')
        """,
        rule="BL307",
        line=3,
        strict=True,
    ),
    Case(
        "3l",
        "view + in-place: multi-output view",
        """
        a=torch.ones(4,requires_grad=True)*1
        x,y=a.split(2)
        x.mul_(2)
        """,
        rule="BL309",
        line=3,
    ),
    Case(
        "3m",
        "unbind / iterating a tensor",
        """
        a=torch.ones(2,2,requires_grad=True)*1
        for row in a: row.add_(1)
        """,
        rule="BL309",
        line=2,
    ),
    Case(
        "3n",
        "view made in no_grad then modified with grad",
        """
        a=torch.ones(4,requires_grad=True)*1
        with torch.no_grad():
            v=a.view(2,2)
        v.mul_(2)
        """,
        rule="BL310",
        line=4,
    ),
    Case(
        "3o",
        "view + in-place that is fine",
        """
        a=torch.ones(4,requires_grad=True); b=a*1
        v=b[:2]; v.mul_(3); b.sum().backward(); print(a.grad)
        """,
        rule="BL312",
        line=2,
    ),
    Case(
        "3p",
        "expand + in-place",
        """
        a=torch.ones(1,requires_grad=True)*1
        a.expand(3).add_(torch.arange(3.))
        """,
        rule="BL311",
        line=2,
    ),
    Case(
        "3q",
        "custom Function returning its input view, in-place after",
        """
        class Id(torch.autograd.Function):
            @staticmethod
            def forward(ctx,x): return x.view_as(x)
            @staticmethod
            def backward(ctx,g): return g
        a=torch.ones(4,requires_grad=True)*1
        y=Id.apply(a); y.mul_(2)
        """,
        rule="BL906",
        line=7,
    ),
    Case(
        "3r",
        "in-place changing a no-grad tensor with a grad tensor",
        """
        buf=torch.zeros(2); w=torch.ones(2,requires_grad=True)
        buf+=w; print(buf.requires_grad, buf.grad_fn)
        buf+=w; buf.sum().backward(); print(w.grad)
        """,
        rule="BL313",
        line=2,
    ),
    Case(
        "3s",
        "in-place relu on the saved output of the layer before",
        """
        x=torch.ones(2,requires_grad=True)
        y=torch.sigmoid(x); F.relu_(y-0); z=y.clone(); F.relu_(y); z.sum().backward()
        """,
        rule="BL304",
        line=2,
    ),
)
