"""Object stores (S3, Google Cloud, Azure, and what speaks as they do): the one file that imports obstore."""

import importlib
import time
from pathlib import Path

from backlight.errors import InputError, install_hint

PAUSES = (0.2, 1.0, 3.0, None)  # seconds before a request is repeated


class ObjectStore:
    """The files below a URL of an object store, as a `Store` (see NOTE [A store] in explain/batch/sharding/stores.py).

    An object is created by one request with `If-None-Match: *`, which the store refuses if there is one of that name:
    put-if-absent. Requests that fail are repeated; if one was carried out though its reply was lost, its repetition is
    refused, and the object is there all the same. pyarrow's file systems have no conditional request, so a part could
    be replaced there.

    Args:
        url: "s3://bucket/path", "gs://…", "az://…", "memory:///". Keys and region come from the environment, as the
            store's own tools read them (AWS_ACCESS_KEY_ID, AWS_REGION, AWS_ENDPOINT_URL …).
    """

    def __init__(self, url: str):
        try:
            self._objects = importlib.import_module("obstore")
            self._store = importlib.import_module("obstore.store").from_url(url)
            self._errors = importlib.import_module("obstore.exceptions")
        except ImportError as problem:
            raise InputError(f"an object store needs the obstore library: {install_hint('objects')}") from problem
        except Exception as problem:
            if type(problem).__module__.split(".")[0] not in ("obstore", "builtins"):
                raise
            raise InputError(f"cannot open {url}: {_first_line(problem)}") from problem
        self._url = url

    def create(self, name: str, content: bytes) -> bool:
        """Write an object if there is none of that name, and return whether it was written."""
        for pause in PAUSES:  # obstore itself repeats no conditional request whose reply was lost
            try:
                self._objects.put(self._store, name, content, mode="create", use_multipart=False)
                return True
            except self._errors.AlreadyExistsError:
                return False
            except self._errors.BaseError as problem:
                if pause is None:
                    raise self._failed(name, problem) from problem
                time.sleep(pause)
        return False

    def read(self, name: str) -> bytes:
        """Return an object's content."""
        try:
            return bytes(self._objects.get(self._store, name).bytes())
        except (self._errors.NotFoundError, FileNotFoundError) as problem:
            raise FileNotFoundError(f"{self._url}/{name}") from problem
        except self._errors.BaseError as problem:
            raise self._failed(name, problem) from problem

    def exists(self, name: str) -> bool:
        """Return whether there is an object of that name."""
        try:
            self._objects.head(self._store, name)
        except (self._errors.NotFoundError, FileNotFoundError):
            return False
        except self._errors.BaseError as problem:
            raise self._failed(name, problem) from problem
        return True

    def names(self, folder: str) -> set[str]:
        """Return the names of the objects below a folder, without the folder's."""
        try:
            pages = self._objects.list(self._store, prefix=f"{folder}/")
            return {one["path"].removeprefix(f"{folder}/") for page in pages for one in page}
        except self._errors.BaseError as problem:
            raise self._failed(folder, problem) from problem

    def remove(self, name: str) -> None:
        """Remove an object, if it is there."""
        try:
            self._objects.delete(self._store, name)
        except (self._errors.NotFoundError, FileNotFoundError):
            return
        except self._errors.BaseError as problem:
            raise self._failed(name, problem) from problem

    def fetch(self, name: str, file: Path) -> None:
        """Copy an object to a file."""
        file.write_bytes(self.read(name))

    def _failed(self, name: str, problem: Exception) -> OSError:
        return OSError(None, _first_line(problem), f"{self._url}/{name}")


def _first_line(problem: Exception) -> str:
    return str(problem).strip().split("\n")[0]
