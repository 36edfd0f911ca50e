#!/usr/bin/env python3
"""Encoding speed against Hugging Face `tokenizers` (encode_batch_fast, its fastest call), both on one core; with
--families also of BPE over characters and Unigram, and of SentencePiece models against `sentencepiece` (encode of a list).

Corpora of code, prose and scripts other than Latin are made of files found on the machine; vocabularies are trained
here by `ostro tokenizer train` on other documents of the same kinds. In each round the two take turns: cold is the
first pass of a new tokenizer (there) or a new Encoder (here), warm the pass after it. Times are CPU times of the
process, loading excluded; ids are compared before. The last table is how fast single awkward documents go. Families
are those of tests/interop/tokenizer_families.py, made here by `sentencepiece` and `tokenizers` with a vocabulary of --family_size.

  ninja -C build/release tokenizer_bench ostro
  taskset -c 0 .venv/bin/python bench/tokenizer_compare.py --build build/release --folder bench_tokenizers

--json FILE keeps what was seen; bench/compare.py makes the section of the results from it (tokenizer_speed.py).
"""
import argparse
import gettext
import gzip
import json
import os
import pathlib
import random
import statistics
import struct
import subprocess
import sys
import sysconfig
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
from tokenizers import Tokenizer  # noqa: E402 (the variables must be set before)

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "tests" / "interop"), str(ROOT / "scripts")]
FAMILIES = ["llama2, mistral v1", "gemma", "llama2 .model", "gemma .model", "grok-1 .model", "t5", "xlnet", "t5 .model", "xlnet .model"]

LOCALES = ["ru", "uk", "bg", "sr", "el", "ja", "zh_CN", "zh_TW", "ko", "ar", "he", "hi", "fa", "th", "bn", "ta", "ka", "kk"]


def read_text(path):
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    return data.decode(errors="replace")


def code_files():
    yield from sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py"))


def prose_files():
    for name in sorted(pathlib.Path("/usr/share/doc").rglob("*")):
        if name.is_file() and (name.suffix in (".txt", ".md", ".rst") or name.name.startswith(("README", "NEWS", "copyright"))):
            yield name
    yield from sorted(pathlib.Path("/usr/share/perl").rglob("*.pod"))


def manual_text(path):
    """A man page without its formatting."""
    return "\n".join(line for line in read_text(path).split("\n") if not line.startswith((".", "'"))).replace("\\-", "-")


def translations():
    for locale in LOCALES:
        for path in sorted(pathlib.Path("/usr/share/locale").glob(f"{locale}/LC_MESSAGES/*.mo")):
            try:
                with path.open("rb") as file:
                    catalog = gettext.GNUTranslations(file)._catalog
            except (OSError, UnicodeDecodeError, ValueError):
                continue
            lines = [m for m in catalog.values() if isinstance(m, str) and sum(ord(c) > 0x36F for c in m) * 3 > len(m)]
            yield "\n".join(lines)


def documents(texts, limit, length):
    """Documents of at most `length` characters, up to `limit` bytes; equal ones once."""
    seen, size = set(), 0
    for text in texts:
        for begin in range(0, len(text), length):
            part = text[begin:begin + length]
            if len(part) < 200 or part in seen:
                continue
            seen.add(part)
            size += len(part.encode())
            yield part
            if size >= limit:
                return


def corpora(size):
    """{kind: (documents to measure, documents to train on)}: every fourth document is measured."""
    def texts(paths, read):
        for path in paths:
            try:
                yield read(path)
            except (OSError, EOFError, gzip.BadGzipFile):
                continue
    def prose():
        yield from texts(prose_files(), read_text)
        yield from texts(sorted(pathlib.Path("/usr/share/man").glob("man*/*.gz")), manual_text)
    sources = {"code": texts(code_files(), read_text), "prose": prose(), "non-Latin": translations()}
    out = {}
    for kind, found in sources.items():
        all_documents = list(documents(found, 8 * size, 6000))
        random.Random(1).shuffle(all_documents)
        measured = list(documents(all_documents[::4], size, 6000))
        out[kind] = (measured, [d for i, d in enumerate(all_documents) if i % 4])
    return out


def awkward(rng):
    """(name, text) of single documents that are hard for a splitter, a memory of pieces, or merges."""
    n = 1 << 18
    letters = "abcdefghijklmnopqrstuvwxyz"
    yield "one letter", "a" * n
    yield "spaces", " " * n
    yield "line ends", "\n" * n
    yield "alternating", "ab" * (n // 2)
    yield "digits", "".join(rng.choices("0123456789", k=n))
    yield "one sign", "!" * n
    yield "signs", "".join(rng.choices("!?.,;:()[]{}+-*/=<>|&^%$#@~`\"\\_", k=n))
    yield "letters, no spaces", "".join(rng.choices(letters, k=n))
    yield "words, no spaces", "".join(rng.choices(["the", "of", "return", "self", "import", "tokenizer", "data"], k=n // 5))
    yield "random words", " ".join("".join(rng.choices(letters, k=rng.randint(1, 20))) for _ in range(n // 11))
    yield "long random words", " ".join("".join(rng.choices(letters, k=60)) for _ in range(n // 61))
    yield "capitals alternating", "aB" * (n // 2)
    yield "contractions", "'s't'll've" * (n // 10)
    yield "Cyrillic letters", "".join(chr(rng.randint(0x430, 0x44F)) for _ in range(n // 2))
    yield "Chinese characters", "".join(chr(rng.randint(0x4E00, 0x9FFF)) for _ in range(n // 3))
    yield "any code points", "".join(chr(rng.choice([rng.randint(0, 0xD7FF), rng.randint(0xE000, 0x10FFFF)])) for _ in range(n // 4))
    yield "marks", "e" + "\u0301" * (n // 2)
    yield "random bytes", bytes(rng.randrange(256) for _ in range(n)).decode(errors="replace")
    yield "base64", "".join(rng.choices(letters + letters.upper() + "0123456789+/", k=n))


def pack(texts):
    return b"".join(struct.pack("<I", len(t)) + t for t in (t.encode() for t in texts))


def train(args, folder, vocab_size, training):
    target = folder / f"vocab{vocab_size}" / "tokenizer.json"
    if not target.exists():
        target.parent.mkdir(exist_ok=True)
        text = folder / "training.txt"
        if not text.exists():
            text.write_text("\n".join(training), newline="")
        subprocess.run([args.build / "ostro/cli/ostro", "tokenizer", "train", "--input", text, "--vocab_size", str(vocab_size),
                        "--out", target], check=True, stdout=subprocess.DEVNULL)
    return target


class Ours:
    def __init__(self, args, tokenizer, records):
        self.process = subprocess.Popen([args.build / "bench/tokenizer_bench", tokenizer, records], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, command):
        print(command, file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"tokenizer_bench ended at: {command}")
        return [int(word) for word in line.split()]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Theirs:
    """The library that a tokenizer's file belongs to, with nothing remembered yet."""

    def __init__(self, path, content):
        self.is_json = path.suffix == ".json"
        if self.is_json:
            self.peer = Tokenizer.from_str(content.decode())
        else:
            import sentencepiece
            self.peer = sentencepiece.SentencePieceProcessor(model_proto=content)

    def encode(self, texts):
        if self.is_json:
            return self.peer.encode_batch_fast(texts, add_special_tokens=False)
        return self.peer.encode(texts, num_threads=1)

    def ids(self, texts):
        return [e.ids if self.is_json else e for e in self.encode(texts)]

    def timed(self, texts):
        began = time.process_time()
        self.encode(texts)
        return time.process_time() - began


def check_ids(ours, theirs, texts, folder):
    ours.ask(f"ids {folder / 'ids.bin'}")
    data, at = (folder / "ids.bin").read_bytes(), 0
    for text, ids in zip(texts, theirs.ids(texts)):
        (n,) = struct.unpack_from("<I", data, at)
        if list(struct.unpack_from(f"<{n}I", data, at + 4)) != ids:
            sys.exit(f"ids differ: {text[:100]!r}")
        at += 4 + 4 * n


def compare(args, folder, path, kind, texts):
    records = folder / "records.bin"
    records.write_bytes(pack(texts))
    ours, content = Ours(args, path, records), path.read_bytes()
    check_ids(ours, Theirs(path, content), texts, folder)
    size = sum(len(t.encode()) for t in texts) / 1e6
    times = {"cold": ([], []), "warm": ([], [])}
    for _ in range(args.rounds):
        theirs = Theirs(path, content)
        for state in ("cold", "warm"):
            times[state][0].append(theirs.timed(texts))
            times[state][1].append(ours.ask(state)[0] * 1e-9)
    ours.close()
    seen = dict(kind=kind, tokenizer=path.parent.name.removeprefix("vocab"), mb=size)
    row = [f"{kind:10}", f"{seen['tokenizer']:>7}", f"{size:6.1f}"]
    for state in ("cold", "warm"):
        a, b = (statistics.median(t) for t in times[state])
        ratios = [x / y for x, y in zip(*times[state])]
        seen[state] = dict(theirs=size / a, ours=size / b, ratios=ratios)
        row.append(f"{size / a:7.2f} {size / b:8.1f} {statistics.median(ratios):7.1f} "
                   f"({min(ratios):.1f} to {max(ratios):.1f})")
    print(" | ".join(row), flush=True)
    return seen


def check_awkward(args, folder, path, average):
    cases = list(awkward(random.Random(1)))
    texts = [text for _, text in cases]
    records = folder / "records.bin"
    records.write_bytes(pack(texts))
    ours = Ours(args, path, records)
    check_ids(ours, Theirs(path, path.read_bytes()), texts, folder)
    rates = [(len(text.encode()) * 1e3 / ns, name) for (name, text), ns in zip(cases, ours.ask("each 3"))]
    ours.close()
    print(f"{path.parent.name}: average of the corpora, warm, {average:.0f} MB/s; awkward documents, the slowest first:")
    print("  " + "; ".join(f"{name} {rate:.0f}" for rate, name in sorted(rates)), flush=True)
    return dict(tokenizer=path.parent.name.removeprefix("vocab"), slowest=min(rates)[1], share=min(rates)[0] / average)


def family_paths(args, training):
    """Folders named like the families, each with its tokenizer; made where one is missing."""
    paths = {name: args.folder / f"{name}, {args.family_size}" for name in args.families}
    if not all(list(path.glob("tokenizer.*")) for path in paths.values()):
        from tokenizer_families import character_families, unigram_families
        for make in (character_families, unigram_families):
            for family in make(training, args.family_size):
                if family.name in paths:
                    paths[family.name].mkdir(exist_ok=True)
                    (paths[family.name] / family.file).write_bytes(family.content)
    return [next(path.glob("tokenizer.*")) for path in paths.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("bench_tokenizers"))
    parser.add_argument("--size", type=float, default=4.0, help="MB of each corpus that is measured")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--vocab", type=int, nargs="*", default=[4096, 32768, 131072])
    parser.add_argument("--families", nargs="*", default=[], choices=FAMILIES + ["all"], metavar="NAME",
                        help="'all', or any of " + "; ".join(FAMILIES))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--family_size", type=int, default=8000, help="tokens of their vocabularies")
    args = parser.parse_args()
    if "all" in args.families:
        args.families = FAMILIES
    args.folder.mkdir(parents=True, exist_ok=True)
    kinds = corpora(int(args.size * 1e6))
    training = [d for _, rest in kinds.values() for d in rest]
    print(f"{args.rounds} rounds, medians; MB/s there, here, and the ratio (least to greatest of a round)")
    print("corpus     |   vocab |     MB |    cold | warm")
    seen, worst = [], []
    paths = [train(args, args.folder, vocab_size, training) for vocab_size in args.vocab]
    for path in paths + (family_paths(args, training) if args.families else []):
        rows = [compare(args, args.folder, path, kind, texts) for kind, (texts, _) in kinds.items()]
        seen += rows
        worst.append(check_awkward(args, args.folder, path, statistics.mean(row["warm"]["ours"] for row in rows)))
    print(f"the slowest awkward document runs at {min(w['share'] for w in worst):.2f} of its tokenizer's average rate")
    if args.json:
        args.json.write_text(json.dumps(dict(seen=seen, awkward=worst)))


if __name__ == "__main__":
    main()
