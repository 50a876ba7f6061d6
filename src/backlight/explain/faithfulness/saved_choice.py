"""The method that was measured to suit a model, kept in the model's folder.

NOTE [backlight_explain.json]
    {"estimate": "attention-x-gradient", "options": {}, "measured": {"signs": 0.81, "pairs": 24, …}}

`estimate` is the method that puts the words that are not measured in order, `options` are its own, and `measured` says
what the choice rests on: figures of `backlight evaluate --quick`, when, by which version, on how many pairs. Only the
first two are acted on. Names beside these three are left alone, for later versions.
"""

import inspect
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.methods.registry import method_called
from backlight.formats.strict_json import read_json_file

FILE = "backlight_explain.json"
Value = int | float | str | bool | None


@dataclass(frozen=True)
class SavedChoice:
    """Which method estimates what is not measured (see NOTE [backlight_explain.json]).

    Args:
        estimate: a name of `METHODS`.
        options: the method's options by name.
        measured: what the choice rests on.

    Raises:
        InputError: there is no such method, or it has no such option.
    """

    estimate: str
    options: Mapping[str, Value] = field(default_factory=dict)
    measured: Mapping[str, object] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The method and its options, as `leave_one_out` takes them."""
        return "".join([self.estimate, *(f":{name}={value}" for name, value in self.options.items())])

    def __post_init__(self):
        known = inspect.signature(method_called(self.estimate).explain).parameters
        for name, value in self.options.items():
            if name not in known or known[name].kind is not inspect.Parameter.KEYWORD_ONLY:
                raise InputError(f"options must be those of {self.estimate}, which has none called {name}")
            if not isinstance(value, Value):
                raise InputError(f"options must be numbers, texts, true, false or null, got {value!r} for {name}")


def read_choice(folder: Path) -> SavedChoice | None:
    """Return the choice that is kept in a model's folder; None where there is none.

    Raises:
        InputError: the file is there and cannot be read, or does not hold a choice.
    """
    file = Path(folder) / FILE
    if not file.is_file():
        return None
    found = read_json_file(file)
    remedy = "make it anew with backlight evaluate --save, or remove it"
    if not isinstance(found, dict):
        raise InputError(f"{file} must hold a JSON object, got {type(found).__name__}: {remedy}")
    estimate, options, measured = found.get("estimate"), found.get("options", {}), found.get("measured", {})
    if not isinstance(estimate, str):
        raise InputError(f"{file}: estimate must be the name of a method, got {estimate!r}: {remedy}")
    for name, value in (("options", options), ("measured", measured)):
        if not isinstance(value, dict):
            raise InputError(f"{file}: {name} must be an object, got {value!r}: {remedy}")
    try:
        return SavedChoice(estimate, options, measured)
    except InputError as problem:
        raise InputError(f"{file}: {problem}; {remedy}") from None


def write_choice(folder: Path, choice: SavedChoice) -> Path:
    """Keep a choice in a model's folder, in place of an earlier one, and return its file.

    Raises:
        InputError: the folder cannot be written.
    """
    file = Path(folder) / FILE
    text = json.dumps(asdict(choice), ensure_ascii=False, indent=1, allow_nan=False)
    try:
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as problem:
        raise InputError(
            f"--save must write into the model's folder, and cannot write {file}: {problem.strerror}; copy the model "
            "to a folder of your own and name that"
        ) from problem
    return file
