"""A small trained Llama for the checks of this folder: corpus, tokenizer, token store and run in a directory.

The corpus is made here, the same on every machine: how far two frameworks' gradients are apart depends on the
weights, and these on the text. Everything goes through the `ostro` program.
"""
import json
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed  # for the checks of this folder, too


def made_text(rng):
    """Some 10 kB that look like a program: few words often, many seldom, indented blocks, matching brackets."""
    syllables = [c + v for c in "bdfgklmnprstvz" for v in "aeiou"]
    words = ["".join(random.Random(k).choices(syllables, k=1 + k % 3)) for k in range(600)]

    def word():
        return words[min(int(rng.paretovariate(0.5)) - 1, len(words) - 1)]

    def call():
        return f"{word()}.{word()}({', '.join(word() for _ in range(rng.randrange(4)))})"

    lines = []
    for _ in range(rng.randrange(20, 40)):
        lines.append(f"def {word()}_{word()}({word()}, {word()}={rng.randrange(100)}):")
        depth = 1
        for _ in range(rng.randrange(3, 12)):
            statement = rng.choice([f"{word()} = {call()}", f"return {call()}", f"if {word()} < {word()}:",
                                    f"for {word()} in {call()}:", f"{word()} += {rng.randrange(1000)}"])
            lines.append("    " * depth + statement)
            depth = min(depth + 1, 4) if statement.endswith(":") else max(1, depth - rng.randrange(2))
        lines.append("")
    return "\n".join(lines)


class TinyRun:
    """`sections` override the configuration: {"model": {...}, "trainer": {...}, ...}."""

    def __init__(self, ostro, directory, name, sections, vocab_size=512, files=60):
        self.ostro, self.directory, self.name = pathlib.Path(ostro).resolve(), pathlib.Path(directory), name
        self.directory.mkdir(parents=True, exist_ok=True)
        self.tokenizer = self.directory / "tokenizer.json"
        if not self.tokenizer.exists():
            self.write_corpus(files)
            self.run("tokenizer", "train", "--input", "corpus", "--vocab_size", vocab_size, "--out", self.tokenizer)
        config = {
            "data": {"tokenizer": str(self.tokenizer), "cache_dir": str(self.directory / "cache"),
                     "train_urls": [str(self.directory / "corpus/train")],
                     "validation_urls": [str(self.directory / "corpus/validation")]},
            "model": {"type": "llama", "seq_len": 96, "hidden_dim": 64, "intermediate_dim": 160, "num_layers": 2,
                      "num_heads": 4, "num_kv_heads": 2},
            "optimizer": {"type": "adam", "learning_rate": 0.01, "warmup": 4},
            "trainer": {"id": name, "log_dir": str(self.directory / "runs"), "mp": "p=f32,c=f32",
                        "train_batch_size": 12, "num_train_steps": 20, "steps_per_eval": 1000,
                        "max_eval_batches": 4},
            "numerics": {"leaf_examples": 2},
        }
        for section, values in sections.items():
            config.setdefault(section, {}).update(values)
        self.config = config
        self.config_path = self.directory / f"{name}.yaml"
        self.config_path.write_text(json.dumps(config, indent=1))  # JSON is YAML

    @property
    def run_directory(self):
        return self.directory / "runs" / self.name

    def checkpoint(self, step):
        return self.run_directory / "checkpoints" / f"step-{step:08d}"

    def write_corpus(self, files):
        for i in range(files):
            target = self.directory / "corpus" / ("validation" if i % 10 == 0 else "train") / f"{i:03}.txt"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(made_text(random.Random(i)))

    def run(self, *words, stdin=b""):
        """Standard output of an ostro command, as bytes."""
        words = [str(w) for w in words]
        done = subprocess.run([str(self.ostro), *words], input=stdin, capture_output=True, cwd=self.directory,
                              check=False)
        if done.returncode != 0:
            sys.exit(f"ostro {' '.join(words)}: exit {done.returncode}\n{done.stderr.decode(errors='replace')}")
        return done.stdout

    def train(self):
        self.run("train", "--config", self.config_path)

    def losses(self):
        """The loss of every step, from the hash chain."""
        entries = map(json.loads, (self.run_directory / "chain.jsonl").read_text().splitlines())
        return [float.fromhex(e["loss"]) for e in entries if e["kind"] == "step"]

    def batch(self, step):
        return json.loads(self.run("data", "batch", "--config", self.config_path, "--step", step, "--json"))


class Report:
    """Prints one line a check and remembers whether all passed."""

    def __init__(self):
        self.failed = 0

    def check(self, ok, what):
        print(f"{'ok    ' if ok else 'FAILED'} {what}", flush=True)
        self.failed += not ok

    def finish(self):
        print(f"{self.failed} failed" if self.failed else "all passed")
        sys.exit(1 if self.failed else 0)
