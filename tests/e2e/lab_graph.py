"""A plan with every kind of step over drawn texts, for tests of `ostro lab`; and what its journal says of each step."""
import hashlib
import json
import os
import pathlib
import random
import subprocess

from lab_tootsie_test import stand_in
from program import check

WORDS = ["".join(random.Random(n).choices("etaoinshrdlu", k=2 + n % 5)) for n in range(80)]
MODEL = {"seq_len": 16, "hidden_dim": 8, "intermediate_dim": 16, "num_layers": 1, "num_heads": 1, "num_kv_heads": 1}


def text(number, words):
    return " ".join(random.Random(f"text {number}").choices(WORDS, k=words))


def jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


class Graph:
    """What a plan says, as values that can be changed; `files` and `plan` make text of them."""

    def __init__(self):
        self.licence, self.changed_row, self.held, self.page = "MIT", 0, "a", 0
        self.words, self.epochs, self.vocabulary, self.documents, self.script = 2, 1, 262, 24, ""
        self.rate, self.decay, self.at, self.phase_rate, self.sizes_rate, self.counted, self.flops, self.program_words = (
            0.01, 2, 2, 0.002, 0.01, "all", 9e7, "x")
        self.workers = 1  # of the second phase
        self.counted_set, self.prompt, self.dtype = "web", "the", "f32"

    def files(self):
        """The bytes of the files of the sources, and of the program, by path."""
        rows = [{"text": text(n, 30 if n % 6 else 2)} for n in range(60)]
        rows[7] = {"text": text(1000 + self.changed_row, 30)}
        pages = [{"html": f"<article><h1>{text(n, 3)}</h1><p>{text(2000 + n + (self.page if n == 3 else 0), 20)}</p></article>"}
                 for n in range(8)]
        held = text(500 if self.held != "b" else 501, 120)
        return {"texts/rows.jsonl": jsonl(rows), "pages/pages.jsonl": jsonl(pages),
                "held/held.txt": held if self.held != "A" else held.upper(),
                "capitals.sh": f"{self.script}tr a-z A-Z < in/held/held/held.txt > out/held.txt\n"}

    def steps(self):
        """The steps: name to (kind, parameters). Their order is that of what needs what."""
        def trained(steps, **more):
            return {"trainer.num_train_steps": steps, **more}

        width = {"s": 4, "m": 8, "l": 12}
        runs = [("s", 1), ("s", 2), ("s", 3), ("m", 1), ("m", 2), ("l", 2)]
        return {
            "texts": ("source", {"files": ["texts"], "licence": self.licence}),
            "pages": ("source", {"files": ["pages"], "licence": "CC0-1.0"}),
            "held": ("source", {"files": ["held"], "licence": "CC0-1.0"}),
            "drawn": ("corpus", {"kind": "tasks", "documents": self.documents}),
            "page_texts": ("extract", {"from": "$pages"}),
            "some": ("filter", {"from": "$texts", "words": [self.words, None]}),
            "best": ("quality", {"from": "$some", "positive": "$page_texts", "negative": "$drawn", "share": 0.75, "buckets": 256,
                                 "dim": 4, "epochs": self.epochs}),
            "capitals": ("run", {"program": ["sh", "capitals.sh", self.program_words], "files": ["capitals.sh"], "inputs": {"held": "$held"},
                                 "outputs": ["held.txt"]}),
            "vocabulary": ("tokenizer", {"from": "$best", "vocab_size": self.vocabulary}),
            "rows": ("tokens", {"from": "$best", "held_out": "$capitals", "tokenizer": "$vocabulary"}),
            "more": ("tokens", {"from": "$drawn", "held_out": "$capitals", "tokenizer": "$vocabulary"}),
            "base": ("train", {"config": "tiny.yaml", "data": {"web": "$rows"}, "set": {"optimizer.learning_rate": self.rate, "data.train_weights": {"web": 1}},
                               "phases": [{"name": "one", "to": 2, "workers": self.workers}, {
                                   "name": "two", "to": 4, "data": {"more": "$more"},
                                   "set": {"data.train_weights": {"web": 1, "more": 1}, "optimizer.learning_rate": self.phase_rate}}]}),
            "cool": ("fork", {"of": "$base", "at": self.at, "set": {"optimizer.decay": self.decay, "trainer.num_train_steps": 5}}),
            "score": ("eval", {"of": "$base", "sets": [self.counted_set], "at": "kept"}),
            "cooled": ("eval", {"of": "$cool"}),
            "said": ("sample", {"of": "$cool", "prompts": [WORDS[3], self.prompt], "tokens": 3}),
            "model": ("export", {"of": "$base", "dtype": self.dtype}),
            "bundle": ("publish", {"of": "$cool"}),
            **{f"size_{size}{steps}": ("train", {"config": "tiny.yaml", "data": "$rows", "set": trained(
                steps, **{"model.hidden_dim": width[size], "optimizer.learning_rate": self.sizes_rate})})
               for size, steps in runs},
            **{f"eval_{size}{steps}": ("eval", {"of": f"$size_{size}{steps}"}) for size, steps in runs},
            "law": ("fit", {"of": [f"$eval_{size}{steps}" for size, steps in runs], "parameters": self.counted}),
            "larger": ("forecast", {"fit": "$law", "data": "$rows", "config": "tiny.yaml", "set": {"model.hidden_dim": 12},
                                    "flops": self.flops}),
        }

    def config(self):
        return {"model": MODEL, "trainer": {"mp": "f32", "train_batch_size": 2, "steps_per_eval": 1000, "tracker": [],
                                            "checkpointer": {"keep": [{"every": 1}]}},
                "optimizer": {"warmup": 0, "lr_schedule": "constant"}, "numerics": {"leaf_examples": 2}}

    def plan(self):
        return {"lab": "every", "question": "Does it hold?",
                "steps": {name: {kind: parameters} for name, (kind, parameters) in self.steps().items()}}


def inputs_of(parameters):
    """The steps that a step's parameters name."""
    if isinstance(parameters, str):
        return [parameters[1:]] if parameters.startswith("$") else []
    values = parameters.values() if isinstance(parameters, dict) else parameters if isinstance(parameters, list) else []
    return [name for value in values for name in inputs_of(value)]


class GraphLab:
    """A folder with the files of a graph, and the program."""

    def __init__(self, ostro, top, package):
        self.ostro, self.top, self.package = str(pathlib.Path(ostro).resolve()), top, package
        self.variables = {"OSTRO_THREADS": "1"}
        top.mkdir(parents=True)

    @property
    def folder(self):
        return self.top / "every.lab"

    @property
    def journal(self):
        return self.folder / "journal.jsonl"

    def write(self, graph, dump=json.dumps):
        """The graph's files, where their bytes are others. Which are."""
        files = graph.files() | {"plan.yaml": dump(graph.plan()), "tiny.yaml": dump(graph.config())}
        changed = []
        for name, content in files.items():
            path = self.top / name
            if path.exists() and path.read_text() == content:
                continue
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
            changed.append(name)
        return changed

    def start(self, *words, **variables):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        env |= {"PYTHONPATH": self.package} | self.variables | variables
        return subprocess.run([self.ostro, "lab", *words], cwd=self.top, env=env, text=True, capture_output=True, check=False)

    def ran(self, *words, **variables):
        """The steps that `lab run` does, and the lab hash."""
        done = self.start("run", "plan.yaml", *words, **variables)
        check(done.returncode == 0, f"lab run {words}: exit code {done.returncode}\n{done.stdout}{done.stderr[-2000:]}")
        lines = done.stdout.splitlines()
        return ([line.split()[1][:-1] for line in lines if line.split()[0] in ("run", "resume")],
                lines[-1].removeprefix("lab hash: "))

    def entries(self):
        return [json.loads(line) for line in self.journal.read_text().splitlines()]

    def last(self):
        """The last entry of each step that was done."""
        return {entry["step"]: entry for entry in self.entries() if entry["kind"] == "done"}

    def output(self, step):
        return self.folder / "out" / self.last()[step]["fingerprint"][:16]


def write_journal(journal, entries):
    """Writes entries with new hashes, as a machine would have done that computed them."""
    def canonical(entry):
        return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    head, lines = "", []
    for entry in entries:
        body = {key: value for key, value in entry.items() if key != "h"}
        head = hashlib.sha256((head + canonical(body)).encode()).hexdigest()
        lines.append(canonical(body | {"h": head}))
    journal.write_text("\n".join(lines) + "\n")


__all__ = ["Graph", "GraphLab", "inputs_of", "stand_in", "write_journal"]
