"""Run a batch: part after part, from where the job stopped to the end, then the summary."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from dataclasses import replace as replaced
from pathlib import Path

from backlight.errors import InputError
from backlight.explain.batch.checksums import Records, Repair
from backlight.explain.batch.files import fingerprint
from backlight.explain.batch.inputs import Given, Reading, Source, keep_spooled, open_input
from backlight.explain.batch.job import BAD_ROWS, ID, begin, check_folder, clear, describe, drop_cut_short
from backlight.explain.batch.lock import only_process
from backlight.explain.batch.parts import Parts
from backlight.explain.batch.rows import BadRow, Row, batched
from backlight.explain.batch.settings import Settings
from backlight.explain.batch.sharding.packed_parts import unpack_parts
from backlight.explain.batch.sharding.stores import FolderStore
from backlight.explain.batch.summary import summarise
from backlight.explain.batch.work import Worker
from backlight.explain.reranker import Reranker
from backlight.models.scorer import Scorer


@dataclass(frozen=True)
class BatchProgress:
    """How far a batch is.

    Args:
        doing: what goes on: "rows" or "summary".
        rows: rows of the input that are done, bad ones and those of earlier runs counted.
        before: how many of them an earlier run had done.
        share: of the input that is done, from 0 to 1.
        bad: how many rows this run could not use.
        total: how many rows the input has, where that is known.
    """

    doing: str
    rows: int
    before: int
    share: float
    bad: int
    total: int | None = None


@dataclass(frozen=True)
class Batch:
    """A batch that is done.

    Args:
        folder: where everything lies (see NOTE [A batch's folder] in explain/batch/job.py).
        rows: rows of the input, bad ones counted.
        bad: bad rows.
        resumed: rows that an earlier run had done.
        repairs: files that were not as an earlier run wrote them.
        summary: what summary.json says.
    """

    folder: Path
    rows: int
    bad: int
    resumed: int
    repairs: tuple[Repair, ...]
    summary: dict

    @property
    def bad_rows(self) -> Path:
        """The file with all bad rows."""
        return self.folder / BAD_ROWS


def run_batch(
    given: Given,
    out: Path | str,
    ranker: Scorer,
    settings: Settings = Settings(),
    *,
    reading: Reading = Reading(),
    replace: bool = False,
    strict: bool = False,
    watch: Callable[[BatchProgress], None] = lambda progress: None,
    notice: Callable[[Repair], None] = lambda repair: None,
) -> Batch:
    """Score and explain all pairs of an input, in parts; a job that is there and not done goes on where it stood.

    Parts that are there are verified first, and computed again if they are damaged (see NOTE [Checksums of a job]).

    Args:
        given: a file, a folder, "-" for JSON lines from standard input, or records: {"query": …, "document": …}.
        out: a folder of its own.
        ranker: a `Reranker`, or a scorer (see NOTE [A scorer]).
        settings: what is computed and kept.
        reading: how the input is read.
        replace: whether a job that is there is removed first.
        strict: whether the first bad row is an error.
        watch: called now and then with how far the batch is.
        notice: called with each file of the job that was damaged, before it is made again.

    Raises:
        InputError: the input cannot be used, `out` holds another job or something else or cannot be written to, another
            process works in it, or with `strict` a row is bad.
    """
    out = Path(out)
    check_folder(out)
    with only_process(out), in_one_line(out):
        if replace:
            clear(out)
        drop_cut_short(out)
        try:
            source = open_input(given, out, reading)
            scorer = ranker.scorer if isinstance(ranker, Reranker) else ranker
            english_only = isinstance(ranker, Reranker) and ranker.reads_english_only
            run = _Run(source, out, Worker(scorer, settings, english_only), strict, watch, notice)
            with closing(run):
                return run.run()
        finally:
            drop_cut_short(out)


@contextmanager
def in_one_line(out: Path | str) -> Iterator[None]:
    """Turn what the system says of files into an InputError."""
    try:
        yield
    except (OSError, sqlite3.Error) as problem:
        said = getattr(problem, "strerror", None) or problem
        file = getattr(problem, "filename", None) or out
        raise InputError(
            f"cannot continue the batch in {file}: {said}; once that is fixed, the same command resumes the job"
        ) from problem


class _Run:
    """A run of a batch, from where the job stood."""

    def __init__(
        self,
        source: Source,
        out: Path,
        worker: Worker,
        strict: bool,
        watch: Callable[[BatchProgress], None],
        notice: Callable[[Repair], None],
    ):
        self.source, self.out, self.worker, self.strict, self.watch = source, out, worker, strict, watch
        self.name = source.files[0].name
        self.progress = BatchProgress("rows", rows=0, before=0, share=0.0, bad=0)
        self.repairs: list[Repair] = []
        self.notice = notice

    def run(self) -> Batch:
        """Do what is left. If nothing can be done at all, no trace of the job is left."""
        self.stats = [stat_of(file) for file in self.source.files]
        fingerprints = [fingerprint(file) for file in self.source.files]
        self.lines = max(1, self.source.total(fingerprints))
        settings = self.worker.settings
        job = begin(self.out, describe(self.source, fingerprints, self.worker.ranker, settings), self._repaired)
        self.source = keep_spooled(self.source, self.out)
        records = Records(self.out, job[ID])
        parts = Parts(self.out, settings, records)
        unpack_parts(FolderStore(self.out), parts, job[ID], self._repaired)  # what workers did, if it was planned
        try:
            self.source.prepare(records, self._repaired)
            self._go_through(parts)
        except InputError:
            if not parts.done and not parts.damaged:
                clear(self.out)
            raise
        progress = replaced(self.progress, doing="summary", share=1.0)
        self.watch(progress)
        counting = {"ideal": self.source.ideal, "english_only": self.worker.english_only}
        summary = summarise(self.out, parts, job, settings, progress.rows, **counting)
        return Batch(self.out, progress.rows, summary["bad"]["count"], progress.before, tuple(self.repairs), summary)

    def close(self) -> None:
        """Close what the source holds open."""
        self.source.close()

    def _repaired(self, repair: Repair) -> None:
        self.repairs.append(repair)
        self.notice(repair)

    def _go_through(self, parts: Parts) -> None:
        before, count = set(parts.done), 0
        if self.strict:
            for bad in parts.bad_rows():
                self._refuse(bad["line"], bad["reason"])
        for number, part_rows in enumerate(batched(self.source.rows(), self.worker.settings.rows)):
            count += 1
            rows, share = self.progress.rows + len(part_rows), min(1.0, part_rows[-1].line / self.lines)
            if number in before:
                done_before = self.progress.before + len(part_rows)
                self.progress = replaced(self.progress, rows=rows, before=done_before, share=share)
                continue
            if number in parts.damaged:
                damage = parts.damaged[number]
                self._repaired(Repair(damage.file, str(damage)))
            bad = self._write_part(number, part_rows, parts)
            self.progress = replaced(self.progress, rows=rows, share=share, bad=self.progress.bad + bad)
            self.watch(self.progress)
        if not self.progress.rows:
            raise InputError(f"{self.name} must hold a row at least, and is empty")
        for repair in parts.tidy(count):
            self._repaired(repair)

    def _write_part(self, number: int, part_rows: list[Row | BadRow], parts: Parts) -> int:
        """Write a part, and return the number of its bad rows."""
        if self.strict:
            self._refuse_first_of(part_rows)
        results = self.worker.results(part_rows, self.progress.rows, self._watched(part_rows))
        bad = [one for one in results if isinstance(one, BadRow)]
        if self.strict:
            self._refuse_first_of(bad)
        if not parts.done and len(bad) == len(results):
            raise InputError(
                f"{self.name} must hold rows that can be used, and of the first {len(bad):,} none can: "
                f"line {bad[0].line} {bad[0].reason}"
            )
        self._check_unchanged()
        parts.write(number, [one for one in results if not isinstance(one, BadRow)], bad)
        return len(bad)

    def _check_unchanged(self) -> None:
        """Raise if a file of the input was written to since its fingerprint was taken."""
        for file, before in zip(self.source.files, self.stats):
            check_unchanged(file, before)

    def _watched(self, part_rows: list[Row | BadRow]) -> Callable[[int], None]:
        began, ends, done = self.progress, min(1.0, part_rows[-1].line / self.lines), 0

        def progress(newly: int) -> None:
            nonlocal done
            done += newly
            share = began.share + (ends - began.share) * done / len(part_rows)
            self.watch(replaced(began, rows=began.rows + done, share=share))

        return progress

    def _refuse_first_of(self, rows: Iterable[Row | BadRow]) -> None:
        for row in rows:
            if isinstance(row, BadRow):
                self._refuse(row.line, row.reason)

    def _refuse(self, line: int, reason: str) -> None:
        raise InputError(f"{self.name}, line {line}: {reason} (without --strict it is left out)")


def check_unchanged(file: Path, before: tuple[int, int]) -> None:
    """Raise if a file was written to since `stat_of` gave `before`."""
    if stat_of(file) != before:
        raise InputError(f"{file} was changed while it was read: give the command again when it is complete")


def stat_of(file: Path) -> tuple[int, int]:
    """Return what is different after a file was written to.

    Raises:
        InputError: it is gone.
    """
    try:
        found = file.stat()
    except OSError as problem:
        raise InputError(f"cannot read {file}: {problem.strerror}") from problem
    return found.st_size, found.st_mtime_ns
