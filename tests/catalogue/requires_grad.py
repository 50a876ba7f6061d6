"""Section 4 of the catalogue: requires_grad."""

from catalogue.case import Case

CASES = (
    Case(
        "4a",
        "integer tensor",
        """
        torch.tensor([1,2],requires_grad=True)
        """,
        rule="BL401",
        line=1,
    ),
    Case(
        "4b",
        "integer tensor requires_grad_()",
        """
        torch.tensor([1,2]).requires_grad_()
        """,
        rule="BL401",
        line=1,
    ),
    Case(
        "4c",
        "attribute assignment on int",
        """
        a=torch.tensor([1,2])
        a.requires_grad=True
        """,
        rule="BL401",
        line=2,
    ),
    Case(
        "4d",
        "bool",
        """
        torch.ones(2,dtype=torch.bool,requires_grad=True)
        """,
        rule="BL401",
        line=1,
    ),
    Case(
        "4e",
        "nn.Parameter of ints",
        """
        nn.Parameter(torch.tensor([1,2]))
        """,
        rule="BL401",
        line=1,
    ),
    Case(
        "4f",
        "setting requires_grad=False on a non-leaf",
        """
        a=torch.ones(2,requires_grad=True); b=a*2
        b.requires_grad=False
        """,
        rule="BL402",
        line=2,
    ),
    Case(
        "4g",
        "setting requires_grad=True on a non-leaf",
        """
        a=torch.ones(2,requires_grad=True); b=a*2
        b.requires_grad=True
        print(b.requires_grad)
        """,
        rule="BL403",
        line=2,
    ),
    Case(
        "4h",
        "requires_grad_(False) on non leaf",
        """
        a=torch.ones(2,requires_grad=True); b=a*2
        b.requires_grad_(False)
        """,
        rule="BL402",
        line=2,
    ),
    Case(
        "4i",
        "detach_ on a view",
        """
        a=torch.ones(2,requires_grad=True); b=(a*2).view(-1)
        b.detach_()
        """,
        rule="BL404",
        line=2,
    ),
    Case(
        "4j",
        "deepcopy of a non-leaf",
        """
        a=torch.ones(2,requires_grad=True); b=a*2
        copy.deepcopy(b)
        """,
        rule="BL405",
        line=2,
    ),
    Case(
        "4k",
        "pickle of a non-leaf across processes / weakref",
        """
        import multiprocessing.reduction as r, io
        a=torch.ones(2,requires_grad=True); b=a*2
        import torch.multiprocessing as mp
        from torch.multiprocessing.reductions import reduce_tensor
        reduce_tensor(b)
        """,
        rule="BL406",
        line=5,
        only=("torch",),
        why="backlight has no torch.multiprocessing",
    ),
)
