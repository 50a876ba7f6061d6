"""PyTorch's namespaces whose names are compared."""

from paths import TESTS

LINES = (TESTS / "data" / "torch_names_missing.txt").read_text().splitlines()


GROUPS = [[part.strip() for part in line.split("|")] for line in LINES]
