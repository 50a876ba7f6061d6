"""Runs a case of the catalogue under the doctor, on one engine, as a script of its own."""

import contextlib
import io
import linecache
import textwrap

import numpy as np
import torch as pytorch

from backlight import lens
from backlight.cli.torch_names import torch_names
from backlight.lens.engines import engine_named
from backlight.lens.finding import Finding
from catalogue.case import Case

PRELUDE = "import copy\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"


def source_of(case: Case) -> str:
    """Return a case's program, as a script has it."""
    return textwrap.dedent(case.source).strip("\n") + "\n"


def findings_of(case: Case, engine: str) -> list[Finding]:
    """Run a case on one engine and return all that the doctor found, notes too."""
    with torch_names() if engine == "backlight" else contextlib.nullcontext():
        space = {"__name__": "__main__"}
        exec(PRELUDE, space)
        space["torch"].manual_seed(0)
        found = _visit(case, engine, space)
    pytorch.autograd.set_detect_anomaly(False)
    return found


def _visit(case: Case, engine: str, space: dict) -> list[Finding]:
    name, source = f"<case {case.id}>", source_of(case)
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    code = compile(source, name, "exec")
    quiet, known = contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(Exception)
    with (
        known,
        quiet,
        np.errstate(all="ignore"),
        lens.doctor(strict=case.strict, notes=True, engines=[engine_named(engine)]) as report,
    ):
        exec(code, space)
    return report.findings
