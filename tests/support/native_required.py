"""Where the compiled kernels must be there: in continuous integration, a session without them does not test them."""

import os
import warnings

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # `require_native` says the same, in one line
    from backlight.kernels import native

compiled = native.compiled
NOT_SET = ("", "0", "false")


def require_native() -> None:
    """End the session if the compiled kernels do not load, or are required and not there.

    CI=true or BACKLIGHT_REQUIRE_NATIVE=1 requires them; BACKLIGHT_KERNELS=numpy leaves them out on purpose.

    Raises:
        pytest.UsageError: so it is.
    """
    if compiled is not None or os.environ.get("BACKLIGHT_KERNELS") == "numpy":
        return
    required = [name for name in ("CI", "BACKLIGHT_REQUIRE_NATIVE") if os.environ.get(name, "") not in NOT_SET]
    if required or native.why_not != native.ABSENT:
        why = f" are required here ({required[0]}={os.environ[required[0]]})" if required else ""
        raise pytest.UsageError(f"native kernels{why}: {native.NAME} {native.why_not}")
