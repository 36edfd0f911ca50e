"""Models: loading, generating, scoring, logits, weights."""
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np

from ostro.module import _native

Score = _native.Score


class Answer(Iterator[str]):
    """The text of an answer in pieces, each made when it is asked for: whole characters, never an empty piece."""

    def __init__(self, native: "_native.Answer") -> None:
        self._native = native

    def __iter__(self) -> "Answer":
        return self

    def __next__(self) -> str:
        while (piece := self._native.next()) is not None:
            if piece:
                return piece
        raise StopIteration

    @property
    def ids(self) -> list[int]:
        """The tokens that were made so far."""
        return self._native.ids()

    @property
    def finish(self) -> str:
        """Why it ended: "stop_token", "stop_string" or "length"; "" before the end."""
        return self._native.finish()


class Arrays(Mapping[str, np.ndarray]):
    """The parameters by name: views that cannot be written, without a copy. They may outlive the model.

    numpy has no bfloat16, so such an array comes as uint16, the bits; `dtype` has its own type.
    """

    def __init__(self, native: "_native.Model") -> None:
        self._native = native
        self._names = native.names()

    def __getitem__(self, name: str) -> np.ndarray:
        return self._native.array(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def dtype(self, name: str) -> str:
        """ "f32", "bf16", "i8", ..."""
        return self._native.dtype(name)


class Tokenizer:
    """The tokenizer of a model."""

    def __init__(self, native: "_native.Model") -> None:
        self._native = native

    @property
    def vocab_size(self) -> int:
        return self._native.vocab_size

    @property
    def hash(self) -> str:
        return self._native.tokenizer_hash

    def encode(self, text: str) -> list[int]:
        """The ids of a text, without what is put in front of a prompt."""
        return self._native.encode(text)

    def decode(self, ids: Sequence[int], skip_special: bool = False) -> str:
        return self._native.decode([int(i) for i in ids], skip_special)


class Model:
    """A model with its weights in memory. `load` makes one."""

    def __init__(self, native: "_native.Model") -> None:
        self._native = native
        self.arrays = Arrays(native)
        self.tokenizer = Tokenizer(native)

    def __repr__(self) -> str:
        return f"<ostro.Model {self.path}, state {self.state[:12]}>"

    @property
    def path(self) -> str:
        """The checkpoint's directory."""
        return self._native.path

    @property
    def state(self) -> str:
        """The name of the checkpoint's state: a hash of all of it."""
        return self._native.state

    @property
    def step(self) -> int:
        """How many steps made it."""
        return self._native.step

    @property
    def adapter(self) -> str:
        """The hash of the adapter of `load(..., adapter=)`, as receipts have it; "": none. State and step are the base's."""
        return self._native.adapter

    @property
    def context(self) -> int:
        """How many tokens a sequence may have."""
        return self._native.context

    def generate(self, prompt: "str | Sequence[int]", *, max_tokens: int = 256, temperature: float = 0.0, seed: int = 0,
                 top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0, stop: "str | Sequence[str]" = ()) -> Answer:
        """Continues a text, or tokens: the answer of `ostro sample` and `ostro serve` to the same words and seed.

        Temperature 0 takes always the most likely token. Ctrl-C stops between tokens.
        """
        ids = self._native.prompt(prompt) if isinstance(prompt, str) else [int(i) for i in prompt]
        return Answer(self._native.answer(ids, max_tokens, temperature, seed, top_k, top_p, min_p,
                                          [stop] if isinstance(stop, str) else list(stop)))

    def generate_text(self, prompt: "str | Sequence[int]", **sampling: Any) -> str:
        """The whole answer of `generate`."""
        return "".join(self.generate(prompt, **sampling))

    def chat(self, messages: "str | Sequence[Mapping[str, Any]]", *, tools: "Sequence[Mapping[str, Any]] | None" = None,
             **sampling: Any) -> str:
        """The answer to a conversation, a list of {"role", "content"}, or to one text of a user, by the chat template."""
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        prompt = self._native.chat_prompt(json.dumps(list(messages), ensure_ascii=False),
                                          json.dumps(list(tools), ensure_ascii=False) if tools else "")
        return self.generate_text(prompt, **sampling)

    @overload
    def score(self, texts: str, *, stride: int = 0) -> "Score": ...

    @overload
    def score(self, texts: "list[str] | tuple[str, ...]", *, stride: int = 0) -> "list[Score]": ...

    def score(self, texts: "str | list[str] | tuple[str, ...]", *, stride: int = 0) -> "Score | list[Score]":
        """The log-probability of whole texts, with their numbers of tokens and bytes, as `ostro score` gives them."""
        if isinstance(texts, str):
            return self._native.score([texts], stride)[0]
        return self._native.score(list(texts), stride)

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        """f32 [pos, vocab]: row i has the logits of what follows ids[0] to ids[i], with the bits of training."""
        return self._native.logits([int(i) for i in ids])

    def log_probs(self, ids: Sequence[int]) -> np.ndarray:
        """f32 [pos - 1]: the log-probability of each token after the first, given those before it."""
        return self._native.log_probs([int(i) for i in ids])


def load(where: "str | os.PathLike[str]", *, tokenizer: "str | os.PathLike[str]" = "", mp: str = "", device: str = "cpu",
         seq_len: "int | None" = None, unchecked: bool = False, adapter: "str | os.PathLike[str]" = "") -> Model:
    """Loads what `ostro sample --checkpoint` takes: a checkpoint, or a run's newest one. The options are the command's.

    `adapter` is what `ostro serve --adapter` takes: a directory of PEFT's, or a run or checkpoint that trained an adapter (LoRA)
    on this model. A run that trained one is also a model by itself.
    """
    return Model(_native.load(os.fspath(where), os.fspath(tokenizer), mp, device, seq_len, unchecked, os.fspath(adapter)))
