"""Write the pairs that the built-in reranker is trained on, of many kinds of text, with wrong passages of every kind:

python examples/reranker_pairs.py DATA --out pairs.jsonl [--debian ROOT] [--leave-out NAME ...] [--size N] [--seed S]

DATA holds squad, question_sentence, medquad, covid_qa and tldr. ROOT has handbooks of Debian's packages, installed
(/) or unpacked by `make reranker-sources`; those that are missing are left out, and the manifest says so. A line of
it:

    {"query", "positive": text or null where nothing answers, "negatives": [text], "kinds": [one for each negative],
     "domain", "source", "form", "positive_kind"}

The manifest beside it (pairs.manifest.json) names each source with its licence, the SHA-256 of what was read, and
counts.
"""

import argparse
from functools import partial
from pathlib import Path

import backlight as torch
from backlight.models.checkpoint import find_model
from backlight.models.ranker import load_ranker
from reranker.problems import in_one_line
from reranker_sources.dictionaries import synonyms
from reranker_sources.mining import EmbeddingCache
from reranker_sources.pairs_file import RANKER, package_versions, read_sources, rows_asked, write_pairs
from reranker_sources.rows import budgets


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path, metavar="DATA")
    options.add_argument("--out", type=Path, required=True, metavar="FILE", help="pairs as JSON lines")
    options.add_argument("--debian", type=Path, metavar="ROOT", help="where Debian's handbooks are: / or a folder")
    options.add_argument("--leave-out", nargs="+", default=[], metavar="NAME", help="domains or sources left out")
    options.add_argument("--size", type=int, default=20_000, help="rows, of all sources together")
    options.add_argument(
        "--rows", nargs="+", default=[], metavar="NAME=N", help="rows of a source, instead of its share"
    )
    options.add_argument("--seed", type=int, default=18)
    options.add_argument("--cache", type=Path, default=Path("out/embeddings"), help="folder for embeddings")
    given = options.parse_args()
    with in_one_line():
        sources = read_sources(given.data, given.debian, given.leave_out)
        model = load_ranker(find_model(RANKER), RANKER)
        embed = EmbeddingCache(given.cache, model.embeddings_of)
        words = synonyms(given.debian) if any(one.name == "wordnet" for one in sources) else {}
        packages = package_versions(given.debian) if given.debian else {}
        say = partial(print, flush=True)
        shares = budgets(sources, given.size) | rows_asked(given.rows, sources)
        write_pairs(given.out, sources, embed, words, shares, given.seed, say, packages)
    print(f"made by backlight {torch.__version__}")


if __name__ == "__main__":
    main()
