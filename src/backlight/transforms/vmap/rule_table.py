"""The table of batching rules, which the families fill (see NOTE [Batching rules])."""

RULES: dict = {}


def names_in(text: str) -> list[str]:
    """Return the names in a text, which stand between spaces and line ends."""
    return text.split()


def rule_for(*names: str):
    """Declare the decorated function to be the batching rule of the named ops; a text may hold several names.

    NOTE [Batching rules]
    A rule takes a Call and returns the op's result as batched tensors. What it calls runs below its own vmap: on
    tensors with the batch in front. A rule that has nothing better to offer may write the op in others, inside
    `call.inside()`, which this vmap then meets one by one. Ops without a rule in the table get one from what they
    declare (finding.py): elementwise ops, and those that have a composite; for all others each element of the batch is
    computed by itself (`looped`), which is right for any op.
    """

    def declare(function):
        for name in names_in(" ".join(names)):
            RULES[name] = function
        return function

    return declare
