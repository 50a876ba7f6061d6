"""Section 1 of the catalogue: reading `.grad`."""

from catalogue.case import Case

CASES = (
    Case(
        "1a",
        ".grad of a non-leaf",
        """
        a=torch.tensor(2.,requires_grad=True)
        c=a*3
        c.backward()
        print(c.grad)
        """,
        rule="BL101",
        line=4,
    ),
    Case(
        "1b",
        ".grad of a non-leaf after retain_grad()",
        rule="BL106",
        line=3,
    ),
    Case(
        "1c",
        ".grad of non-leaf read before backward",
        """
        a=torch.tensor(2.,requires_grad=True)
        c=a*3
        print(c.grad)
        """,
        rule="BL101",
        line=3,
    ),
    Case(
        "1d",
        ".grad of a leaf without requires_grad",
        """
        a=torch.tensor(2.); b=torch.tensor(3.,requires_grad=True)
        (a*b).backward()
        print(a.grad)
        """,
        rule="BL103",
        line=3,
    ),
    Case(
        "1e",
        "the classic: parameter moved with .to()/cast/multiplied becomes a non-leaf",
        """
        w=torch.randn(3,requires_grad=True)*0.1
        w.sum().backward()
        print(w.is_leaf, w.grad)
        """,
        rule="BL102",
        line=3,
    ),
    Case(
        "1f",
        "optimizer over a non-leaf",
        rule="BL701",
        line=2,
    ),
    Case(
        "1g",
        "retain_grad on a tensor without requires_grad",
        """
        torch.ones(2).retain_grad()
        """,
        rule="BL104",
        line=1,
    ),
    Case(
        "1h",
        "retain_grad on a leaf (no-op)",
        """
        a=torch.ones(2,requires_grad=True); a.retain_grad(); print(a.retains_grad)
        """,
        rule="BL105",
        line=1,
    ),
)
