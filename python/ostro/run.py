"""Runs: training, reading and verifying them."""
import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

from ostro.module import _native

Step = _native.Step


class Run(Sequence[Step]):
    """The record of a run as it was when it was read; every hash of it was checked. Its items are the steps."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self.path = os.fspath(path)
        self.hash, self._steps = _native.read_run(self.path)

    def __repr__(self) -> str:
        return f"<ostro.Run {self.path}, {len(self)} steps, {self.hash[:12]}>"

    def __len__(self) -> int:
        return len(self._steps)

    def __iter__(self) -> Iterator[Step]:
        return iter(self._steps)

    @overload
    def __getitem__(self, index: int) -> Step: ...

    @overload
    def __getitem__(self, index: slice) -> "list[Step]": ...

    def __getitem__(self, index: "int | slice") -> "Step | list[Step]":
        return self._steps[index]


def _text_of(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def train(config: "str | os.PathLike[str]", overrides: "Mapping[str, Any] | None" = None, *, device: "str | None" = None,
          amend: bool = False) -> Run:
    """Trains as `ostro train --config FILE --a.b.c VALUE` does, or goes on where the run was; `overrides` is {"a.b.c": value}.

    What happens is told on standard error. Ctrl-C saves after the step and raises KeyboardInterrupt; the same call goes on.
    """
    file = os.fspath(config)
    pairs = [(key, _text_of(value)) for key, value in (overrides or {}).items()]
    words = ["--config", file, *(word for key, text in pairs for word in (f"--{key}", text))]
    directory, _, _ = _native.train(file, pairs, words + (["--amend"] if amend else []), device, amend)
    return Run(directory)


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What `ostro verify` found. It counts as true when all that was compared is equal."""
    verdict: str  # "equal", "differs", "incomplete", "cannot check"
    text: str  # as it is printed

    def __bool__(self) -> bool:
        return self.verdict == "equal"

    def __str__(self) -> str:
        return self.text


def verify(run: "Run | str | os.PathLike[str]", *, from_step: "int | None" = None, to_step: "int | None" = None,
           run_hash: str = "", replay: bool = True, cache: str = "", parent: str = "", model: str = "",
           sample: "int | None" = None, challenge: str = "", leaf: str = "", rows: str = "", key: str = "",
           device: str = "cpu") -> Verdict:
    """Checks a run, a model's directory or a bundle as `ostro verify` does; the options are the command's.

    Ctrl-C stops between steps.
    """
    options = _native.VerifyOptions()
    options.from_step, options.to_step, options.sample = from_step, to_step, sample
    options.run_hash, options.no_replay = run_hash, not replay
    options.cache, options.parent, options.model = cache, parent, model
    options.challenge, options.leaf, options.rows, options.key, options.device = challenge, leaf, rows, key, device
    return Verdict(*_native.verify(run.path if isinstance(run, Run) else os.fspath(run), options))
