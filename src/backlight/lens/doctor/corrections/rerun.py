"""Whether a corrected line cures: the corrected script is run once more under the doctor, in a process of its own.

NOTE [Verified corrections]
A correction is verified if the script with it ends as it should, within the time limit, and has no finding. Where one
correction alone leaves other findings, all are tried together, and then all are verified or none. The copy lies in a
directory of its own: a script that reads files next to itself, through `__file__`, is not verified.
"""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from backlight.lens.doctor.corrections.applying import applied, corrects
from backlight.lens.finding import NOTE, Finding

SHORTEST, TIMES = 60.0, 4.0  # seconds, and how many times as long as the first run


@dataclass(frozen=True)
class Rerun:
    """How a script is run again.

    Args:
        script: its path.
        arguments: what it sees in `sys.argv`.
        options: of the doctor's command: the engine, `--strict`.
        seconds: how long the first run took.
    """

    script: str
    arguments: Sequence[str]
    options: Sequence[str]
    seconds: float

    def verified(self, findings: Sequence[Finding]) -> list[Finding]:
        """Return findings, each with whether its corrected line is verified (NOTE [Verified corrections])."""
        try:
            source = Path(self.script).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return list(findings)
        wrong = [found for found in findings if found.level != NOTE]
        with_line = [found for found in wrong if corrects(found, self.script)]
        cured = [found for found in with_line if self._is_silent(applied(source, [found]))]
        if not cured and len(with_line) > 1 and self._is_silent(applied(source, with_line)):
            cured = with_line
        return [dataclasses.replace(found, verified=found in cured) for found in findings]

    def _is_silent(self, source: str | None) -> bool:
        """Return whether a source runs to its end without a finding."""
        if source is None:
            return False
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / Path(self.script).name
            copy.write_text(source, encoding="utf-8")
            start = "import sys; from backlight.cli.main import main; sys.exit(main(sys.argv[1:]))"
            command = [sys.executable, "-c", start, "doctor", "--json", *self.options, str(copy), "--", *self.arguments]
            paths = [str(Path(self.script).resolve().parent), os.environ.get("PYTHONPATH", "")]
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
            try:
                ended = subprocess.run(
                    command,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    text=True,
                    timeout=max(SHORTEST, TIMES * self.seconds),
                    check=False,
                )
                last = json.loads(ended.stdout.splitlines()[-1])
            except (subprocess.TimeoutExpired, OSError, ValueError, IndexError):
                return False
            return ended.returncode == 0 and not last.get("findings", True)
