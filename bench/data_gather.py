"""Shuffled batches beside NumPy, and the first batch of a very long store (data_bench.cc).

Gather: batches of 64 x 2048 from a store whose files and decoded chunks are warm, in turns with NumPy gathers of the same
sequences out of a memmap of the same ids, one thread each. NumPy does what small trainers do: a slice for each sequence,
stacked and cast to int32, or one gather by index; and what suits it best: slices copied into an array of int32 that is used again.
Each of uint16 and of int64 ids. It gives [64, 2049] ids with inputs and targets
as views; our batch holds tokens, targets and loss mask, each [64, 2048], in memory that is used again. All ids are compared first.

Far: a store of 12.75 * 10^12 tokens, one process for each measurement.
"""
import statistics, subprocess, time

import numpy as np

from report import spread

BATCH, SEQ_LEN, STEPS = 64, 2048, 100
KEPT = np.empty((BATCH, SEQ_LEN + 1), np.int32)


def sliced(tokens, rows):
    return np.stack([tokens[i * SEQ_LEN:i * SEQ_LEN + SEQ_LEN + 1] for i in rows]).astype(np.int32)


def copied(tokens, rows):
    """Into an array that is used again, as our batches' memory is."""
    for i, row in enumerate(rows):
        KEPT[i] = tokens[row * SEQ_LEN:row * SEQ_LEN + SEQ_LEN + 1]
    return KEPT


def gathered(tokens, rows):
    return tokens[rows[:, None] * SEQ_LEN + np.arange(SEQ_LEN + 1)].astype(np.int32)


class Ours:
    """A data_bench process that makes batches on demand."""

    def __init__(self, bench, folder, mib):
        self.process = subprocess.Popen([bench, folder, "gather", str(mib)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, *words):
        print(*words, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise RuntimeError(f"data_bench gather {words}: no answer")
        return answer

    def milliseconds(self):
        return float(self.ask("time", 0, STEPS))

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def peers(folder):
    """Name to a function that makes the batch of a step."""
    order = np.fromfile(folder / "order.i64", np.int64).reshape(-1, BATCH)
    ids = np.fromfile(folder / "ids.i32", np.int32)
    made = {}
    for dtype in (np.uint16, np.int64):
        path = folder / f"ids.{np.dtype(dtype).name}"
        ids.astype(dtype).tofile(path)
        tokens = np.memmap(path, dtype=dtype, mode="r")
        for make in (sliced, gathered, copied):
            made[f"NumPy memmap of {np.dtype(dtype).name}, {make.__name__}"] = (
                lambda step, make=make, tokens=tokens: make(tokens, order[step]))
    return made


def milliseconds(make):
    begin = time.perf_counter()
    for step in range(STEPS):
        batch = make(step)
        inputs, targets = batch[:, :-1], batch[:, 1:]
    del inputs, targets
    return (time.perf_counter() - begin) / STEPS * 1e3


def compare_ids(ours, makers, folder):
    for step in (0, 1, STEPS - 1):
        ours.ask("batch", step, folder / "batch.i32")
        tokens, targets = np.fromfile(folder / "batch.i32", np.int32).reshape(2, BATCH, SEQ_LEN)
        for name, make in makers.items():
            batch = make(step)
            if not (np.array_equal(batch[:, :-1], tokens) and np.array_equal(batch[:, 1:], targets)):
                raise RuntimeError(f"{name}, step {step}: other ids than the loader's")


def gather(b, bench, store, rounds):
    """Milliseconds of a batch by name, one for each round."""
    ours = Ours(bench, store, 1024)
    ours.ask("export", b.folder, STEPS)
    small = Ours(bench, store, 1)  # after the store was made
    makers = peers(b.folder)
    compare_ids(ours, makers, b.folder)
    times = {"ostro": [], "ostro, no room for decoded chunks": [], **{name: [] for name in makers}}
    for turn in range(rounds + 1):  # the first one warms up
        for name, list_ in times.items():
            if name in makers:
                seen = milliseconds(makers[name])
            elif name == "ostro":
                seen = ours.milliseconds()
            else:
                seen = float(small.ask("time", turn, 2))
            if turn > 0:
                list_.append(seen)
    ours.close()
    small.close()
    return times


def far(bench, store, rounds, threads):
    """(milliseconds to the batch, to the open store, for the documents; MiB) of each round, warm files."""
    subprocess.run([bench, store, "far", str(threads)], capture_output=True, check=True)
    rows, prints = [], set()
    for _ in range(rounds):
        words = subprocess.run([bench, store, "far", str(threads)], capture_output=True, text=True, check=True).stdout.split()
        rows.append([float(w) for w in words[:4]])
        prints.add(words[4])
    if len(prints) != 1:
        raise RuntimeError(f"the batch of a step differs between processes: {prints}")
    return list(zip(*rows, strict=True))


def report(b):
    bench, store = b.benches / "data_bench", b.folder / "store"
    rounds = 7 if b.quick else 15
    b.tool("One batch from nothing in memory", [bench, store, "first"])
    times = gather(b, bench, store, rounds)
    ours = statistics.median(times["ostro"])
    b.say(f"### Shuffled batches of {BATCH} x {SEQ_LEN} from a warm store of 16 million tokens, one thread")
    b.say()
    b.table(["", "ms a batch, median (range)", "of ostro's"],
            [[name, spread(t, 3), f"{statistics.median(t) / ours:.2f}x"] for name, t in times.items()])
    best = min((n for n in times if n.startswith("NumPy")), key=lambda n: statistics.median(times[n]))
    ratio = statistics.median(theirs / own for theirs, own in zip(times[best], times["ostro"], strict=True))
    without = statistics.median(times["ostro, no room for decoded chunks"])
    b.goal("Shuffled batch, warm store", ">= 2x a NumPy memmap gather", f"{ratio:.2f}x the fastest ({best})", ratio >= 2,
           f"{rounds} turns, ids equal; its decoded chunks fit data.chunk_cache_mib, without that room {without:.1f} ms")
    b.say("### First batch of 12.75 * 10^12 tokens (uint32) at step 1,419,999, a new process each")
    b.say()
    rows = []
    for threads in sorted({1, b.threads}):
        made, opened, documents, memory = far(bench, store, rounds, threads)
        rows.append([threads, spread(made, 1), spread(opened, 1), spread(documents, 1), spread(memory, 0)])
        b.goal(f"First batch, 12.75 T tokens, step 1,419,999, threads: {threads}", "< 50 ms",
               f"{spread(made, 1)} ms, {max(memory):.0f} MiB at most", statistics.median(made) < 50,
               "warm files; the process's start and the tokenizer's loading not counted")
    b.table(["threads", "ms to the batch", "ms of them to open", "ms for the documents of its sequences", "MiB, largest"],
            rows)
