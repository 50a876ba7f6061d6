"""What a batch computes for each pair, and how it writes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from backlight.adapters.parquet import writer_version
from backlight.errors import InputError
from backlight.explain.methods.registry import DEFAULT, method_called
from backlight.explain.parts import STRONGEST
from backlight.explain.windows import BEST, MAX_WINDOWS, WindowOptions

FORMATS = ("jsonl", "parquet")
SCORES_ONLY = "none"
MEASURED = sum(STRONGEST.values())  # words of each pair whose effect is measured by default


@dataclass(frozen=True)
class Settings:
    """What decides the bytes of the output, apart from the input and the model.

    Args:
        method: how to explain, a name of `METHODS`, or "none" for scores alone.
        options: of the method. "leave-one-out" measures `MEASURED` words of each pair here, if `words` says no other
            number.
        format: of the parts, "jsonl" or "parquet".
        top_words: how many words of each text are kept, the strongest; None for all.
        tokens: whether the values of single tokens are kept too.
        windows: "best" or "mean": read a document that is too long in windows, and score it by the best or the mean of
            them; with None what is too long is left out.
        stride: how many tokens each window begins after the one before; half a window by default.
        max_windows: how many windows of a document are scored at most; 0 for all (see NOTE [Preselected windows] in
            explain/windows.py).
        rows: how many rows of the input a part holds, bad ones counted.

    Raises:
        InputError: one of them cannot be used.
    """

    method: str = DEFAULT
    options: Mapping[str, int | float | str | bool | None] = field(default_factory=dict)
    format: str = "jsonl"
    top_words: int | None = None
    tokens: bool = False
    windows: str | None = BEST
    stride: int | None = None
    max_windows: int = MAX_WINDOWS
    rows: int = 1024

    def __post_init__(self):
        if self.method != SCORES_ONLY:
            method_called(self.method)
        if self.options.get("budget") is not None:
            raise InputError("budget must be left out in a batch: seconds would decide its bytes; give words=N")
        if self.format not in FORMATS:
            raise InputError(f"format must be one of {', '.join(FORMATS)}, got {self.format}")
        if self.format == "parquet":
            writer_version()  # an error now rather than after the first part
        for name, value in (("top_words", self.top_words), ("stride", self.stride), ("rows", self.rows)):
            if value is not None and value < 1:
                raise InputError(f"{name} must be 1 or more, got {value}")
        WindowOptions(self.windows, self.stride, self.max_windows)
        if self.stride and not self.windows:
            raise InputError("stride must come with windows: it says how far apart they begin")

    @property
    def method_options(self) -> dict[str, int | float | str | bool | None]:
        """What the method is called with: results must not depend on how fast the machine is."""
        return ({"words": MEASURED} if self.method == DEFAULT else {}) | dict(self.options)

    @property
    def reading(self) -> WindowOptions:
        """How documents are read that are longer than the model reads."""
        return WindowOptions(self.windows, self.stride, self.max_windows)

    @property
    def explains(self) -> bool:
        """Whether pairs are explained, not only scored."""
        return self.method != SCORES_ONLY

    def columns(self) -> dict[str, object]:
        """Return the columns of a part with their kinds, as `write_records` takes them."""
        found: dict[str, object] = {"row": "int", "line": "int"}
        found |= dict.fromkeys(("id", "query_id", "document_id", "query", "document"), "text")
        found |= dict.fromkeys(("query_language", "document_language", "read_as"), "text")
        found |= dict.fromkeys(("label", "score", "activated"), "float")
        found |= dict.fromkeys(("tokens", "query_left_out", "document_left_out"), "int")
        if self.windows:
            found |= {"window": "int", "windows": "int", "windows_read": "int", "windows_chosen_by": "text"}
        if self.explains:
            found |= dict.fromkeys(("gap", "passes", "query_total", "document_total"), "float")
            found |= {f"check_{name}": kind for name, kind in CHECK_COLUMNS.items()}
            found |= dict.fromkeys(("query_words", "document_words"), WORD)
        if self.explains and self.tokens:
            found |= dict.fromkeys(("query_tokens", "document_tokens", "special_tokens"), TOKEN)
        return found


CHECK_COLUMNS = {  # of a row whose explanation was held to the score, as `Check` calls them
    "verdict": "text",
    "counted": "int",
    "signs": "int",
    "drop": "float",
    "random": "float",
    "total": "float",
}
TOKEN = {"text": "text", "start": "int", "end": "int", "value": "single"}
WORD = {**TOKEN, "error": "single", "effect": "single"}
