#!/usr/bin/env python3
"""Text to token store, beside `datasets` + `tokenizers` on the same cores.

Makes a corpus of JSON lines from text files found on this machine (cut at random places, so that no two documents are the
same), trains a tokenizer on it, and then
1. tokenizes a sample with both, turn by turn: `ostro data build` against `datasets.load_dataset("json").map(...)` with
   `tokenizers`, batched, one process a core, to its Arrow cache; the ratio is taken within each pair;
2. builds the store of the whole corpus, and says how long it takes and how much memory;
3. builds it again, killed with SIGKILL at even distances on the way; the ledger hash must be the same.

The tokens of the sample's first documents are compared between the two. Run by a Python that has `datasets` and
`tokenizers` (bench/requirements-data.txt):
  build_bench.py --ostro build/main/ostro/cli/ostro --folder /tmp/build_bench --mb 1000 --sample_mb 100
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import time

SUFFIXES = {".py", ".h", ".hpp", ".c", ".txt", ".md", ".rst", ".js", ".html", ".xml", ".json", ".cmake", ".pl", ".pm"}


def found_texts(roots, limit):
    """Contents of text files, up to `limit` bytes in all."""
    total, texts = 0, []
    for root in roots:
        for path in sorted(pathlib.Path(root).rglob("*")):
            if path.suffix not in SUFFIXES or path.is_symlink() or not path.is_file():
                continue
            text = path.read_bytes()[:400_000].decode("utf-8", errors="ignore")
            if len(text) > 500:
                texts.append(text)
                total += len(text)
            if total > limit:
                return texts
    return texts


def make_corpus(path, mb, texts):
    """Documents of 200 to 20,000 characters, most of them short, as web text has them."""
    rng, written = random.Random(1), 0
    with open(path, "w") as out:
        while written < mb * 1e6:
            text = rng.choice(texts)
            length = min(20_000, int(200 * rng.paretovariate(0.8)))
            begin = rng.randrange(max(1, len(text) - length))
            line = json.dumps({"id": written, "text": text[begin:begin + length]}, ensure_ascii=False)
            written += out.write(line + "\n")


def head(source, target, mb):
    with open(source, "rb") as lines, open(target, "wb") as out:
        written = 0
        while written < mb * 1e6:
            written += out.write(lines.readline())


def write_config(folder, name, corpus):
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps({
        "data": {"tokenizer": str(folder / "tokenizer.json"), "cache_dir": str(folder / f"store_{name}"),
                 "components": {"web": {"train_urls": [str(corpus)], "validation_fraction": 0.001}},
                 "train_weights": {"web": 1}},
        "model": {"type": "llama", "seq_len": 2048}}))
    return path


def build(ostro, config, cores, kill_after=None):
    """(seconds, peak bytes of memory, ledger hash); without a hash when it was killed."""
    begin = time.perf_counter()
    process = subprocess.Popen([ostro, "data", "build", "--config", str(config)], stdout=subprocess.PIPE, text=True,
                               env=dict(os.environ, OSTRO_THREADS=str(cores)))
    if kill_after is not None:
        try:
            process.wait(kill_after)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0) if process.returncode is None else (0, process.returncode, None)
    seconds = time.perf_counter() - begin
    if status not in (0, signal.SIGKILL):
        sys.exit(f"ostro data build --config {config}: status {status}")
    found = re.search(r"ledger hash (\w+)", out)
    return seconds, usage.ru_maxrss * 1024 if usage else 0, found and found[1]


def peer(corpus, tokenizer_path, cores, cache):
    """Seconds that datasets takes from the file to tokens on disk, and the ids of the first rows."""
    code = f"""
import json, time, datasets, tokenizers
datasets.disable_progress_bars()
tokenizer = tokenizers.Tokenizer.from_file({str(tokenizer_path)!r})
eos = tokenizer.token_to_id("<|endoftext|>")
def encode(batch):
    return {{"input_ids": [e.ids + [eos] for e in tokenizer.encode_batch_fast(batch["text"], add_special_tokens=False)]}}
begin = time.perf_counter()
rows = datasets.load_dataset("json", data_files={str(corpus)!r}, split="train", cache_dir={str(cache)!r})
rows = rows.map(encode, batched=True, num_proc={cores}, remove_columns=rows.column_names)
print(json.dumps({{"seconds": time.perf_counter() - begin, "rows": len(rows), "ids": rows[:50]["input_ids"]}}))
"""
    shutil.rmtree(cache, ignore_errors=True)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env=dict(os.environ, TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1"))
    if done.returncode != 0:
        sys.exit(f"datasets: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare_tokens(ostro, config, theirs):
    """The first rows of both, by their text: held-out rows are in the other split of ours."""
    for number, ids in enumerate(theirs["ids"][:20]):
        for split in ("train", "validation"):
            done = subprocess.run([ostro, "data", "show", "--config", str(config), "--row", str(number), "--split", split,
                                   "--json"], capture_output=True, text=True, check=False)
            row = json.loads(done.stdout) if done.returncode == 0 else {}
            if row.get("document") == number + 1:
                if row["ids"] != ids:
                    sys.exit(f"document {number + 1}: other ids than tokenizers gives")
                break


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--folder", required=True, type=pathlib.Path)
    parser.add_argument("--mb", type=int, default=1000)
    parser.add_argument("--sample_mb", type=int, default=100)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--vocab_size", type=int, default=32_000)
    parser.add_argument("--roots", nargs="*", default=["/usr/lib/python3", "/usr/share", "/usr/include", sys.prefix])
    a = parser.parse_args()
    cores = multiprocessing.cpu_count()
    a.folder.mkdir(parents=True, exist_ok=True)
    corpus, sample = a.folder / f"corpus_{a.mb}.jsonl", a.folder / f"sample_{a.sample_mb}.jsonl"
    if not corpus.exists():
        make_corpus(a.folder / "corpus.part", a.mb, found_texts(a.roots, 300_000_000))
        (a.folder / "corpus.part").rename(corpus)
    if not sample.exists():
        head(corpus, sample, a.sample_mb)
    if not (a.folder / "tokenizer.json").exists():
        head(corpus, a.folder / "train.jsonl", 20)
        subprocess.run([a.ostro, "tokenizer", "train", "--input", str(a.folder / "train.jsonl"), "--vocab_size",
                        str(a.vocab_size), "--out", str(a.folder / "tokenizer.json")], check=True)
    ratios = []
    config = write_config(a.folder, "sample", sample)
    for pair in range(a.pairs):
        shutil.rmtree(a.folder / "store_sample", ignore_errors=True)
        if pair % 2 == 0:
            theirs = peer(sample, a.folder / "tokenizer.json", cores, a.folder / "hf")
        seconds, memory, _ = build(a.ostro, config, cores)
        if pair % 2 == 1:
            theirs = peer(sample, a.folder / "tokenizer.json", cores, a.folder / "hf")
        ratios.append(theirs["seconds"] / seconds)
        print(f"pair {pair}: datasets {theirs['seconds']:.1f} s, ostro {seconds:.2f} s, ratio {ratios[-1]:.1f}; "
              f"peak {memory / 2**20:.0f} MiB", flush=True)
    compare_tokens(a.ostro, config, theirs)
    if ratios:
        print(f"ratio on {a.sample_mb} MB, {cores} cores: median {statistics.median(ratios):.1f} "
              f"({min(ratios):.1f}-{max(ratios):.1f}); tokens equal")
    config = write_config(a.folder, "whole", corpus)
    shutil.rmtree(a.folder / "store_whole", ignore_errors=True)
    seconds, memory, whole = build(a.ostro, config, cores)
    print(f"whole corpus: {a.mb / seconds:.1f} MB/s, {seconds:.1f} s, peak {memory / 2**20:.0f} MiB, ledger {whole}",
          flush=True)
    shutil.rmtree(a.folder / "store_whole")
    for _ in range(a.kills):
        _, _, done = build(a.ostro, config, cores, kill_after=seconds / (a.kills + 1) + 0.2)
        if done:
            print("note: finished before all kills")
    _, _, again = build(a.ostro, config, cores)
    print(f"killed {a.kills} times: ledger {again}: {'the same' if again == whole else 'DIFFERS'}")
    sys.exit(0 if again == whole else 1)


if __name__ == "__main__":
    main()
