"""Runs a program's source under the doctor, on one engine, as a script of its own."""

import contextlib
import io
import itertools
import linecache
import sys
from contextlib import nullcontext

import numpy as np
import torch as pytorch

from backlight import lens
from backlight.adapters.torch_engine import torch_engine
from backlight.lens.finding import Finding
from backlight.lens.native import NATIVE
from backlight.torch_api.module_names import torch_names

ENGINES = ("torch", "backlight")
# rules whose programs break on PyTorch only
ONLY_TORCH = {"BL003", "BL202", "BL406", "BL507", "BL755", "BL770"}
ONLY_TORCH |= {"BLA08", "BLA09", "BLA13", "BL909", "BL910", "BL911", "BL912", "BL913"}
PRELUDE = "import copy\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n"
_number = itertools.count()


def engine_called(name: str):
    """Return an engine by its name."""
    return torch_engine() if name == "torch" else NATIVE


def names_of(engine: str):
    """Return a block in which `import torch` gives an engine."""
    return torch_names() if engine == "backlight" else nullcontext()


def run(source: str, engine: str, visit=None, name: str | None = None) -> dict:
    """Run a program and return its names; in a visit of the doctor, if there is one."""
    name = name or f"<program {next(_number)}>"
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    space = {"__name__": "__main__"}
    with names_of(engine):
        exec(PRELUDE, space)
        space["torch"].manual_seed(0)
        code = compile(source, name, "exec")
        hook = sys.excepthook
        try:
            with visit or nullcontext(), contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
                exec(code, space)
        finally:
            sys.excepthook = hook  # torch.distributed leaves one of its own
    return space


def findings_of(source: str, engine: str, **options) -> list[Finding]:
    """Run a program under the doctor, whether it ends with an error or not, and return what was found."""
    visit = lens.doctor(engines=[engine_called(engine)], **options)
    with contextlib.suppress(Exception):
        run(source, engine, visit)
    failed = [watch.failed for watch in visit.session.watches if watch.failed]
    assert not failed, failed
    return visit.session.findings


def marked_line(source: str) -> int:
    """Return the number of the line that is marked with `# here`."""
    return next(number for number, line in enumerate(source.splitlines(), 1) if "# here" in line)


assert pytorch.__version__  # the engine `torch` is the real one here
