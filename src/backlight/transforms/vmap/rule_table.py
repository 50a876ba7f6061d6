"""The table of batching rules (see NOTE [Batching rules])."""

from collections.abc import Callable

RULES: dict[str, Callable] = {}


def names_in(text: str) -> list[str]:
    """Return the names in a text, separated by white space."""
    return text.split()


def rule_for(*names: str):
    """Declare the decorated function to be the batching rule of the named ops; a text may hold several names.

    NOTE [Batching rules]
    A rule takes a Call and returns the op's result as batched tensors. The ops that it calls run below its vmap: on
    tensors with the batch in front. Inside `call.inside()` a rule may instead decompose the op into others, each of
    which this vmap handles by its own rule. Ops without a rule in the table get one from their declaration
    (rule_lookup.py): elementwise ops, and those that have a composite; for all others each element of the batch is
    computed by itself (`loop_over_batch`), which is correct for any op.
    """

    def declare(function: Callable) -> Callable:
        for name in names_in(" ".join(names)):
            RULES[name] = function
        return function

    return declare
