#!/usr/bin/env python3
"""Tests that no process of a group holds the whole state, and that a group writes what one process writes.

Over meshes: the checkpoints of `ostro launch local` are those of `ostro train` byte for byte, and the held-out losses
are the same to the last bit. A run is stopped and continued with 4, 3, 7 and 1 workers; eval, sample and verify read
what 4 workers wrote. A worker is killed while it writes its cells. A checkpoint in which a cell of another worker is
planted, or whose parameters are forged, is passed over by all workers.

The meshes are a sample that OSTRO_TEST_SEED draws; OSTRO_TEST_SIZE=full runs all of them.

    state_test.py --ostro PROGRAM
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

from program import check, kill_all
from workers_test import run_together

TENSOR = ["--trainer.tensor_parallel_axes", "[kv_heads, mlp, vocab]"]
# name: (workers, options)
MESHES = {
    "data": (3, []),
    "data, one cell for several workers": (3, ["--numerics.cells", "{}"]),
    "data, nothing owned in cells": (2, ["--trainer.fsdp_axis", "null"]),
    "data x model": (4, ["--trainer.mesh.axes", "{data: -1, model: 2}", *TENSOR]),
    "context 2": (2, ["--trainer.mesh.axes", "{data: -1, context: 2}", "--trainer.axis_resources", "{pos: context}"]),
    "replica x data": (4, ["--trainer.mesh.axes", "{replica: 2, data: -1}"]),
}
# The mesh is no part of a result, so each form of it has its reference without it.
REFERENCE = ["--numerics.cells", "{}"]


class Place:
    """Runs in folders of their own with the same relative paths, so that their configurations are equal."""

    def __init__(self, ostro, top):
        self.ostro, self.top = os.path.abspath(ostro), top
        rng = random.Random(7)
        words = [f"w{i:x}" for i in range(60)]
        (top / "text.txt").write_text(" ".join(rng.choice(words) for _ in range(30000)))
        (top / "held_out.txt").write_text(" ".join(rng.choice(words) for _ in range(2500)))
        (top / "c.yaml").write_text(f"""
data: {{train_urls: ["{top}/text.txt"], validation_urls: ["{top}/held_out.txt"], cache_dir: "{top}/cache",
       tokenizer: "{top}/tokenizer.json"}}
model: {{type: llama, seq_len: 256, hidden_dim: 32, intermediate_dim: 64, num_layers: 2, num_heads: 4,
         num_kv_heads: 4}}
trainer: {{log_dir: runs, id: run, train_batch_size: 8, num_train_steps: 4, steps_per_eval: 2,
           checkpointer: {{keep: [{{every: 2}}]}}}}
numerics: {{leaf_examples: 1, leaves: {{kv_heads: 2, mlp: 2, vocab: 2, pos: 2}}, cells: {{embed: 16}}}}
optimizer: {{type: adam, learning_rate: 0.003}}
""")
        self.run(top, ["tokenizer", "train", "--input", str(top / "text.txt"), "--vocab_size", "320", "--out",
                       str(top / "tokenizer.json")])

    def environment(self, settings):
        env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")}
        return env | {"OSTRO_CACHE_DIR": str(self.top / "kernels"), "OSTRO_THREADS": "1"} | settings

    def run(self, folder, words, expected=0, settings=None):
        folder.mkdir(exist_ok=True)
        done = subprocess.run([self.ostro, *words], env=self.environment(settings or {}), cwd=folder, text=True,
                              timeout=300, capture_output=True, check=False)
        check(done.returncode == expected, f"{words}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout + done.stderr

    def words(self, workers, options):
        verb = ["train"] if workers == 1 else ["launch", "local", "--workers", str(workers)]
        return [*verb, "--config", str(self.top / "c.yaml"), *options]

    def train(self, name, workers, options, **more):
        out = self.run(self.top / name, self.words(workers, options), **more)
        return self.top / name / "runs" / "run", out


def files(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def without_mesh(data):
    """A checkpoint's files with the keys of the mesh taken out of the config in the manifest, which also counts for its
    checksum."""
    out = dict(data)
    for path, content in data.items():
        if path.endswith("manifest.json"):
            manifest = json.loads(content)
            lines = manifest.pop("config").splitlines()
            manifest["config"] = [line for line in lines if not re.match(
                r"  (tensor_parallel_axes|fsdp_axis|axis_resources|  .*data|  .*replica|  .*model|  .*context|  pos)", line)]
            manifest.pop("checksum")
            out[path] = json.dumps(manifest)
    return out


def losses(run):
    """The held-out losses of a run as they stand in its metrics, by step."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(r["step"], r["eval/loss"]) for r in rows if "eval/loss" in r]


def check_meshes(place, names):
    alone = {}
    for key, options in (("", []), ("cells", REFERENCE)):
        alone[key], _ = place.train(f"alone{key}", 1, options)
    check(losses(alone[""]) and len(losses(alone[""])) == 2, "nothing was evaluated")
    check(files(alone[""] / "checkpoints") != files(alone["cells"] / "checkpoints"), "cells make no difference")
    for i, name in enumerate(names):
        workers, options = MESHES[name]
        reference = alone["cells" if "--numerics.cells" in options else ""]
        run, _ = place.train(f"mesh{i}", workers, options)
        check((run / "chain.jsonl").read_bytes() == (reference / "chain.jsonl").read_bytes(), f"{name}: another chain")
        mine, theirs = files(run / "checkpoints"), files(reference / "checkpoints")
        if options in ([], REFERENCE):
            check(mine == theirs, f"{name}: checkpoints differ")
        else:  # the manifest holds the config, in which the mesh is another
            check(without_mesh(mine) == without_mesh(theirs), f"{name}: checkpoints differ")
        check(losses(run) == losses(reference), f"{name}: {losses(run)} is not {losses(reference)}")
        print(f"{name}, {workers} workers: the same checkpoints and held-out losses", flush=True)


def stop_after(place, name, workers, options, steps):
    """Trains until there are more than `steps` steps, then stops the run with SIGTERM."""
    folder = place.top / name
    folder.mkdir(exist_ok=True)
    metrics = folder / "runs" / "run" / "metrics.jsonl"
    process = subprocess.Popen([place.ostro, *place.words(workers, options)], env=place.environment({}), cwd=folder,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 120
        while process.poll() is None and (not metrics.exists() or metrics.read_text().count("train/loss") <= steps):
            check(time.monotonic() < end, f"{name}: waited in vain for step {steps}")
            time.sleep(0.01)
        check(process.poll() is None, f"{name}: ended before step {steps}")
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=120)
    finally:
        kill_all([process])
    check(process.returncode == 75, f"{name}: exit code {process.returncode}\n{out}")
    return out


def check_resume(place):
    options = ["--trainer.num_train_steps", "40", "--trainer.checkpointer.keep", "[{every: 8}]",
               "--trainer.steps_per_eval", "0"]
    alone, _ = place.train("long-alone", 1, options)
    for workers, steps in ((4, 3), (3, 10), (7, 17)):
        out = stop_after(place, "long", workers, options, steps)
        print(f"{workers} workers, until after step {steps}", flush=True)
        check(steps == 3 or "resuming" in out, f"did not go on\n{out}")
    run = place.top / "long" / "runs" / "run"
    newest = sorted((run / "checkpoints").iterdir())[-1]
    check(json.loads((newest / "manifest.json").read_text())["kind"] == "temporary", "the last save is not temporary")

    # A cell of another worker in the place of one, then one changed byte: both are passed over by all.
    weight = newest / "optimizer" / "second_moment" / "layers" / "mlp" / "down" / "weight"
    cells = sorted(p for p in weight.iterdir() if p.name.startswith("c."))
    check(len(cells) >= 16 and cells[0].read_bytes() != cells[-1].read_bytes(), f"{len(cells)} cells")
    kept = place.top / "kept"
    shutil.copytree(place.top / "long", kept)
    shutil.copyfile(cells[0], cells[-1])
    out = place.run(place.top / "long", place.words(3, options))
    found = re.search(r"warning: checkpoint (\S+) is damaged and is passed over: worker \d: (\S+): the bytes of cell", out)
    check(found and found[1] == str(newest.relative_to(place.top / "long")), f"the planted cell was not found\n{out}")
    check((run / "chain.jsonl").read_bytes() == (alone / "chain.jsonl").read_bytes(), "another chain after the cell")
    print("a planted cell: passed over, the same chain")
    shutil.rmtree(place.top / "long")
    shutil.copytree(kept, place.top / "long")
    # The parameters forged so that all hashes inside the checkpoint fit: the chain knows better.
    parameter = newest / "model" / "norm" / "weight"
    forge(newest, parameter, "model/norm/weight")
    out = place.run(place.top / "long", place.words(4, options))
    check(re.search(rf"checkpoint \S+{newest.name} is refused and is passed over: .*fingerprint", out),
          f"the forged parameters were not found\n{out}")
    check((run / "chain.jsonl").read_bytes() == (alone / "chain.jsonl").read_bytes(), "another chain after the forgery")
    print("forged parameters: refused, the same chain")
    shutil.rmtree(place.top / "long")
    shutil.copytree(kept, place.top / "long")
    _, out = place.train("long", 1, options)
    check("resuming" in out, f"one process did not go on\n{out}")
    check((run / "chain.jsonl").read_bytes() == (alone / "chain.jsonl").read_bytes(), "another chain")
    print("4, 3, 7 workers, then one process: the same chain")


def forge(checkpoint, array, path):
    """Changes an array, and every hash in the manifest with it."""
    import hashlib  # pylint: disable=import-outside-toplevel
    chunk = sorted(p for p in array.iterdir() if p.name.startswith("c."))[0]
    data = bytearray(chunk.read_bytes())
    data[0] ^= 1
    chunk.write_bytes(data)
    text = (checkpoint / "manifest.json").read_text()
    manifest = json.loads(text)
    lines = []
    for tensor in manifest["tensors"]:
        old = tensor["sha256"]
        if tensor["path"] == path:
            new = hashlib.sha256(bytes(data)).hexdigest()
            text = text.replace(tensor["cells"][0], new)
            cells = [new, *tensor["cells"][1:]]
            tensor["sha256"] = hashlib.sha256(b"".join(bytes.fromhex(c) for c in cells)).hexdigest()
            text = text.replace(old, tensor["sha256"])
        axes = ", ".join(f"{a}:{n}" for a, n in zip(tensor["axes"], tensor["shape"]))
        lines.append(f"{tensor['path']} {tensor['dtype']}[{axes}] {tensor['sha256']}\n")
    text = text.replace(manifest["name"], hashlib.sha256("".join(lines).encode()).hexdigest())
    body = text[:text.rindex(',\n  "checksum"')]
    checksum = hashlib.sha256(body.encode()).hexdigest()
    (checkpoint / "manifest.json").write_text(body + f',\n  "checksum": "{checksum}"\n}}\n')


def train_together(place, name, workers, settings):
    """A run whose workers train only when all are there, so that the one of the fault's rank is."""
    folder = place.top / name
    folder.mkdir()
    run = folder / "runs" / "run"
    code, out = run_together([place.ostro, *place.words(workers, [])], place.environment(settings), run, workers, cwd=folder)
    check(code == 0, f"{name}: exit code {code}\n{out}")
    return run, out


def check_lost_writer(place):
    """A worker is killed while it writes its cells of a checkpoint: the others have copies, and write them."""
    alone, _ = place.train("writer-alone", 1, [])
    for rank, steps in ((1, 2), (2, 4)):
        once = place.top / f"once-{rank}"
        once.mkdir()
        run, out = train_together(place, f"writer-{rank}", 3, {"OSTRO_FAULT": f"write:{steps}:{rank}:kill",
                                                               "OSTRO_FAULT_ONCE": str(once)})
        check(len(list(once.iterdir())) == 1, f"nobody was killed\n{out}")
        check(f"the checkpoint of step {steps} was not complete" in out and "resuming" not in out,
              f"not written by the others\n{out}")
        check((run / "chain.jsonl").read_bytes() == (alone / "chain.jsonl").read_bytes(), f"another chain\n{out}")
        check(files(run / "checkpoints") == files(alone / "checkpoints"), f"checkpoints differ\n{out}")
        print(f"worker {rank} of 3 killed while it wrote: the others wrote the same checkpoint")


def check_readers(place):
    """What 4 workers wrote is read by one process."""
    _, one = place.train("readers-1", 1, [])
    _, four = place.train("readers-4", 4, [])
    hashes = [re.search(r"run hash: (\w+)", out)[1] for out in (one, four)]
    check(hashes[0] == hashes[1], f"{hashes}")
    config = ["--config", str(place.top / "c.yaml")]
    for words in (["eval", "--checkpoint", "runs/run", "--json", *config],
                  ["sample", "--checkpoint", "runs/run", "--prompt", "w1 w2", "--max_new_tokens", "5"],
                  ["verify", "runs/run", "--run_hash", hashes[0]]):
        outs = [place.run(place.top / name, words) for name in ("readers-1", "readers-4")]
        check(outs[0] == outs[1] or words[0] == "verify", f"{words}: {outs}")
        print(f"{words[0]}: reads what 4 workers wrote")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    seed = int(os.environ.get("OSTRO_TEST_SEED", "1"))
    full = os.environ.get("OSTRO_TEST_SIZE", "sample") != "sample"
    names = list(MESHES)
    if not full:
        names = random.Random(seed).sample(names, 3)
    with tempfile.TemporaryDirectory() as folder:
        place = Place(args.ostro, pathlib.Path(folder))
        check_meshes(place, names)
        check_resume(place)
        check_lost_writer(place)
        check_readers(place)
    print(f"seed {seed}: {len(names)} of {len(MESHES)} meshes")


if __name__ == "__main__":
    main()
