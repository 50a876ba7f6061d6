"""The cosine of a bi-encoder over many passages, whose embeddings may be kept on disk.

NOTE [The cache]
A folder holds one safetensors file for each model, called by the SHA-256 digest of the model's files, so that a changed
model never meets old embeddings. In it stand the digests of texts and their embeddings, row by row. It is written anew
beside itself and then renamed: a stopped run leaves the old one.
"""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from backlight.errors import InputError
from backlight.formats.array_files import read_arrays
from backlight.models.bi_encoder import BiEncoder
from backlight.models.scorer import Progress, no_progress

MODEL_FILES = {".json", ".safetensors", ".txt"}  # what a model's embeddings depend on
LAYOUT = b"2"  # of the cache, part of its files' names; 1 left the documents' prompts out
DIGEST = 32  # bytes of SHA-256


class Cosine:
    """An index of passages by their embeddings.

    Args:
        passages: what is indexed.
        model: what embeds passages and queries.
        cache: what keeps embeddings; None: nothing is kept.
        progress: called with the number of passages newly embedded.
    """

    def __init__(
        self,
        passages: Sequence[str],
        model: BiEncoder,
        cache: "EmbeddingCache | None" = None,
        progress: Progress = no_progress,
    ):
        self.model = model
        self.name = f"the cosine of {model.name}"
        if cache is None:
            self._embeddings = model.embeddings_of(passages, progress)
        else:
            self._embeddings = cache.embeddings_of(passages, model, progress)

    def scores(self, query: str) -> np.ndarray:
        """Return the cosine of each passage with the query; (passages,)."""
        return self._embeddings @ self.model.embeddings_of([query], queries=True)[0]


class EmbeddingCache:
    """Embeddings on disk (see NOTE [The cache]).

    Args:
        folder: where; it is made if there is none.
        model: the folder of the model.

    Raises:
        InputError: the folder is a file.
    """

    def __init__(self, folder: Path, model: Path):
        if Path(folder).exists() and not Path(folder).is_dir():
            raise InputError(f"the cache must be a folder, got the file {folder}")
        self.file = Path(folder) / f"{model.name[:40]}-{_digest_of_model(model)[:32]}.safetensors"

    def embeddings_of(self, texts: Sequence[str], model: BiEncoder, progress: Progress = no_progress) -> np.ndarray:
        """Return the embedding of each text, (texts, hidden); those not yet kept are made, and kept.

        Raises:
            InputError: the cache is damaged, or cannot be written.
        """
        rows, kept = self._read()
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        progress(sum(digest in rows for digest in digests))
        new = {digest: text for digest, text in zip(digests, texts) if digest not in rows}
        if new:
            made = model.embeddings_of(list(new.values()), progress)
            kept = made if kept is None else np.concatenate([kept, made])
            rows |= {digest: len(rows) + number for number, digest in enumerate(new)}
            self._write(rows, kept)
        return kept[[rows[digest] for digest in digests]]

    def _read(self) -> tuple[dict[bytes, int], np.ndarray | None]:
        if not self.file.exists():
            return {}, None
        arrays, _ = read_arrays(self.file, "the embeddings in ")
        digests, embeddings = arrays.get("digests"), arrays.get("embeddings")
        if digests is None or embeddings is None or digests.shape != (len(embeddings), DIGEST):
            raise InputError(f"{self.file} must hold the embeddings of a model, and does not: delete it")
        return {row.tobytes(): number for number, row in enumerate(digests)}, embeddings

    def _write(self, rows: dict[bytes, int], embeddings: np.ndarray) -> None:
        digests = np.frombuffer(b"".join(rows), np.uint8).reshape(-1, DIGEST)
        beside = self.file.with_suffix(f".{os.getpid()}.partial")
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(save({"digests": digests, "embeddings": embeddings}))
            beside.replace(self.file)
        except OSError as problem:
            raise InputError(f"cannot write the cache {self.file}: {problem.strerror}") from problem


def _digest_of_model(folder: Path) -> str:
    """Return the digest of a model's files, their names among them."""
    found = hashlib.sha256(LAYOUT)
    for file in sorted(file for file in folder.rglob("*") if file.suffix in MODEL_FILES and file.is_file()):
        found.update(file.relative_to(folder).as_posix().encode() + b"\0")
        with file.open("rb") as opened:
            found.update(hashlib.file_digest(opened, "sha256").digest())
    return found.hexdigest()
