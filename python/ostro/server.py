"""Serving a model behind OpenAI's API, in this process."""
import os
from collections.abc import Mapping
from types import TracebackType

from ostro.model import Model, load
from ostro.module import _native

_USUAL = _native.ServeOptions()  # of the command


class Server:
    """A server that runs until `stop`, or until the `with` statement around it ends, which gets its address."""

    def __init__(self, native: "_native.Server", drain: float) -> None:
        self._native = native
        self._drain = drain

    def __repr__(self) -> str:
        return f"<ostro.Server {self.url}>"

    @property
    def url(self) -> str:
        """The address of the API, such as "http://127.0.0.1:8080/v1"."""
        return self._native.url

    def stop(self) -> bool:
        """Answers what was asked, for `drain` seconds at most, and ends. False: some requests were not answered."""
        return self._native.stop(self._drain)

    def __enter__(self) -> str:
        return self.url

    def __exit__(self, kind: "type[BaseException] | None", error: "BaseException | None",
                 trace: "TracebackType | None") -> None:
        self.stop()


def serve(model: "Model | str | os.PathLike[str]", *, listen: str = "127.0.0.1:0", receipts: "str | os.PathLike[str]" = "",
          sign: "str | os.PathLike[str]" = "", waiting: int = _USUAL.waiting, drain: float = 30.0,
          api_keys: "str | os.PathLike[str]" = "", running: int = _USUAL.running, cache_pages: int = _USUAL.cache_pages,
          adapters: "Mapping[str, str | os.PathLike[str]] | None" = None) -> Server:
    """Serves a model as `ostro serve` does, beside what this process does with it; port 0 is one that is free.

    It is ready when this returns. The options are the command's; `adapters` is {NAME: DIR}.
    """
    loaded = model if isinstance(model, Model) else load(model)
    options = _native.ServeOptions()
    options.listen, options.receipts, options.sign = listen, os.fspath(receipts), os.fspath(sign)
    options.api_keys, options.waiting, options.running = os.fspath(api_keys), waiting, running
    options.cache_pages = cache_pages
    pairs = [(name, os.fspath(path)) for name, path in (adapters or {}).items()]
    return Server(_native.serve(loaded._native, options, pairs), drain)
