"""After an interrupted call the session is as before; `tests/soak/interrupts.py` does the same for longer."""

import contextlib
import subprocess
import sys

import numpy as np
import pytest

import backlight
from backlight.dispatch.arguments.checked import explained
from backlight.kernels import state_blocks
from backlight.kernels.native import compiled, core
from soak import interrupts
from soak.interrupted_programs import PROGRAMS, SLOW

FAST = [name for name, program in PROGRAMS.items() if program not in SLOW]
BLOCKS = [state_blocks._PythonBlock, *([] if state_blocks.compiled is None else [state_blocks.compiled.Block])]
SETTINGS = [state_blocks._PythonSetting, *([] if state_blocks.compiled is None else [state_blocks.compiled.Setting])]
needs_compiled = pytest.mark.skipif(
    state_blocks.compiled is None, reason="NOTE [Interrupts]: the blocks are Python's here"
)


def lost(names: list[str], kind: str, most: int) -> tuple[list[str], int]:
    """Interrupt programs in a process of their own; return what was lost, and how many interrupts there were."""
    options = ["--child", ",".join(names), "--kinds", kind, "--seconds", "600", "--interrupts", str(most)]
    done = subprocess.run([sys.executable, interrupts.__file__, *options], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    (count,) = [int(line.split()[1]) for line in lines if line.startswith("COUNT")]
    return [line for line in lines if line.startswith("LOST")], count


@needs_compiled
@pytest.mark.parametrize("kind", ["points", "memory"])
def test_an_interrupt_at_any_point_leaves_the_session_as_it_was(kind):
    assert lost(FAST, kind, 8) == ([], 8 * len(FAST))


@needs_compiled
def test_real_signals_leave_the_session_as_it_was():
    names = ["with_no_grad", "with_tensor_hooks", "with_autograd_grad", "with_checkpoint", "training_step"]
    assert lost(names, "signals", 60) == ([], 60 * len(names))


class Toggle:
    """Something that blocks change."""

    on = False


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_restoration_that_is_interrupted_is_repeated_and_the_interrupt_raised(kind, error):
    class Switched(kind):
        tries = 0

        def _block_state(self):
            return Toggle.on

        def _block_change(self, state):
            Toggle.on = True
            return self

        def _block_restore(self, state):
            self.tries += 1
            if self.tries < 4:
                raise error(self.tries)
            Toggle.on = state

    with pytest.raises(error, match="1"), Switched():
        assert Toggle.on
    assert not Toggle.on


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_change_that_is_interrupted_is_undone(kind):
    class Interrupted(kind):
        def _block_state(self):
            return Toggle.on

        def _block_change(self, state):
            Toggle.on = True
            raise KeyboardInterrupt

        def _block_restore(self, state):
            Toggle.on = state

    with pytest.raises(KeyboardInterrupt), Interrupted():
        pass
    assert not Toggle.on


@pytest.mark.parametrize("kind", BLOCKS)
def test_a_block_may_be_entered_again_while_it_is(kind):
    class Deeper(kind):
        depth = 0

        def _block_state(self):
            return Deeper.depth

        def _block_change(self, state):
            Deeper.depth = state + 1

        def _block_restore(self, state):
            Deeper.depth = state

    block = Deeper()
    with block, block:
        assert Deeper.depth == 2
    assert Deeper.depth == 0
    with pytest.raises(RuntimeError, match="had not been entered"):
        block.__exit__(None, None, None)


@needs_compiled
def test_an_interrupt_while_a_failed_call_is_explained_is_raised():
    def interrupted(function, args, kwargs, problem):
        raise KeyboardInterrupt

    core.core_explain(interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            backlight.matmul(backlight.ones(2), backlight.ones(3))
    finally:
        core.core_explain(explained)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_setting_holds_inside_its_block(kind):
    with pytest.raises(KeyError), kind(Toggle, "on", True):
        assert Toggle.on
        raise KeyError
    assert not Toggle.on


def test_a_generators_block_passes_exceptions_on_and_may_swallow_them():
    @state_blocks.block
    def swallowing(kind):
        with contextlib.suppress(kind):
            yield kind

    with swallowing(KeyError) as given:
        assert given is KeyError
        raise KeyError
    with pytest.raises(ValueError), swallowing(KeyError):
        raise ValueError
    with pytest.raises(StopIteration), swallowing(KeyError):
        raise StopIteration
    assert swallowing(KeyError)(lambda: 5)() == 5


@pytest.mark.skipif(compiled is None, reason="without compiled kernels NumPy's state may stay: docs/guarantees.md")
def test_numpys_state_is_set_back_though_memory_runs_out_meanwhile():
    fails = pytest.importorskip("_testcapi", reason="this Python was built without its test modules")
    before = np.geterr()
    for allocation in range(12):
        block = state_blocks.silent_floats()
        block.__enter__()
        leave = block.__exit__
        try:
            fails.set_nomemory(allocation, allocation + 1)
            leave(None, None, None)
        finally:
            fails.remove_mem_hooks()
        assert np.geterr() == before
