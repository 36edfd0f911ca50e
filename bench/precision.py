#!/usr/bin/env python3
"""f32, bf16 and int8 products beside each other: held-out bits per byte at equal steps, each with its best learning rate.

Models of about 2 and 10 million parameters are trained on kinds of text that are given as folders, each made by
scripts/quickstart.sh --out. For each pair of model and text the learning rate of each precision is searched alike: the rates of RATES, with
the first seed, over a third of the steps. Then each seed is trained with the best of them.

  scripts/quickstart.sh --steps 1 --out plays                    # one kind of text: Shakespeare's plays
  scripts/quickstart.sh --steps 1 --out python /usr/lib/python3  # another: sources
  python3 bench/precision.py --text plays --text python          # 2 sizes, 3 seeds, 1,500 steps: days on two cores
  python3 bench/precision.py --text plays --sizes 2M --steps 300 --seeds 0 --rates 2.4e-3
  python3 bench/precision.py --text plays --with int8 model.some_key=value      # one more row: int8 with an option

Runs that are there already are not made again, so the study may be ended and started again. --device cuda makes them on a GPU, with the
same figures; small models leave most of a GPU idle, so --jobs 4 is faster there. Prints a table for each pair of
model and text; int8's distance from bf16 stands beside the distances of bf16's own seeds.
"""
import argparse
import concurrent.futures
import json
import pathlib
import re
import statistics
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
PRECISIONS = {"bf16": "p=f32,c=bfloat16", "f32": "f32", "int8": "p=f32,c=int8"}  # bf16 first: the others are compared with it
SIZES = {"2M": {"model.hidden_dim": 128, "model.intermediate_dim": 384, "model.num_layers": 4, "model.num_heads": 4,
                "model.num_kv_heads": 4},
         "10M": {"model.hidden_dim": 320, "model.intermediate_dim": 864, "model.num_layers": 6, "model.num_heads": 5,
                 "model.num_kv_heads": 5}}
RATES = [6e-4, 1.2e-3, 2.4e-3, 4.8e-3]


def made_from(text):
    """The options of data that the store of a folder was made with: those of the run that the quickstart made."""
    config = yaml.safe_load((text / "runs/quickstart/config.yaml").read_text())["data"]
    return {f"data.{key}": json.dumps(config[key]) for key in ("train_urls", "validation_urls", "validation_fraction")}


def train(a, text, size, row, rate, seed, steps):
    """Held-out bits per byte at the end of one run; what another call has made is read."""
    precision, extra = a.rows[row]
    name = re.sub(r"[^A-Za-z0-9._=-]", "_", f"{text.name}-{size}-{row}-{rate:g}-{seed}-{steps}")
    metrics = a.out / name / "metrics.jsonl"
    if not metrics.exists() or '"eval/bits_per_byte"' not in metrics.read_text():
        options = {"data.tokenizer": text / "tokenizer.json", "data.cache_dir": text / "cache", "trainer.log_dir": a.out,
                   **made_from(text), "trainer.id": name, "trainer.seed": seed,
                   "trainer.mp": PRECISIONS[precision], "trainer.device": a.device, "optimizer.learning_rate": rate,
                   "trainer.num_train_steps": steps, "trainer.steps_per_eval": steps,
                   "trainer.checkpointer.save_interval": "null", **SIZES[size], **extra}
        words = [a.ostro, "train", "--config", ROOT / "bench/dense.yaml"]
        words += [word for key, value in options.items() for word in (f"--{key}", value)]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr[-2000:]}")
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    return [row["eval/bits_per_byte"] for row in rows if "eval/bits_per_byte" in row][-1]


def best_rate(a, text, size, row):
    """The learning rate that is best over a third of the steps, with all that were tried."""
    if len(a.rates) == 1:
        return a.rates[0], {}
    tried = {rate: train(a, text, size, row, rate, a.seeds[0], a.steps // 3) for rate in a.rates}
    return min(tried, key=tried.get), tried


def make_runs(a):
    """All runs of the study, some at a time: first those that search rates, then those with the best."""
    wanted = [(text, size, row) for text in a.text for size in a.sizes for row in a.rows]
    with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
        if len(a.rates) > 1:
            list(pool.map(lambda w: train(a, *w[0], w[1], a.seeds[0], a.steps // 3), [(w, rate) for w in wanted for rate in a.rates]))
        list(pool.map(lambda w: train(a, *w[0], best_rate(a, *w[0])[0], w[1], a.steps), [(w, seed) for seed in a.seeds for w in wanted]))


def study(a, text, size):
    print(f"\n### {size} parameters, {text.name}, {a.steps} steps\n")
    print("| products | rate | " + " | ".join(f"seed {seed}" for seed in a.seeds) + " | mean | to bf16 |")
    print("|---" * (len(a.seeds) + 4) + "|")
    base = None
    for row in a.rows:
        rate, tried = best_rate(a, text, size, row)
        values = [train(a, text, size, row, rate, seed, a.steps) for seed in a.seeds]
        mean = statistics.mean(values)
        if row == "bf16":
            base = values
        against = "" if base is None else f"{100 * (mean / statistics.mean(base) - 1):+.2f} %"
        print(f"| {row} | {rate:g} | " + " | ".join(f"{v:.4f}" for v in values) + f" | {mean:.4f} | {against} |", flush=True)
        if tried:
            print("<!-- " + ", ".join(f"{rate:g}: {value:.4f}" for rate, value in tried.items()) + " -->")
    if base and len(base) > 1:
        print(f"\nbf16's own seeds lie {100 * (max(base) / min(base) - 1):.2f} % apart.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", type=pathlib.Path, default=ROOT / "build/release/ostro/cli/ostro")
    parser.add_argument("--text", type=pathlib.Path, action="append", required=True, help="a folder that scripts/quickstart.sh --out made")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "quickstart/precision", help="where the runs go")
    parser.add_argument("--sizes", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rates", type=float, nargs="+", default=RATES)
    parser.add_argument("--device", default="cpu", help="as of ostro train")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--with", dest="more", nargs="+", action="append", default=[], metavar=("PRECISION", "KEY=VALUE"),
                        help="one more row: this precision with these options")
    a = parser.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    a.text = [text.resolve() for text in a.text]
    for text in a.text:
        for part in ("tokenizer.json", "cache", "runs/quickstart/config.yaml"):
            if not (text / part).exists():
                parser.error(f"--text {text}: it has no {part}; scripts/quickstart.sh --out {text} makes it")
    if len({text.name for text in a.text}) < len(a.text):
        parser.error("--text: two folders of one name, by which runs are named")
    a.rows = {name: (name, {}) for name in PRECISIONS}
    for precision, *options in a.more:
        if precision not in PRECISIONS:
            parser.error(f"--with {precision}: not one of {', '.join(PRECISIONS)}")
        if bad := [option for option in options if "=" not in option]:
            parser.error(f"--with {precision} {bad[0]}: write KEY=VALUE")
        a.rows[" ".join([precision, *options])] = (precision, dict(option.split("=", 1) for option in options))
    make_runs(a)
    for text in a.text:
        for size in a.sizes:
            study(a, text, size)


if __name__ == "__main__":
    main()
