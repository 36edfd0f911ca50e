#!/usr/bin/env python3
"""Text to token store, beside `datasets` + `tokenizers` on the same cores.

Makes a corpus of JSON lines out of text files found on this machine (cut at drawn places), trains a tokenizer on it, and
1. tokenizes a sample with both, turn by turn: `ostro data build` against `datasets.load_dataset("json").map(...)` with
   `tokenizers`, to its Arrow cache, by processes or by threads, whichever was faster in the first turn. Both have all
   tokens on disk at the end; the tokens must be the same. Its time begins behind the imports, ours with the process;
2. builds the store of the whole corpus, and says how long it takes and how much memory;
3. builds it again, killed with SIGKILL at drawn moments along the whole way, each time after at least one more commit; the
   ledger hash must be the same, no start may go behind what the one before left, and what was kept may not be built again.

Part of scripts/bench.sh (`--parts data`). By hand, with the Python of .venv after `scripts/setup.sh --bench`:
  .venv/bin/python bench/text_to_store.py --ostro build/release/ostro/cli/ostro --folder /tmp/text_to_store
"""
import argparse, hashlib, json, os, pathlib, random, re, shutil, signal, statistics, subprocess, sys, threading, time

import numpy as np
import zarr

from report import HERE, spread
from results import table

GOAL = 15.0
SUFFIXES = {".py", ".h", ".hpp", ".c", ".txt", ".md", ".rst", ".js", ".html", ".xml", ".json", ".cmake", ".pl", ".pm"}
ROOTS = ["/usr/lib/python3", "/usr/share", "/usr/include", sys.prefix]


def found_texts(limit=300_000_000):
    """Contents of text files, up to `limit` bytes in all."""
    total, texts = 0, []
    for root in ROOTS:
        for path in sorted(pathlib.Path(root).rglob("*")):
            if path.suffix not in SUFFIXES or path.is_symlink() or not path.is_file():
                continue
            text = path.read_bytes()[:400_000].decode("utf-8", errors="ignore")
            if len(text) > 500 and "\0" not in text:
                texts.append(text)
                total += len(text)
            if total > limit:
                return texts
    return texts


def make_corpus(path, mb, seed=1):
    """Documents of 200 to 20,000 characters, most of them short, as web text has them."""
    draw, texts, written = random.Random(seed), found_texts(), 0
    with open(path, "w") as out:
        while written < mb * 1e6:
            text = draw.choice(texts)
            length = min(20_000, int(200 * draw.paretovariate(0.8)))
            begin = draw.randrange(max(1, len(text) - length))
            line = json.dumps({"id": written, "text": text[begin:begin + length]}, ensure_ascii=False)
            written += out.write(line + "\n")


def head(source, target, mb):
    with open(source, "rb") as lines, open(target, "wb") as out:
        written = 0
        while written < mb * 1e6:
            written += out.write(lines.readline())


class Run:
    """A process that has ended: seconds, CPU seconds of it and its children, its peak memory as seen every 20 ms (what
    wait4 says begins with the memory of this process), and what it printed. `look`, called as often, may have it killed."""

    def __init__(self, command, look=lambda: False, env=None):
        begin = time.perf_counter()
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True, env=env)
        handle = os.pidfd_open(process.pid)  # stands for this process alone, whoever has its id later
        self.peak_mib, asked = 0, []
        watcher = threading.Thread(target=self.watch, args=(process.pid, handle, look, asked))
        watcher.start()
        self.out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds, self.cpu = time.perf_counter() - begin, usage.ru_utime + usage.ru_stime
        watcher.join()
        os.close(handle)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.killed = process.returncode == -signal.SIGKILL
        if process.returncode != 0 and not (self.killed and asked):
            sys.exit(f"{' '.join(map(str, command))}: status {process.returncode}")

    def watch(self, pid, handle, look, asked):
        while True:
            try:
                found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path(f"/proc/{pid}/status").read_text())
                if not found:  # it has ended and was not waited for yet
                    return
                self.peak_mib = max(self.peak_mib, int(found[1]) / 1024)
                if look():
                    asked.append(True)
                    return signal.pidfd_send_signal(handle, signal.SIGKILL)
            except OSError:
                return
            time.sleep(0.02)


class Journal:
    """What an unfinished store has: commits, of which the one at the end of a build is not counted, and bytes of text."""

    def __init__(self, store):
        self.path = store / "web/journal.jsonl"

    def lines(self):
        """Whole ones behind the first, which is no commit. Empty without a journal."""
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return []
        return [line for line in text.split(b"\n")[1:-1] if b'"encoded":true' not in line]

    def commits(self):
        return len(self.lines())

    def text(self):
        lines = self.lines()
        return sum(json.loads(lines[-1][9:])["bytes"]) if lines else 0  # behind the line's checksum


class Killer:
    """Kills a build `delay` seconds after the journal has `wanted` commits. Bounded by `limit` seconds."""

    def __init__(self, journal, wanted, delay, limit):
        self.journal, self.wanted, self.delay = journal, wanted, delay
        self.had = self.least = journal.commits()
        self.limit, self.at = time.perf_counter() + limit, None

    def look(self):
        commits, now = self.journal.commits(), time.perf_counter()
        self.least = min(self.least, commits)
        if self.at is None and commits >= self.wanted:
            self.at = now + self.delay
        return now >= (self.at or self.limit)


class Texts:
    """The corpus, a sample of it and a tokenizer, in a folder; what is there is used again."""

    def __init__(self, ostro, folder, cores, mb, sample_mb, vocab_size=32_000):
        self.ostro, self.folder, self.cores = pathlib.Path(ostro).resolve(), pathlib.Path(folder), cores
        self.mb, self.sample_mb = mb, sample_mb
        self.folder.mkdir(parents=True, exist_ok=True)
        self.corpus, self.sample = self.folder / f"corpus_{mb}.jsonl", self.folder / f"sample_{sample_mb}.jsonl"
        self.tokenizer = self.folder / "tokenizer.json"
        if not self.corpus.exists():
            make_corpus(self.folder / "corpus.part", mb)
            (self.folder / "corpus.part").rename(self.corpus)
        if not self.sample.exists():
            head(self.corpus, self.sample, sample_mb)
        if not self.tokenizer.exists():
            head(self.corpus, self.folder / "train.jsonl", min(mb, 20))
            with open(self.folder / "train.jsonl") as lines, open(self.folder / "train.txt", "w") as out:
                out.writelines(json.loads(line)["text"] + "\n" for line in lines)
            subprocess.run([self.ostro, "tokenizer", "train", "--input", self.folder / "train.txt", "--vocab_size",
                            str(vocab_size), "--out", self.tokenizer], check=True, stdout=subprocess.DEVNULL)

    def store(self, name):
        return self.folder / f"store_{name}"

    def build(self, name, texts, look=lambda: False):
        """A Run of `ostro data build`, with the ledger hash it printed, which a killed one did not."""
        config = self.folder / f"{name}.yaml"
        config.write_text(json.dumps({
            "data": {"tokenizer": str(self.tokenizer), "cache_dir": str(self.store(name)),
                     "components": {"web": {"train_urls": [str(texts)], "validation_fraction": 0}}, "train_weights": {"web": 1}},
            "model": {"type": "llama", "seq_len": 2048}}))
        run = Run([self.ostro, "data", "build", "--config", config], look,
                  dict(os.environ, OSTRO_THREADS=str(self.cores)))
        found = re.search(r"ledger hash (\w+)", run.out)
        run.ledger = found and found[1]
        return run

    def remove(self, name):
        shutil.rmtree(self.store(name), ignore_errors=True)

    def peer(self, how):
        cache = self.folder / "datasets"
        shutil.rmtree(cache, ignore_errors=True)
        run = Run([sys.executable, HERE / "peers/datasets_map.py", self.sample, self.tokenizer, cache, how, self.cores])
        run.said = json.loads(run.out.strip().splitlines()[-1])
        shutil.rmtree(cache)
        return run

    def tokens(self, name):
        """(number, SHA-256) of all ids of a store, as Python's zarr reads them."""
        array = zarr.open_array(self.store(name) / "web/train/input_ids/data", mode="r")
        ledger = json.loads((self.store(name) / "web/ledger.json").read_text())
        count, digest, step = ledger["content"]["splits"]["train"]["tokens"], hashlib.sha256(), 1 << 22
        for i in range(0, count, step):
            digest.update(np.asarray(array[i:min(i + step, count)], "<i8").tobytes())
        return count, digest.hexdigest()


def compare(texts, pairs, say):
    """Ratios of time within pairs, and of CPU time."""
    how = min(("processes", "threads"), key=lambda way: texts.peer(way).said["seconds"])
    mine, theirs = [], []
    for pair in range(pairs):
        texts.remove("sample")
        sides = [lambda: theirs.append(texts.peer(how)), lambda: mine.append(texts.build("sample", texts.sample))]
        for side in sides if pair % 2 == 0 else reversed(sides):
            side()
    count, digest = texts.tokens("sample")
    said = theirs[-1].said
    if (said["tokens"], said["sha256"]) != (count, digest):
        sys.exit(f"text_to_store: {count} tokens with SHA-256 {digest}, and {said['tokens']} with {said['sha256']} by datasets")
    ratios = [b.said["seconds"] / a.seconds for a, b in zip(mine, theirs)]
    cpu = [b.cpu / a.cpu for a, b in zip(mine, theirs)]
    say(f"{texts.sample_mb} MB of JSON lines, {count} tokens, all equal; {texts.cores} cores; datasets maps with {how}:")
    say()
    table = [("seconds", [r.seconds for r in mine], [r.said["seconds"] for r in theirs], ratios),
             ("CPU seconds", [r.cpu for r in mine], [r.cpu for r in theirs], cpu),
             ("MB/s", [texts.sample_mb / r.seconds for r in mine], [texts.sample_mb / r.said["seconds"] for r in theirs], ratios)]
    say("| median (lowest-highest) | ostro | datasets + tokenizers | ratio within pairs |")
    say("|---|---|---|---|")
    for name, a, b, ratio in table:
        say(f"| {name} | {spread(a, 2)} | {spread(b, 2)} | {spread(ratio, 1)} |")
    say()
    return ratios, max(r.peak_mib for r in mine)


def killed(texts, journal, plain, commits, kills, seed):
    """Starts the build, killed `kills` times on the way: a row of figures for each, and what is wrong."""
    draw, rows, wrong = random.Random(seed), [], []
    for wanted in sorted(draw.sample(range(1, commits), kills)):
        killer = Killer(journal, max(wanted, journal.commits() + 1),
                        draw.uniform(0, 0.5) * plain.seconds / (commits + 1), 60 + 10 * plain.seconds)
        run = texts.build("whole", texts.corpus, killer.look)
        if not run.killed:
            sys.exit(f"text_to_store: the build ended {kills - len(rows)} kills early; another --seed, or more --mb")
        kept = journal.commits()
        if kept < killer.wanted:
            sys.exit(f"text_to_store: {kept} commits after {run.seconds:.0f} s, {killer.wanted} were expected")
        if killer.least < killer.had:
            wrong.append(f"start {len(rows) + 1} found {killer.had} commits and went back to {killer.least}.")
        rows.append(dict(seconds=run.seconds, cpu=run.cpu, had=killer.had, kept=kept, share=journal.text() / plain.text))
    return rows, wrong


def whole(texts, kills, seed, say):
    """Builds the whole corpus, then again with kills (fewer where there are not enough commits to keep): peak memory, how
    often it was killed, what was seen in a few words, and what is wrong."""
    texts.remove("whole")
    journal, seen = Journal(texts.store("whole")), []
    plain = texts.build("whole", texts.corpus, lambda: seen.append(journal.commits()))
    commits = max(seen)
    splits = json.loads((texts.store("whole") / "web/ledger.json").read_text())["content"]["splits"]
    plain.text = sum(split["bytes"] for split in splits.values())
    say(f"{texts.mb} MB: {plain.seconds:.1f} s, {texts.mb / plain.seconds:.1f} MB/s, {plain.cpu:.1f} CPU seconds, peak memory "
        f"{plain.peak_mib:.0f} MiB, {commits} commits on the way, ledger hash {plain.ledger}")
    texts.remove("whole")
    kills = min(kills, commits - 1)
    if kills < 1:
        sys.exit(f"text_to_store: {commits} commits in {texts.mb} MB leave nothing to kill; more --mb")
    rows, wrong = killed(texts, journal, plain, commits, kills, seed)
    kept, begin = rows[-1]["share"], journal.commits()
    last = texts.build("whole", texts.corpus)
    all_cpu = sum(row["cpu"] for row in rows) + last.cpu
    say()
    head = ["start", "commits before", "killed after, s", "CPU seconds", "commits kept", "of the text"]
    for line in table(head, [[i + 1, r["had"], f"{r['seconds']:.2f}", f"{r['cpu']:.2f}", r["kept"], f"{r['share']:.0%}"]
                             for i, r in enumerate(rows)] +
                            [[kills + 1, begin, f"ended after {last.seconds:.2f}", f"{last.cpu:.2f}", "", "100%"]]):
        say(line)
    share, spent = last.cpu / plain.cpu, all_cpu / plain.cpu
    say(f"killed {kills} times: ledger hash {last.ledger}, {'the same' if last.ledger == plain.ledger else 'ANOTHER'}; the last "
        f"start had {kept:.0%} of the text and took {last.seconds:.1f} s, {last.seconds / plain.seconds:.0%} of a whole build "
        f"({share:.0%} of its CPU time); all {kills + 1} starts took {spent:.2f} times the CPU time of one build")
    say()
    if last.ledger != plain.ledger:
        wrong.append("A build that was killed has another ledger hash.")
    if share > 1 - kept + 0.25:
        wrong.append(f"With {kept:.0%} of the text kept the last start took {share:.0%} of the CPU time of a whole build.")
    if spent > 2:
        wrong.append(f"All starts took {spent:.2f} times the CPU time of one build: what was kept is built again.")
    texts.remove("whole")
    return plain.peak_mib, kills, f"last start {share:.0%} of the CPU time with {kept:.0%} kept; all starts {spent:.2f}x", wrong


def report(b, seed):
    """The part of scripts/bench.sh."""
    texts = Texts(b.benches.parent / "ostro/cli/ostro", b.folder / "texts", b.threads, 200 if b.quick else 1000, 100)
    ratios, small = compare(texts, 1 if b.quick else 7, b.say)
    large, kills, seen, wrong = whole(texts, 10, seed, b.say)
    shutil.rmtree(texts.folder)
    b.goal(f"Text to token store, {texts.sample_mb} MB of JSON lines", f">= {GOAL:.0f}x datasets + tokenizers",
           spread(ratios, 1) + "x", statistics.median(ratios) >= GOAL, "tokens equal")
    b.goal(f"Token store of {texts.mb} MB, killed {kills} times", "the same ledger hash, nothing kept is built again", seen,
           not wrong, f"peak memory {large:.0f} MiB; of {texts.sample_mb} MB {small:.0f} MiB")
    b.failed += wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--sample_mb", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=7, help="0: no comparison")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the kills")
    a = parser.parse_args()
    texts = Texts(a.ostro, a.folder, len(os.sched_getaffinity(0)), a.mb, a.sample_mb)

    def say(line=""):
        print(line, flush=True)

    if a.pairs > 0:
        compare(texts, a.pairs, say)
    wrong = whole(texts, a.kills, a.seed, say)[-1]
    sys.exit("\n".join(f"text_to_store: {line}" for line in wrong) or 0)


if __name__ == "__main__":
    main()
