"""Section 8 of the catalogue: once-only warnings, modes, and what is silent."""

from catalogue.case import Case

CASES = (
    Case(
        "8a",
        "float() of a requires_grad tensor warns ONCE per process (TORCH_WARN_ONCE): second time silent",
        """
        x=torch.ones((),requires_grad=True)*2
        print(float(x))
        torch.set_warn_always(True)
        try: print(float(x))
        finally: torch.set_warn_always(False)
        """,
        rule="BL502",
        line=2,
    ),
    Case(
        "8b",
        "register_post_accumulate_grad_hook on a non-leaf",
        """
        a=torch.ones(2,requires_grad=True); (a*2).register_post_accumulate_grad_hook(print)
        """,
        rule="BL904",
        line=1,
    ),
    Case(
        "8c",
        "a leaf created on the fly by .requires_grad_() on a detached copy",
        """
        a=torch.ones(2,requires_grad=True); d=(a*2).detach().requires_grad_(); d.sum().backward(); print(d.grad,a.grad)
        """,
        rule="BL408",
        line=1,
    ),
    Case(
        "8d",
        "allow_mutation_on_saved_tensors",
        """
        with torch.autograd.graph.allow_mutation_on_saved_tensors():
            a=torch.ones(2,requires_grad=True); b=torch.exp(a); c=b*b; b.zero_(); c.sum().backward(); print(a.grad)
        """,
        rule="BL913",
        line=1,
    ),
    Case(
        "8e",
        "DDP with unused parameters (2nd iteration)",
        """
        import torch.distributed as dist
        dist.init_process_group('gloo',rank=0,world_size=1,store=dist.HashStore())
        class M(nn.Module):
            def __init__(s): super().__init__(); s.a=nn.Linear(2,2); s.b=nn.Linear(2,2)
            def forward(s,x): return s.a(x)
        m=nn.parallel.DistributedDataParallel(M())
        try:
            for i in range(2): m(torch.ones(1,2)).sum().backward()
        finally: dist.destroy_process_group()
        """,
        rule="BL714",
        line=8,
        only=("torch",),
        why="backlight has no HashStore",
    ),
    Case(
        "8f",
        "double backward error under anomaly mode: parent traceback",
        """
        with torch.autograd.set_detect_anomaly(True):
            x=torch.tensor([0.],requires_grad=True)
            y=torch.sqrt(x)
            y.sum().backward()
        print(x.grad)
        """,
        rule="BL804",
        line=3,
    ),
    Case(
        "8g",
        "inf gradient is never flagged by anomaly mode",
        """
        with torch.autograd.set_detect_anomaly(True):
            x=torch.tensor([0.],requires_grad=True)
            torch.log(x).sum().backward()
        print(x.grad)
        """,
        rule="BL820",
        line=3,
    ),
    Case(
        "8h",
        "forward NaN is never flagged by anomaly mode (only gradients)",
        """
        with torch.autograd.set_detect_anomaly(True):
            x=torch.tensor([-1.],requires_grad=True)
            y=torch.log(x); print(y)
        """,
        rule="BL805",
        line=3,
    ),
    Case(
        "8i",
        "weight tying by assigning .data",
        """
        a=nn.Linear(2,2); b=nn.Linear(2,2); b.weight.data=a.weight.data
        (a(torch.ones(1,2))+b(torch.ones(1,2))).sum().backward()
        print(a.weight is b.weight, a.weight.grad.data_ptr()==b.weight.grad.data_ptr(),
            a.weight.data_ptr()==b.weight.data_ptr())
        """,
        rule="BL710",
        line=1,
    ),
    Case(
        "8j",
        "optimizer built before the parameters were replaced",
        """
        lin=nn.Linear(1,1); opt=torch.optim.SGD(lin.parameters(),.1)
        lin.weight=nn.Parameter(torch.ones(1,1)); before=lin.weight.clone()
        lin(torch.ones(1,1)).sum().backward(); opt.step(); print('moved:',not torch.equal(before,lin.weight))
        """,
        rule="BL708",
        line=2,
    ),
    Case(
        "8k",
        "backward() inside torch.no_grad works",
        """
        a=torch.tensor(2.,requires_grad=True); b=a*a
        with torch.no_grad(): b.backward()
        print(a.grad)
        """,
        rule="BL618",
        line=2,
    ),
    Case(
        "8l",
        "module.eval() does not disable autograd",
        """
        lin=nn.Linear(1,1).eval(); print(lin(torch.ones(1,1)).requires_grad)
        """,
        rule="BL619",
        line=1,
    ),
    Case(
        "8m",
        "total_loss += loss keeps every graph alive",
        """
        lin=nn.Linear(1,1); total=0
        for i in range(3):
            loss=lin(torch.ones(1,1)).sum(); total+=loss
        print(total.grad_fn, total.grad_fn.next_functions[0][0])
        """,
        rule="BL709",
        line=3,
    ),
    Case(
        "8n",
        "assigning requires_grad on a module (typo) is silent",
        """
        lin=nn.Linear(1,1); lin.requires_grad=False
        print([p.requires_grad for p in lin.parameters()])
        """,
        rule="BL407",
        line=1,
    ),
    Case(
        "8o",
        "frozen input: backward with all parameters frozen",
        """
        lin=nn.Linear(1,1).requires_grad_(False)
        lin(torch.ones(1,1)).sum().backward()
        """,
        rule="BL411",
        line=2,
    ),
)
