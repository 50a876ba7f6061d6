"""`torch.hub`: models from a folder with a `hubconf.py`, and the folder of what was downloaded.

Nothing is downloaded here: what needs the network is refused with the reason.
"""

import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

from backlight.errors import UnsupportedError, ValueProblem

__all__ = [
    "download_url_to_file",
    "get_dir",
    "help",
    "list",
    "load",
    "load_state_dict_from_url",
    "set_dir",
]

CONF = "hubconf.py"
_chosen = SimpleNamespace(folder=None)


def get_dir() -> str:
    """Return the folder of downloads: `set_dir`'s, or `$TORCH_HOME/hub`, by default `~/.cache/torch/hub`."""
    if _chosen.folder is not None:
        return _chosen.folder
    cache = os.getenv("XDG_CACHE_HOME", "~/.cache")
    return str(Path(os.path.expanduser(os.getenv("TORCH_HOME", f"{cache}/torch")), "hub"))


def set_dir(d: str | os.PathLike) -> None:
    """Set the folder of downloads."""
    _chosen.folder = os.path.expanduser(d)


def _local(repo: str | os.PathLike, source: str) -> ModuleType:
    """Return the module of the file `hubconf.py` in a folder.

    Raises:
        ValueError: `source` is unknown.
        NotImplementedError: it is on the network.
    """
    if source not in ("github", "local"):
        raise ValueProblem(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    if source == "github":
        raise UnsupportedError(f"backlight downloads nothing: clone {repo} and pass its folder with source='local'")
    folder = str(Path(repo).resolve())
    spec = importlib.util.spec_from_file_location("hubconf", Path(folder, CONF))
    made = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)
    try:
        spec.loader.exec_module(made)
    finally:
        sys.path.remove(folder)
    return made


def _entry(conf: ModuleType, name: str) -> Callable:
    found = getattr(conf, name, None)
    if not callable(found):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return found


def list(github: str, force_reload: bool = False, skip_validation: bool = False, trust_repo: object = None):
    """Raise: this lists what is on the network.

    Raises:
        NotImplementedError: always.
    """
    _local(github, "github")


def load(
    repo_or_dir: str | os.PathLike,
    model: str,
    *args,
    source: str = "github",
    trust_repo: object = None,
    force_reload: bool = False,
    verbose: bool = True,
    skip_validation: bool = False,
    **kwargs,
):
    """Return what a function of a folder's `hubconf.py` returns, called with the other arguments.

    Raises:
        NotImplementedError: `source` is not "local".
        RuntimeError: there is no such function.
    """
    return _entry(_local(repo_or_dir, source), model)(*args, **kwargs)


def help(github: str | os.PathLike, model: str, *, source: str = "github") -> str | None:
    """Return the docstring of a function of a folder's `hubconf.py`."""
    return _entry(_local(github, source), model).__doc__


def load_state_dict_from_url(url: str, model_dir: str | None = None, map_location: object = None) -> None:
    """Raise: nothing is downloaded.

    Raises:
        NotImplementedError: always.
    """
    raise UnsupportedError(f"backlight downloads nothing: fetch {url} yourself, and read the file with torch.load")


def download_url_to_file(url: str, dst: str, hash_prefix: str | None = None, progress: bool = True) -> None:
    """Raise: nothing is downloaded.

    Raises:
        NotImplementedError: always.
    """
    raise UnsupportedError(f"backlight downloads nothing: fetch {url} yourself into {dst}")
