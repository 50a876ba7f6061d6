"""The rows of a part: read their pairs, run them in buckets of similar length, and return results in input order.

The last bits of a pair's numbers depend on the pairs in its batch. A part always has the same rows,
so it is always cut into the same buckets.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from backlight.errors import BacklightError, InputError
from backlight.explain.attribution import Attribution, TextAttribution, Token, Word
from backlight.explain.batch.rows import BadRow, Row, Unusable, bad_row
from backlight.explain.batch.settings import CHECK_COLUMNS, Settings
from backlight.explain.checks import check_readable
from backlight.explain.methods.registry import method_called
from backlight.explain.presentation.wording import spelling_line
from backlight.explain.ranking import mean_of
from backlight.explain.verification import ExplainedDocument, check_explanations
from backlight.explain.windows import MEAN, ScoredDocument, named, preselected
from backlight.models.languages import other_language
from backlight.models.pairs import DOCUMENT, Pair, PairBatch, reads_misspellings
from backlight.models.scorer import Scorer
from backlight.models.scoring import passes


@dataclass(frozen=True)
class Job:
    """A pair on its way through the model."""

    place: int  # in the part
    row: Row
    pairs: tuple[Pair, ...]  # one, or with windows "mean" one for each window
    window: int | None = None  # which one it is, from 1
    windows: int = 1  # how many there are
    windows_read: int = 1  # how many of them were scored
    chosen_by: str | None = None  # how these were chosen, where that were not all
    tokens_read: int | None = None  # of the document, by a mean of chosen windows

    def __len__(self) -> int:
        return sum(map(len, self.pairs))

    @property
    def left_out(self) -> tuple[int, int]:
        """Tokens of query and document that the score does not know."""
        query, document = self.pairs[0].left_out
        if len(self.pairs) == 1:
            return query, document
        total = document + len(self.pairs[0].of_side(DOCUMENT))
        return query, 0 if self.tokens_read is None else total - self.tokens_read


def is_checked(row: int) -> bool:
    """Return whether the explanation of a row is held to the score: of the first ten, then of one in fifty."""
    return row < 10 or row % 50 == 0


@dataclass(frozen=True)
class Worker:
    """Turns rows into records."""

    ranker: Scorer
    settings: Settings
    english_only: bool = False  # whether the model is known to read nothing else: then other languages are named
    checks: bool = True  # whether some of the explanations are held to the score

    def results(
        self, rows: Sequence[Row | BadRow], first: int = 0, progress: Callable[[int], None] = lambda done: None
    ) -> list[dict | BadRow]:
        """Return a record for each row, or why there is none, in the order of the rows.

        Args:
            first: the number of the first row in the input.
            progress: called with the number of rows newly done.
        """
        found: list[dict | BadRow] = list(rows)
        jobs = []
        for job in self._read(rows):
            if isinstance(job, Job):
                jobs.append(job)
            else:
                place, found[place] = job
        progress(len(rows) - len(jobs))
        jobs.sort(key=len)  # stable: rows of the same length keep their order
        for some in passes(jobs):
            for job, result in zip(some, self._explained(some)):
                found[job.place] = result if isinstance(result, BadRow) else self._record(job, first, *result)
                if not isinstance(result, BadRow) and self.checks and is_checked(first + job.place):
                    found[job.place] |= self._check(job, *result)
            progress(len(some))
        return found

    def _read(self, rows: Sequence[Row | BadRow]) -> Iterator[Job | tuple[int, BadRow]]:
        """Give each row as the model reads it, or its place and why the model cannot."""
        good = [(place, row) for place, row in enumerate(rows) if isinstance(row, Row)]
        pairs = self.ranker.read([(row.query, row.document) for _, row in good])
        for (place, row), pair in zip(good, pairs):
            pair = replace(pair, name=f"row {row.id}")
            try:
                check_readable(pair)
                yield self._windowed(place, row, pair)
            except InputError as problem:
                yield place, bad_row(row.line, Unusable("not readable", str(problem)), _raw(row))

    def _windowed(self, place: int, row: Row, pair: Pair) -> Job:
        """Return the pair, or if its document is too long and is read in windows, those that count."""
        reading = self.settings.reading
        if reading.windows is None or not pair.left_out[DOCUMENT]:
            return Job(place, row, (pair,), 1)
        windows = preselected(self.ranker.windows(row.query, row.document, reading.stride), reading)
        found = named(windows, pair.name, reading)
        if len(found) == 1:
            return Job(place, row, (found[0],), 1)
        is_mean = reading.windows == MEAN  # whose windows are scored as they are explained
        read = ScoredDocument(found, np.zeros(0) if is_mean else self.ranker.scores_of(found), reading.windows)
        window = read.window()
        pairs = tuple(found) if is_mean else (read.best_pair,)
        return Job(place, row, pairs, window.number, window.of, window.read, window.chosen_by, read.tokens_read)

    def _explained(self, jobs: Sequence[Job]) -> list[tuple[float, Attribution | None] | BadRow]:
        """Return score and explanation of each pair. If all at once fail, each runs alone, to find which it was."""
        try:
            found = iter(self._run([pair for job in jobs for pair in job.pairs]))
            return [_together([next(found) for _ in job.pairs], job.tokens_read) for job in jobs]
        except BacklightError as problem:
            if len(jobs) > 1:
                return [result for job in jobs for result in self._explained([job])]
            (job,) = jobs
            return [bad_row(job.row.line, Unusable("not explained", str(problem)), _raw(job.row))]

    def _run(self, pairs: list[Pair]) -> list[tuple[float, Attribution | None]]:
        if self.settings.explains:
            method = method_called(self.settings.method)
            found = [(one.score, one) for one in method.explain(self.ranker, pairs, **self.settings.method_options)]
        else:
            found = [(score, None) for score in self.ranker.score(PairBatch.of(pairs)).tolist()]
        for pair, (score, explained) in zip(pairs, found, strict=True):
            if not np.isfinite([score, *_values_in(explained)]).all():
                raise InputError(f"the score of {pair.name} and all values of its words must be finite numbers")
        return found

    def _record(self, job: Job, first: int, score: float, explained: Attribution | None) -> dict:
        row, (query_left_out, document_left_out) = job.row, job.left_out
        record = {
            "row": first + job.place,
            **{name: getattr(row, name) for name in OF_ROW},
            **self._languages(row),
            "score": score,
            "activated": float(self.ranker.activate(np.array([score], np.float32))[0]),
            "tokens": len(job),
            "query_left_out": query_left_out,
            "document_left_out": document_left_out,
            "window": job.window,
            "windows": job.windows,
            "windows_read": job.windows_read,
            "windows_chosen_by": job.chosen_by,
            **self._spelling(job),
        }
        return record if explained is None else record | self._values(explained)

    def _languages(self, row: Row) -> dict[str, str | None]:
        """Return the languages of a row's texts that look other than English, for a model that reads English only."""
        if not self.english_only:
            return {}
        return {"query_language": other_language(row.query), "document_language": other_language(row.document)}

    def _spelling(self, job: Job) -> dict[str, str | None]:
        """Return which words of a row's query were read as others, for a model that does so."""
        return {"read_as": spelling_line([job.pairs[0].read_as])} if reads_misspellings(self.ranker) else {}

    def _check(self, job: Job, score: float, explained: Attribution | None) -> dict:
        """Return what the score does without the words that a row shows (see NOTE [The check])."""
        if explained is None:
            return {}
        (made,) = check_explanations(self.ranker, [ExplainedDocument(job.pairs, explained)])
        return {f"check_{name}": getattr(made.check, name) for name in CHECK_COLUMNS}

    def _values(self, explained: Attribution) -> dict:
        found: dict = {"gap": explained.gap, "passes": float(explained.passes)}
        for name, text in (("query", explained.query), ("document", explained.document)):
            found[f"{name}_total"] = sum(abs(word.value) for word in text.words)
            found[f"{name}_words"] = [
                _value_of(word) | {"error": word.error, "effect": word.effect} for word in self._kept(text)
            ]
            if self.settings.tokens:
                found[f"{name}_tokens"] = [_value_of(token) for token in text.tokens]
        if self.settings.tokens:
            found["special_tokens"] = [_value_of(token) for token in explained.special]
        return found

    def _kept(self, text: TextAttribution) -> Sequence[Word]:
        """Return the words that are kept, in the order of the text."""
        if self.settings.top_words is None:
            return text.words
        return sorted(text.strongest(self.settings.top_words), key=lambda word: word.start)


def _values_in(explained: Attribution | None) -> list[float]:
    if explained is None:
        return []
    texts = (explained.query, explained.document)
    return [part.value for text in texts for part in (*text.words, *text.tokens)] + [explained.gap or 0.0]


def _together(
    parts: list[tuple[float, Attribution | None]], tokens_read: int | None
) -> tuple[float, Attribution | None]:
    """Return score and explanation of one pair, or the mean of its windows' (see `mean_of`)."""
    if len(parts) == 1:
        return parts[0]
    score = float(np.mean([score for score, _ in parts]))
    explained = [one for _, one in parts if one is not None]
    return score, mean_of(explained, score, tokens_read) if explained else None


OF_ROW = ("line", "id", "query_id", "document_id", "query", "document", "label")


def _value_of(part: Word | Token) -> dict:
    return {"text": part.text, "start": part.start, "end": part.end, "value": part.value}


def _raw(row: Row) -> dict:
    return {"id": row.id, "query": row.query, "document": row.document}
