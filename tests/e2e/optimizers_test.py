#!/usr/bin/env python3
"""Tests every optimizer from the command line.

Its chain does not depend on threads, instruction set, workers as threads or as processes. A killed run is continued to
the same chain, and so is a run of which a worker is killed in the middle of an update. The optimizers are a sample that
OSTRO_TEST_SEED draws; OSTRO_TEST_SIZE=full runs all of them.

    optimizers_test.py --ostro PROGRAM
"""

import argparse
import array
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "suite")]
import seed  # noqa: E402
from workers_test import MESHES, Place, check, steps_of, wait_for  # noqa: E402

OPTIMIZERS = {
    "lion": "type=lion learning_rate=0.001",
    "sgd": "type=sgd learning_rate=0.1",
    "schedule-free": "type=schedule_free learning_rate=0.003",
    "adam cautious ema": "type=adam cautious=true ema_beta=0.9 cycles=2 rewarmup=1",
    "adam skips": "type=adam skip_bad_steps=true skip_window=4 skip_sigma=0.01",
    "adam groups": "type=adam groups={mlp: {parameters: [\"*mlp*\"], lr_multiplier: 0.5, max_grad_norm: 0.2}}",
    "rules of groups": "type=lion learning_rate=0.001 groups={layers: {parameters: [\"*/attention/*\"], learning_rate: "
                       "0.02, optimizer: {type: muon}}, mlp: {parameters: [\"*/mlp/*\"], optimizer: {type: sgd}}}",
    "adafactor": "type=adafactor learning_rate=0.05 min_dim_size_to_factor=16",
    "muon": "type=muon learning_rate=0.02 adam_lr=0.003",
    "muon bf16": "type=muon learning_rate=0.02 newton_schulz_dtype=bf16",
    "sgd nesterov": "type=sgd learning_rate=0.1 nesterov=true",
    "soap": "type=soap learning_rate=0.003 precondition_frequency=3",
    "shampoo": "type=shampoo learning_rate=0.003 precondition_frequency=2",
}
# Whose workers need each other in the update: there is one phase more in which one can be killed, when the new cells
# are made and the others do not know.
JOINT = {"adam-cautious-ema", "rules-of-groups", "adafactor", "muon", "muon-bf16", "soap", "shampoo"}


def words_of(text):
    pairs = [one.split("=", 1) for one in re.split(r" (?=\w+=)", text)]
    return [word for key, value in pairs for word in ("--optimizer." + key, value)]


def check_settings(place, name, options, rng, expected):
    settings = [{"OSTRO_THREADS": "3"}, {"OSTRO_ISA": "generic"}, {"OSTRO_ISA": "avx2", "OSTRO_THREADS": "1"},
                {"OSTRO_SIM_WORKERS": "3"}, {"OSTRO_SIM_WORKERS": "5", "OSTRO_THREADS": "1"}]
    for one in settings if seed.full() else rng.sample(settings, 2):
        check(place.train(f"{name}-set", options, one) == expected, f"{name}: another chain with {one}")
        subprocess.run(["rm", "-rf", str(place.top / "runs" / f"{name}-set")], check=True)
        print(f"{name}: the same chain with {one}")


def check_processes(place, name, options, rng, expected):
    wanted = [("FSDP", 2), ("FSDP", 3), ("data", 3), ("data x model 2", 4), ("replica 2 x data", 4), ("model 2", 2)]
    for mesh, workers in wanted if seed.full() else [wanted[0], rng.choice(wanted[1:])]:
        run = f"{name}-{mesh}-{workers}".replace(" ", "-").replace(",", "")
        chain = place.launch(run, workers, options + MESHES[mesh][1], {"OSTRO_THREADS": "1"})
        check(chain == expected, f"{name}: another chain on {workers} processes, {mesh}")
        print(f"{name}: the same chain on {workers} processes, {mesh}")


def tensors_of(path):
    """name -> the values of an f32 tensor."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    out = {}
    for name, one in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = one["data_offsets"]
            out[name] = array.array("f", data[8 + size + begin:8 + size + end])
    return out


def check_means(place, rng):
    """ema_beta changes no weight, and the means are what export writes, eval reads and another run begins with."""
    (place.top / "held_out.txt").write_text(" ".join(f"w{rng.randrange(60):x}" for _ in range(2500)))
    steps, beta = 3, 0.75  # exact in f32
    options = ["--data.validation_urls", f'["{place.top}/held_out.txt"]', "--trainer.steps_per_eval", str(steps),
               "--trainer.num_train_steps", str(steps), "--trainer.checkpointer.keep", "[{every: 1}]",
               "--data.cache_dir", str(place.top / "held_out_cache")]

    def exported(run, step):
        out = place.top / "exported" / f"{run}-{step}"
        place.run(["export", "--checkpoint", str(place.top / "runs" / run / "checkpoints" / f"step-{step:08d}"), "--to",
                   "hf", "--out", str(out)])
        return tensors_of(out / "model.safetensors")

    place.train("plain", options)
    place.train("means", [*options, "--optimizer.ema_beta", str(beta)])
    mean = exported("means", 1)
    for step in range(2, steps + 1):
        for name, values in exported("plain", step).items():  # each operator rounds once
            old = array.array("f", [beta * x for x in mean[name]])
            new = array.array("f", [(1 - beta) * x for x in values])
            mean[name] = array.array("f", [a + b for a, b in zip(old, new)])
    check(exported("means", steps) == mean, "export does not write the means of the weights")
    check(exported("plain", steps) != mean, "the means are the weights")

    def held_out(run):
        rows = [json.loads(line) for line in (place.top / "runs" / run / "metrics.jsonl").read_text().splitlines()]
        return [row["eval/loss"] for row in rows if "eval/loss" in row][-1]

    def evaluated(run, more=()):
        words = ["eval", "--checkpoint", str(place.top / "runs" / run), "--json", "--config", str(place.top / "c.yaml"),
                 *options[:2], *options[-2:], *more]
        return json.loads(place.run(words).stdout)["loss"]

    for run in ("plain", "means"):
        check(evaluated(run) == held_out(run), f"{run}: eval {evaluated(run)}, the run itself {held_out(run)}")
    check(held_out("plain") != held_out("means"), "means and weights have one loss")
    begun = ["--trainer.initialize_from", str(place.top / "runs" / "means"), "--optimizer.learning_rate", "1e-30"]
    place.train("after", [*options, *begun])
    check(exported("after", 1) == mean, "another run does not begin with the means")
    print("export, eval and initialize_from take the means of the weights")


def check_killed(place, name, options, rng):
    """A process that is killed, then started again; a worker that is killed in the middle of an update."""
    options = options + ["--trainer.num_train_steps", "12", "--trainer.checkpointer.keep", "[{every: 4}]"]
    expected = place.train(f"{name}-long", options)
    run, wanted = f"{name}-killed", rng.randint(1, 10)
    process = subprocess.Popen([place.ostro, "train", *place.words(run, options)],
                               env=place.environment({"OSTRO_THREADS": "1"}), stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    wait_for(lambda: steps_of(place, run) >= wanted or process.poll() is not None)
    process.kill()
    process.wait()
    check(place.train(run, options) == expected, f"{name}: another chain after a kill after step {wanted}")
    print(f"{name}: killed after step {wanted}, then the same chain")
    phases = ["update", "commit"]
    if name in JOINT:
        phases.append("renew")
    for phase in phases if seed.full() else rng.sample(phases, 1):
        step, rank = rng.randint(2, 11), rng.randint(0, 2)
        run, once = f"{name}-{phase}", place.top / f"once-{name}-{phase}".replace(" ", "-")
        once.mkdir()
        fault = f"{phase}:{step}:{rank}:kill"
        place.launch_together(run, 3, options, {"OSTRO_THREADS": "1", "OSTRO_FAULT": fault, "OSTRO_FAULT_ONCE": str(once)})
        check(list(once.iterdir()), f"{name}: {fault} did not happen")
        check(place.chain(run) == expected, f"{name}: another chain after {fault}")
        print(f"{name}: {fault}, the same chain")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--only", help="this optimizer alone")
    args = parser.parse_args()
    rng = random.Random(seed.seed())
    names = [args.only] if args.only else seed.draw("optimizers", list(OPTIMIZERS), 3)
    chains = set()
    with tempfile.TemporaryDirectory(prefix="ostro-optimizers-") as top:
        place = Place(os.path.abspath(args.ostro), pathlib.Path(top))
        check_means(place, rng)
        for name in names:
            options, run = words_of(OPTIMIZERS[name]), name.replace(" ", "-")
            expected = place.train(run, options)
            check(expected not in chains, f"{name} has the chain of another optimizer")
            chains.add(expected)
            check_settings(place, run, options, rng, expected)
            check_processes(place, run, options, rng, expected)
            check_killed(place, run, options, rng)
            place.run(["verify", str(place.top / "runs" / run)])
    print("all optimizers drawn are equal on threads, instruction sets, workers, and after kills")


if __name__ == "__main__":
    main()
