"""The phases of a run, read out of its chain.jsonl by nothing but Python: what the table `phases` of a lab's record must say.

    lab_phases.py chain.jsonl     prints a line for each: steps, batch, tokens, data, first and last rate

The schedule is that of docs/reference/optimizers.md, in doubles, rounded after each operation.
"""
import json
import sys


def number(value):
    return float.fromhex(value) if isinstance(value, str) else value


def options(tree, path=""):
    """The options of a configuration by path, down to what is no section."""
    if not isinstance(tree, dict) or path.count(".") == 1:
        return {path: tree}
    return {name: value for key, below in tree.items() for name, value in options(below, f"{path}.{key}" if path else key).items()}


def at_stage(value, step):
    """What holds in the step, of a value or of stages [[first step, value], ...]."""
    if not isinstance(value, list):
        return value
    return [held for first, held in ((stage["start"], stage["value"]) if isinstance(stage, dict) else stage for stage in value) if first <= step][-1]


def steps_of(share, steps):
    if share > 1:
        return int(share)
    whole = int(share * steps) + 1
    while whole > 0 and whole / steps > share:
        whole -= 1
    return whole


def rate(held, step):
    """The learning rate of a step, counted from 0."""
    def option(name, default=0):
        value = number(held.get(f"optimizer.{name}"))
        return default if value is None else value

    since = option("schedule_from")
    steps, step = int(number(held["trainer.num_train_steps"]) - since), max(step - since, 0)
    length = option("cycle_length")
    every = steps_of(length, steps) if length else steps
    bounds = [*range(0, steps, every), steps]
    begin = option("warmup_from")
    for i in range(len(bounds) - 1):
        n = bounds[i + 1] - bounds[i]
        warmup = min(steps_of(option("warmup" if i == 0 else "rewarmup"), n), n)
        if step < bounds[i + 1] or i + 2 == len(bounds):
            return in_cycle(held, option, step - bounds[i], n, warmup, begin)
        begin = in_cycle(held, option, n - 1, n, warmup, begin)


def in_cycle(held, option, step, n, warmup, begin):
    decay = option("decay", None)
    decay = n - warmup if decay is None else min(steps_of(decay, n), n - warmup)
    peak = option("learning_rate")
    floor = peak * option("min_lr_ratio")
    if step < warmup:
        return peak * step / warmup if begin == 0 else begin + (peak - begin) * (step / warmup)
    kind = held["optimizer.lr_schedule"]
    if step < n - decay or decay <= 0 or kind == "constant":
        return peak
    assert kind == "linear", f"this script knows no schedule {kind}"
    return peak + (floor - peak) * min(1.0, (step - (n - decay)) / decay)


def phases_of(lines):
    """A row for each part of the run between its amends: first and last step, batch, tokens, data, first and last rate."""
    genesis = lines[0]
    held, data, begin, rows = options(genesis["config"]), genesis["data"], genesis["fork"]["step"] if genesis["fork"] else 0, []
    tokens = {line["step"]: line["tokens"] for line in lines if line["kind"] == "step"}
    amends = [line for line in lines if line["kind"] == "amend"]
    for amend in [*amends, None]:
        end = amend["step"] if amend else max(tokens)
        if end > begin:
            rows.append((begin + 1, end, at_stage(held["trainer.train_batch_size"], begin), sum(n for step, n in tokens.items() if begin < step <= end),
                         data, rate(held, begin), rate(held, end - 1)))
        if amend:
            for path, change in amend["difference"].items():
                if path == "data":
                    data = change["to"]
                elif isinstance(change, dict) and "to" in change:
                    held[path] = change["to"]
                elif isinstance(change, dict) and "from" in change:
                    held.pop(path, None)
            begin = end
    return rows


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        for row in phases_of([json.loads(line) for line in file]):
            print(*row)
