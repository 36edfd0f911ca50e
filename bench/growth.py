"""What a training step costs as the model, the batch and the sequence grow, for each precision.

Each table changes one thing and keeps the others. Beside the tokens/s stands the rate of arithmetic (FLOPs as common.py counts
them, a second), relative to that of the table's first row: 1 where the cost grows as the arithmetic does. Rates fall with the
length of sequences where attention costs more than its FLOPs say, and rise with models whose products are larger.
"""
import statistics

from peers import common
from peers.stepper import Stepper

DTYPES = ("f32", "bf16", "int8")
BASE = dict(L=4, H=256, heads=4, kv=2, ffn=704, V=4096, seq=512, batch=4)
TABLES = {
    "model size": [dict(L=2, H=128, heads=2, kv=1, ffn=352), {}, dict(L=8, H=512, heads=8, kv=4, ffn=1376), dict(L=12, H=768, heads=12, kv=6, ffn=2048)],
    "batch": [dict(batch=1), dict(batch=2), {}, dict(batch=8), dict(batch=16)],
    "sequence, one text a step": [dict(seq=n, batch=1) for n in (512, 1024, 2048, 4096, 8192, 16384)],
}


def speed(bench, config, dtype, turns):
    """Tokens/s, the median of `turns` steps after the first."""
    size = ",".join(f"{k}={v}" for k, v in config.items())
    run = Stepper([bench.benches / "train_bench", "--start", bench.start_file(size), "--dtype", dtype, "--threads", bench.threads,
                   "--leaf_examples", config["batch"], "--remat", "save:qkv,attention"], bench.env)
    run.step()
    seconds = statistics.median(run.step()["s"] for _ in range(turns))
    run.finish()
    return config["seq"] * config["batch"] / seconds


def report(bench):
    turns = 3 if bench.quick else 7
    for title, changes in TABLES.items():
        rows, first = [], {}
        for change in changes:
            config = BASE | change
            row = [f"{config['L']} layers of {config['H']}", config["batch"], config["seq"]]
            for dtype in DTYPES:
                tokens = speed(bench, config, dtype, turns)
                rate = tokens * common.flops_per_token(config, config["seq"])
                first.setdefault(dtype, rate)
                row += [f"{tokens:.0f}", f"{rate / first[dtype]:.2f}"]
            rows.append(row)
        bench.say(f"### By {title}")
        bench.say()
        bench.table(["model", "batch", "sequence", *(f"{dtype} {what}" for dtype in DTYPES for what in ("tokens/s", "rate"))], rows)
        bench.say()
