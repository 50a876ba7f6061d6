"""Computes a line of the replay as it is written, without anything of the lens: the text is turned into Python."""

import re

import numpy as np

FUNCTIONS = ["cos", "cosh", "exp", "log", "sin", "sinh", "sqrt", "tan", "tanh", "sign"]
SPACE = {
    "np": np,
    "array": np.array,
    "pi": np.pi,
    "ln": np.log,
    "sigmoid": lambda x: 1 / (1 + np.exp(-np.asarray(x))),
    **{name: getattr(np, name) for name in FUNCTIONS},
}
WORDS = [
    ("−", "-"),
    ("·", "*"),
    ("²", "**2.0"),
    ("³", "**3.0"),
    ("^", "**"),
    ("½", "0.5"),
    ("π", "pi"),
    ("≥", ">="),
    ("≤", "<="),
]


def by_hand(text: str) -> np.ndarray:
    """Compute a line as it is written, without anything of the lens: the text is turned into Python."""
    if " where " in text:
        chosen, condition, others = re.fullmatch(r"\((.*?) where (.*?), else (.*)\)", text).groups()
        condition = condition.replace(" = ", " == ")
        return np.where(by_hand(condition), by_hand(chosen), by_hand(f"({others})" if "where" in others else others))
    for sign, python in WORDS:
        text = text.replace(sign, python)
    text = re.sub(r"√(\d+(?:\.\d+)?|pi|\[[^]]*\])", r"sqrt(\1)", text).replace("√", "sqrt")
    text = re.sub(r"\[[^]]*\]", lambda found: f"array({found[0]})", text)
    text = re.sub(r"Σ (array\([^)]*\))", r"np.sum(\1)", text)
    text = re.sub(r"(?<![\w.])\d+(?:\.\d+)?(?:e[-+]\d+)?", lambda found: str(float(found[0])), text)
    return eval(text, dict(SPACE))
