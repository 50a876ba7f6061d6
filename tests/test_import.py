"""What `import backlight` loads: nothing that only some programs need."""

import os
import subprocess
import sys
from pathlib import Path

import backlight

LATER = ["nn", "optim", "data", "func", "lens", "masked", "serialization", "utils"]
LATER += ["autograd.functional", "autograd.paths", "autograd.saved_memory", "batching.dim_rules", "batching.loss_rules"]


def printed(program: str) -> str:
    """Run a program in a process of its own, with the backlight that is tested."""
    environment = os.environ | {"PYTHONPATH": str(Path(backlight.__file__).parent.parent)}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    ).stdout


def test_what_few_programs_need_is_imported_on_first_use():
    program = "import sys, backlight; print(*(name for name in sys.modules if name.startswith('backlight.')))"
    assert not {f"backlight.{name}" for name in LATER} & set(printed(program).split())


def test_a_batch_finds_its_rules_in_a_new_process():
    program = (
        "import backlight as torch\n"
        "print(torch.vmap(lambda row: row.sum(0))(torch.ones(2, 3)).tolist())\n"
        "print(torch.autograd.functional.jacobian(torch.exp, torch.zeros(1)).tolist())\n"
        "print(torch.masked.sum(torch.ones(3), mask=torch.ones(3) > 0).item())\n"
        "print(torch.autograd.graph.saved(torch.ones(3, requires_grad=True).exp()).bytes)\n"
    )
    assert printed(program).splitlines() == ["[3.0, 3.0]", "[[1.0]]", "3.0", "12"]
