"""Section 5 of the catalogue: leaving the engine."""

from catalogue.case import Case

CASES = (
    Case(
        "5a",
        ".numpy()",
        """
        torch.ones(2,requires_grad=True).numpy()
        """,
        rule="BL501",
        line=1,
    ),
    Case(
        "5b",
        "np.array(t)",
        """
        np.array(torch.ones(2,requires_grad=True))
        """,
        rule="BL501",
        line=1,
    ),
    Case(
        "5c",
        "np.sin(t)",
        """
        np.sin(torch.ones(2,requires_grad=True))
        """,
        rule="BL501",
        line=1,
        only=("torch",),
        why="backlight records NumPy's functions",
    ),
    Case(
        "5d",
        "float(t)",
        """
        print(float(torch.ones(1,requires_grad=True)))
        """,
        rule="BL502",
        line=1,
    ),
    Case(
        "5d2",
        "float(t) of non-leaf 0-d",
        """
        print(float(torch.ones((),requires_grad=True)*2))
        """,
        rule="BL502",
        line=1,
    ),
    Case(
        "5e",
        "float(t) of many elements",
        """
        float(torch.ones(2,requires_grad=True))
        """,
        rule="BL503",
        line=1,
    ),
    Case(
        "5f",
        "tolist",
        """
        print(torch.ones(2,requires_grad=True).tolist())
        """,
        rule="BL504",
        line=1,
    ),
    Case(
        "5g",
        "torch.tensor(tensor)",
        """
        a=torch.ones(2,requires_grad=True); b=torch.tensor(a); print(b.requires_grad)
        """,
        rule="BL505",
        line=1,
    ),
    Case(
        "5h",
        "torch.tensor([t1,t2]) from a list of grad scalars",
        """
        a=torch.ones((),requires_grad=True); b=torch.tensor([a,a*2]); print(b, b.requires_grad)
        """,
        rule="BL506",
        line=1,
        also=("BL502",),
    ),
    Case(
        "5i",
        "matplotlib-like __array__",
        """
        torch.ones(2,requires_grad=True).__array__()
        """,
        rule="BL501",
        line=1,
    ),
    Case(
        "5j",
        "numpy with complex conj",
        rule="BL507",
        line=1,
        only=("torch",),
        why="the rule is not held to complex tensors of backlight yet",
    ),
)
