"""Section 7 of the catalogue: modes, hooks, training loops."""

from catalogue.case import Case

CASES = (
    Case(
        "7a",
        "parameter update without no_grad",
        rule="BL302",
        line=3,
    ),
    Case(
        "7b",
        "w = w - lr*grad: silently makes w a non-leaf",
        """
        w=torch.ones(2,requires_grad=True)
        (w*2).sum().backward()
        w=w-0.1*w.grad
        print(w.is_leaf, w.requires_grad)
        (w*2).sum().backward()
        print(w.grad)
        """,
        rule="BL409",
        line=6,
    ),
    Case(
        "7c",
        "with torch.no_grad(): w = w - lr*grad: loses requires_grad",
        """
        w=torch.ones(2,requires_grad=True)
        (w*2).sum().backward()
        with torch.no_grad(): w=w-0.1*w.grad
        print(w.requires_grad)
        (w*2).sum().backward()
        """,
        rule="BL410",
        line=5,
        also=("BL208",),
    ),
    Case(
        "7d",
        "@torch.no_grad without parentheses",
        """
        @torch.no_grad
        def f(x): return x*2
        print(f(torch.ones(1,requires_grad=True)).requires_grad)
        """,
        rule="BL616",
        line=1,
    ),
    Case(
        "7e",
        "with torch.no_grad: (class, not instance)",
        rule="BL614",
        line=1,
    ),
    Case(
        "7f",
        "bare torch.no_grad() call does nothing",
        """
        torch.no_grad()
        print((torch.ones(1,requires_grad=True)*2).requires_grad)
        """,
        rule="BL615",
        line=1,
    ),
    Case(
        "7g",
        "factory function inside no_grad keeps requires_grad",
        """
        with torch.no_grad():
            x=torch.ones(2,requires_grad=True); y=x*2
        print(x.requires_grad,y.requires_grad)
        """,
        rule="BL617",
        line=2,
    ),
    Case(
        "7h",
        "forgotten zero_grad: silent accumulation",
        """
        w=torch.ones(1,requires_grad=True)
        for i in range(3):
            (w*2).sum().backward(); print(w.grad.item())
        """,
        rule="BL703",
        line=3,
    ),
    Case(
        "7i",
        "zero_grad sets None by default",
        """
        lin=nn.Linear(1,1); opt=torch.optim.SGD(lin.parameters(),.1)
        lin(torch.ones(1,1)).sum().backward(); opt.zero_grad(); print(lin.weight.grad)
        """,
        rule="BL704",
        line=2,
    ),
    Case(
        "7j",
        "step() with no gradient at all",
        """
        lin=nn.Linear(1,1); opt=torch.optim.SGD(lin.parameters(),.1)
        before=lin.weight.clone(); opt.step(); print(torch.equal(before,lin.weight))
        """,
        rule="BL705",
        line=2,
    ),
    Case(
        "7k",
        "lr_scheduler.step() before optimizer.step()",
        """
        lin=nn.Linear(1,1); opt=torch.optim.SGD(lin.parameters(),.1); s=torch.optim.lr_scheduler.StepLR(opt,1); s.step()
        """,
        rule="BL706",
        line=1,
    ),
    Case(
        "7l",
        "anomaly mode on NaN",
        """
        x=torch.tensor([-1.],requires_grad=True)
        with torch.autograd.detect_anomaly():
            y=torch.sqrt(x).sum()
            y.backward()
        """,
        rule="BL801",
        line=4,
        also=("BL805", "BL914"),
    ),
    Case(
        "7m",
        "NaN without anomaly mode",
        rule="BL802",
        line=2,
    ),
    Case(
        "7n",
        "norm at 0",
        """
        x=torch.zeros(2,requires_grad=True)
        torch.sqrt((x**2).sum()).backward(); print(x.grad)
        """,
        rule="BL802",
        line=2,
    ),
    Case(
        "7o",
        "clip_grad_norm_ with non finite",
        """
        p=nn.Parameter(torch.ones(1)); p.grad=torch.tensor([float('nan')])
        torch.nn.utils.clip_grad_norm_([p],1.,error_if_nonfinite=True)
        """,
        rule="BL803",
        line=2,
    ),
    Case(
        "7p",
        "module full backward hook + in-place",
        """
        m=nn.Linear(2,2); m.register_full_backward_hook(lambda *a:None)
        y=m(torch.ones(1,2,requires_grad=True)); y.add_(1)
        """,
        rule="BL905",
        line=2,
    ),
    Case(
        "7q",
        "register_hook on tensor without grad",
        rule="BL901",
        line=1,
    ),
    Case(
        "7r",
        "register_hook that changes the shape",
        """
        a=torch.ones(3,requires_grad=True); b=a*2
        b.register_hook(lambda g:g.sum()); b.sum().backward(); print(a.grad)
        """,
        rule="BL902",
        line=2,
    ),
    Case(
        "7s",
        "register_hook returning wrong type",
        """
        a=torch.ones(3,requires_grad=True); b=a*2
        b.register_hook(lambda g:1); b.sum().backward()
        """,
        rule="BL903",
        line=2,
    ),
    Case(
        "7t",
        "saved_tensors_hooks whose unpack returns the wrong shape",
        """
        a=torch.ones(3,requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t:t, lambda t:t[:1]):
            b=a*a
        b.sum().backward(); print(a.grad)
        """,
        rule="BL909",
        line=2,
    ),
    Case(
        "7u",
        "disable_saved_tensors_hooks",
        """
        with torch.autograd.graph.disable_saved_tensors_hooks('no hooks here'):
            with torch.autograd.graph.saved_tensors_hooks(lambda t:t, lambda t:t): pass
        """,
        rule="BL910",
        line=2,
    ),
    Case(
        "7v",
        "parameters cut off from the loss: silent in single process",
        """
        class M(nn.Module):
            def __init__(s):
                super().__init__(); s.a=nn.Linear(2,2); s.b=nn.Linear(2,2)
            def forward(s,x): return s.a(x)
        m=M(); m(torch.ones(1,2)).sum().backward()
        print({n:p.grad is None for n,p in m.named_parameters()})
        """,
        rule="BL707",
        line=5,
    ),
    Case(
        "7w",
        "layers in a plain list are not parameters",
        """
        class M(nn.Module):
            def __init__(s): super().__init__(); s.l=[nn.Linear(2,2)]
        print(list(M().parameters()))
        torch.optim.SGD(M().parameters(),lr=.1)
        """,
        rule="BL702",
        line=4,
    ),
    Case(
        "7x",
        "MSE broadcasting pitfall",
        """
        F.mse_loss(torch.ones(4,1,requires_grad=True),torch.ones(4))
        """,
        rule="BL711",
        line=1,
    ),
    Case(
        "7y",
        "softmax without dim / double softmax",
        rule="BL712",
        line=1,
    ),
    Case(
        "7z",
        "torch.utils.checkpoint without use_reentrant",
        """
        import torch.utils.checkpoint as c
        c.checkpoint(lambda x:x*2, torch.ones(1,requires_grad=True))
        """,
        rule="BL911",
        line=2,
    ),
    Case(
        "7aa",
        "checkpoint reentrant with no grad inputs",
        """
        import torch.utils.checkpoint as c
        lin=nn.Linear(1,1)
        y=c.checkpoint(lin, torch.ones(1,1), use_reentrant=True); print(y.requires_grad)
        """,
        rule="BL912",
        line=3,
    ),
    Case(
        "7bb",
        "dtype mismatch / device none: long target",
        """
        F.cross_entropy(torch.randn(2,3,requires_grad=True),torch.tensor([0.,1.]))
        """,
        rule="BL713",
        line=1,
    ),
    Case(
        "7cc",
        ".grad read warns also through hasattr/print(vars)",
        """
        a=torch.tensor(2.,requires_grad=True); c=a*3
        hasattr(c,'grad')
        """,
        rule="BL101",
        line=2,
    ),
)
