"""Tokens a second of a model that continues 1, 4, 16 and 32 texts in one step of a runner, beside one after the other by the
model's cached step (rows_bench.cc, which also compares the bits of their logits). Tokens a second of CPU time.
"""
import json, subprocess

GOALS = {4: 3, 16: 6}  # texts: at least so many times the tokens


def report(b, dtypes):
    rows = []
    for dtype in dtypes:
        words = [b.benches / "rows_bench", "--dtype", dtype, "--threads", b.threads, "--steps", 2 if b.quick else 4]
        text = subprocess.run([str(w) for w in words], capture_output=True, text=True).stdout
        for line in map(json.loads, text.splitlines()):
            rows.append([dtype, line["texts"], line["rows"], line["one_by_one"], f"{line['ratio']}x",
                         "yes" if line["equal"] else "no"])
            if not line["equal"]:
                b.failed.append(f"generation {dtype}, {line['texts']} texts: the logits have other bits")
            if line["texts"] in GOALS:
                goal = GOALS[line["texts"]]
                b.goal(f"generation {dtype}, {line['texts']} texts in a step / one after the other", f">= {goal}x",
                       f"{line['ratio']}x", line["ratio"] >= goal, "Llama of 125 M, CPU time")
    b.table(["dtype", "texts", "in a step, tokens/s", "one by one, tokens/s", "ratio", "equal bits"], rows)
