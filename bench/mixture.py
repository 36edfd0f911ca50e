#!/usr/bin/env python3
"""A mixture of experts beside the dense model of the same active size, at equal tokens: held-out bits per byte.

bench/dense.yaml is the dense model. The mixture has 8 experts of half its MLP's width, of which a token uses two, whose
weights add up to 2: so they begin with as large a part in the stream as the dense MLP. Both see the same batches; per seed one run of each. A third run, of the first seed, has nothing that balances its experts: its
loads are shown beside those of the balanced one, and what the run says of them.

  scripts/quickstart.sh --steps 1              # makes quickstart/tokenizer.json and quickstart/cache
  python3 bench/mixture.py                     # three seeds, the config's number of steps: an hour on two cores
  python3 bench/mixture.py --steps 50 --seeds 0

Runs that are there already are not made again. Fails if the mixture's mean is not below the dense model's, if it is not below it
with every seed, or if the loads without balance are more even than those with it.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXPERTS = {"model.type": "decoder", "model.intermediate_dim": 344, "model.num_experts": 8, "model.num_experts_per_tok": 2,
           "model.norm_topk_prob": "true", "model.routed_scaling_factor": 2.0, "model.track_expert_load": "true"}
VARIANTS = {"dense": {},
            "mixture": EXPERTS | {"model.router_aux_loss_coef": 0.01, "model.router_z_loss_coef": 0.001},
            "unbalanced": EXPERTS}


def train(a, name, seed):
    """The rows of metrics and the messages of one run; what another call has made is read."""
    run = a.out / f"{name}_{seed}"
    log = a.out / f"{name}_{seed}.log"
    if not (run / "metrics.jsonl").exists() or not log.exists() or "eval/loss" not in (run / "metrics.jsonl").read_text():
        words = [a.ostro, "train", "--config", ROOT / "bench/dense.yaml", "--data.tokenizer", a.data / "tokenizer.json",
                 "--data.cache_dir", a.data / "cache", "--trainer.log_dir", a.out, "--trainer.id", run.name,
                 "--trainer.seed", seed, "--trainer.checkpointer.save_interval", "null"]
        if a.steps:
            words += ["--trainer.num_train_steps", a.steps, "--trainer.steps_per_eval", a.steps]
        for key, value in VARIANTS[name].items():
            words += [f"--{key}", value]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr[-2000:]}")
        log.write_text(done.stderr + done.stdout)
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()], log.read_text()


def held_out(rows):
    return [row["eval/bits_per_byte"] for row in rows if "eval/bits_per_byte" in row][-1]


def loads(rows):
    last = [row for row in rows if "moe/entropy" in row][-1]
    return f"entropy {last['moe/entropy']:.3f}, largest load {last['moe/max_load']:.2f}, smallest {last['moe/min_load']:.3f}", last


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", type=pathlib.Path, default=ROOT / "build/release/ostro/cli/ostro")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "quickstart", help="has tokenizer.json and cache/")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "quickstart/mixture", help="where the runs go")
    parser.add_argument("--steps", type=int, help="default: the config's")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    seen = {}
    for seed in a.seeds:
        for name in ("dense", "mixture"):
            rows, _ = train(a, name, seed)
            seen[name, seed] = held_out(rows)
        print(f"seed {seed}: dense {seen['dense', seed]:.4f}, mixture {seen['mixture', seed]:.4f} held-out bits per byte", flush=True)
    mean = {name: statistics.mean(seen[name, seed] for seed in a.seeds) for name in ("dense", "mixture")}
    print(f"mean of {len(a.seeds)}: dense {mean['dense']:.4f}, mixture {mean['mixture']:.4f}")
    better = all(seen["mixture", seed] < seen["dense", seed] for seed in a.seeds)
    text, even = loads(train(a, "mixture", a.seeds[0])[0])
    print(f"loads with balance:    {text}")
    rows, log = train(a, "unbalanced", a.seeds[0])
    text, uneven = loads(rows)
    print(f"loads without balance: {text}; held-out {held_out(rows):.4f}")
    for line in log.splitlines():
        if "warning" in line and "expert" in line:
            print(line)
    if not better or uneven["moe/entropy"] >= even["moe/entropy"]:
        sys.exit("not held")


if __name__ == "__main__":
    main()
