"""A model as a plan names it: by name, for workers to load, and by the hash of its files, so that all load the same."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.batch.checksums import SIZE
from backlight.explain.batch.files import BLOCK
from backlight.explain.reranker import Reranker
from backlight.models.checkpoint import BUILTIN, find_model


@dataclass(frozen=True)
class ModelReference:
    """Which model scores.

    Args:
        name: a folder, an installed package that carries one, or "builtin".
        engine, label, instruction, read_typos: as `Reranker.from_pretrained` takes them.
    """

    name: str = BUILTIN
    engine: str = "backlight"
    label: int | None = None
    instruction: str | None = None
    read_typos: bool | None = None

    @property
    def everywhere(self) -> "ModelReference":
        """The same, for processes that run in another folder."""
        folder = Path(self.name).expanduser()
        return self.named(str(folder.resolve()) if folder.is_dir() and self.name != BUILTIN else self.name)

    def named(self, name: str) -> "ModelReference":
        """Return the same of a folder of another name."""
        return replace(self, name=name)

    def load(self) -> Reranker:
        """Load the model. Raises InputError: it is not there, or the engine cannot run it."""
        reading = {"label": self.label, "instruction": self.instruction, "read_typos": self.read_typos}
        return Reranker.from_pretrained(self.name, engine=self.engine, **reading)

    def blake2b(self) -> str:
        """Return the hash of all files of the model's folder, with their names. Raises InputError: it is not there."""
        folder, found = find_model(self.name), hashlib.blake2b(digest_size=SIZE)
        for file in sorted(folder.rglob("*")):
            name = file.relative_to(folder).as_posix()
            if not file.is_file() or name.startswith(".") or "__pycache__" in name or "/." in name:
                continue
            found.update(f"{name}\0{file.stat().st_size}\0".encode())
            try:
                with open(file, "rb") as content:
                    while block := content.read(BLOCK):
                        found.update(block)
            except OSError as problem:
                raise InputError(f"cannot read {file}: {problem.strerror}") from problem
        return found.hexdigest()
