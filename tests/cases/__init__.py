"""The cases, one file a family of ops."""

import importlib
import pkgutil

ALL = [
    case
    for module in sorted(found.name for found in pkgutil.iter_modules(__path__))
    for case in importlib.import_module(f"cases.{module}").CASES
]
