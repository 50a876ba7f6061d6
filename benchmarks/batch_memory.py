"""How much memory a batch takes as its input grows: all of it is backlight's own, for the model here is none.

    python benchmarks/batch_memory.py 100000 1000000

Each size runs in a process of its own. The stand-in for a model reads words and adds up their numbers, so that what is
measured is reading, cutting into parts, writing and summing up.
"""

import argparse
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

import numpy as np

from backlight.explain.batch import Settings, run_batch
from backlight.models.pairs import DOCUMENT, QUERY, Pair

WORDS = [f"word{number}" for number in range(20_000)]
DIMS = 4


class Adder:
    """A scorer (see NOTE [A scorer]) that takes next to no time: the sum of its embeddings."""

    name, score_name, max_tokens, highest_score = "adder", "sum", 512, None

    def read(self, pairs):
        """Return each pair, a word a token."""
        return [self._pair(query, document) for query, document in pairs]

    def _pair(self, query: str, document: str) -> Pair:
        found = [(side, match) for side, text in ((QUERY, query), (DOCUMENT, document)) for match in words_in(text)]
        count = len(found)
        return Pair(
            query=query,
            document=document,
            ids=np.array([zlib.crc32(match[0].encode()) % 1000 for _, match in found]),
            type_ids=np.zeros(count, np.int64),
            positions=np.arange(count),
            sides=np.array([side for side, _ in found], np.int8),
            offsets=np.array([match.span() for _, match in found]),
            pieces=tuple(match[0] for _, match in found),
            lengths=(count,),
        )

    def embed(self, batch):
        """Return the numbers of the words, (tokens, DIMS)."""
        return np.repeat(batch.ids[:, None] / 1000 - 0.5, DIMS, axis=1).astype(np.float32)

    def score(self, batch, inputs_embeds=None):
        """Return the sum of each pair's numbers."""
        embeds = self.embed(batch) if inputs_embeds is None else inputs_embeds
        return np.array([part.sum() for part in batch.by_pair(embeds)], np.float32)

    def gradients(self, batch, inputs_embeds=None):
        """Return scores and gradients: ones."""
        return self.score(batch, inputs_embeds), np.ones((len(batch.ids), DIMS), np.float32)

    def activate(self, scores):
        """Return the scores."""
        return scores


def words_in(text: str):
    """Return the places of a text's words."""
    return re.finditer(r"\S+", text)


def write_rows(file: Path, count: int) -> None:
    """Write short pairs with labels, every hundredth line broken."""
    rng = random.Random(0)
    with open(file, "w") as out:
        for number in range(count):
            query, document = " ".join(rng.choices(WORDS, k=2)), " ".join(rng.choices(WORDS, k=4))
            pair = {"query": query, "document": document, "label": number % 2}
            out.write("{\n" if number % 100 == 99 else json.dumps(pair) + "\n")


def measure(count: int, method: str) -> None:
    """Run a batch of so many rows and print what it took."""
    with tempfile.TemporaryDirectory() as work:
        write_rows(Path(work) / "rows.jsonl", count)
        before, began = peak(), time.perf_counter()
        run_batch(Path(work) / "rows.jsonl", Path(work) / "out", Adder(), Settings(method=method))
        seconds = time.perf_counter() - began
    print(f"{count:>9,} rows  peak {peak():6.1f} MiB, {before:.1f} of it before the batch began  {seconds:.0f} s")


def peak() -> float:
    """Return the most memory that this process has had resident, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def main() -> None:
    """Measure each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", type=int, nargs="+")
    parser.add_argument("--method", default="saliency")
    parser.add_argument("--here", action="store_true", help="in this process")
    given = parser.parse_args()
    for count in given.rows:
        if given.here:
            measure(count, given.method)
        else:
            command = [sys.executable, __file__, str(count), "--method", given.method, "--here"]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
