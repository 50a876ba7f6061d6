"""End a program that is examined after a number of optimizer steps: a few are enough for nearly all rules."""

from backlight.errors import InputError


class StepsReachedError(SystemExit):
    """Ends the program as `sys.exit()` would, so that its `finally` blocks run and `except Exception` lets it pass."""


class StepLimit:
    """Ends the program once its optimizers have made so many steps.

    Args:
        steps: how many, of all optimizers together.

    Attributes:
        reached: whether it has ended the program.
    """

    def __init__(self, steps: int):
        if steps < 1:
            raise InputError(f"steps must be at least 1, got {steps}: after how many optimizer steps to stop")
        self.steps = steps
        self.made = 0
        self.reached = False

    def stepped(self, *event) -> None:
        """Count a step; it is called after the detectors have seen it."""
        self.made += 1
        if self.made >= self.steps:
            self.reached = True
            raise StepsReachedError
