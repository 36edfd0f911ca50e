#!/usr/bin/env python3
"""Compares our tokenizer with Hugging Face `tokenizers` and `transformers` and with `sentencepiece`, for every family that
models are trained with.

For each tokenizer of tokenizer_families.py: the same ids, without and with the tokens that go around a text, and the same
decoded text, on mixed text: code, prose of many scripts, emoji, control characters, long runs, random bytes.
Usage: check_tokenizer_families.py --helper build/.../tokenizer_cli_helper [--bytes N] [--only WORD]
CI compares a little text for each; --bytes 20000000 is the long form. A sampled run takes nine families.
"""
import argparse
import pathlib
import random
import sys
import tempfile
import time
import unicodedata

from transformers import AutoTokenizer

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
from check_tokenizer import Ours, Report, random_bytes, random_text, stdlib  # noqa: E402
from tokenizer_families import families  # noqa: E402
import seed  # noqa: E402

SCRIPTS = {"LATIN": 5, "CYRILLIC": 2, "GREEK": 1, "ARABIC": 1, "HEBREW": 1, "DEVANAGARI": 1, "BENGALI": 1, "TAMIL": 1, "THAI": 1,
           "HIRAGANA": 1, "KATAKANA": 1, "HANGUL": 1, "CJK": 2, "GEORGIAN": 1, "ETHIOPIC": 1}


def letters_of_scripts():
    found = {name: [] for name in SCRIPTS}
    for c in range(0x110000):
        char = chr(c)
        if unicodedata.category(char)[0] in "LM":
            script = unicodedata.name(char, "").split(" ")[0]
            if script in found:
                found[script].append(char)
    return {name: letters[:3000] for name, letters in found.items()}


def prose(rng, letters, size):
    """Sentences of made-up words of one script; common words come again and again, as in language."""
    alphabet = letters[rng.choices(list(SCRIPTS), list(SCRIPTS.values()))[0]]
    words = ["".join(rng.choice(alphabet[:60] if rng.random() < 0.9 else alphabet) for _ in range(rng.randint(1, 9))) for _ in range(300)]
    out, length = [], 0
    while length < size:
        word = words[min(int(rng.paretovariate(0.7)) - 1, len(words) - 1)]
        out.append(word + rng.choice([" ", " ", " ", " ", ", ", ". ", ".\n", "; ", " \u2014 ", "\u3002", "! ", " 123 ", "  "]))
        length += len(out[-1].encode())
    return "".join(out)


def long_run(rng):
    unit = rng.choice(["a", " ", "=", "-", "\n", "\t", "ab", "\u00e9", "\u4f60", "\U0001F600", "\u2581", "\x00", "\u0301", "0", "xyz ", "\u1112\u1161", "<s>"])
    return unit * rng.choice([50, 700, 5000, 40000])


def mixed_text(rng, size, code, letters, words):
    """Documents of about `size` bytes in all, as bytes, some of them not UTF-8."""
    made = 0
    while made < size:
        kind = rng.random()
        if kind < 0.3:
            text = rng.choice(code)
            at = rng.randrange(max(1, len(text) - 6000))
            text = text[at:at + rng.randint(200, 6000)]
        elif kind < 0.62:
            text = prose(rng, letters, rng.randint(100, 8000)).encode()
        elif kind < 0.75:
            text = random_text(rng, rng.randint(1, 60), words).encode()
        elif kind < 0.8:
            text = b"".join(random_text(rng, 3, words).encode() + b"\n" for _ in range(rng.randint(1, 30)))
        elif kind < 0.86:
            text = random_bytes(rng, rng.randint(1, 400))
        elif kind < 0.9:
            text = rng.randbytes(rng.randint(1, 3000))
        elif kind < 0.93:
            text = long_run(rng).encode() + random_text(rng, 2, words).encode()
        elif kind < 0.96:
            text = "".join(chr(rng.randrange(0x20)) for _ in range(rng.randint(1, 100))).encode()
        else:
            text = rng.choice(words + ["", " ", "  ", "\n", "a", " a", "a ", "\u2581", "\ufffd"]).encode()
        made += len(text)
        yield text


def peer_ids(family, peer, texts, special):
    if family.file.endswith(".json"):
        return [e.ids for e in peer.encode_batch(texts, add_special_tokens=special)]
    return peer.encode(texts, num_threads=2)


def compare(family, ours, folder, texts, report):
    path = folder / family.file
    path.write_bytes(family.content)
    peer = family.peer()
    before, began = report.mismatches, time.time()
    decoded = [t.decode(errors="replace") for t in texts]
    is_json = family.file.endswith(".json")
    sample = range(0, len(texts), max(1, len(texts) // 400))
    found = ours.encode(path, texts)
    expected = peer_ids(family, peer, decoded, False)
    for a, b, text in zip(found, expected, decoded):
        report.same(family.name, a, b, text[:200])
    if is_json:
        some = [texts[i] for i in sample]
        around = ours.encode(path, some, True)
        for a, b, text in zip(around, peer_ids(family, peer, [decoded[i] for i in sample], True), some):
            report.same(family.name + ", special tokens", a, b, text[:200])
        (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "PreTrainedTokenizerFast"}')
        auto = AutoTokenizer.from_pretrained(folder)
        for a, b, text in zip(around, auto([decoded[i] for i in sample])["input_ids"], some):
            report.same(family.name + ", transformers", a, b, text[:200])
    # Whole rows, and rows cut at both ends, which may begin and end inside characters.
    rows = [expected[i][:3000] for i in sample] + [expected[i][1:60] for i in sample]
    for a, row in zip(ours.decode(path, rows), rows):
        report.same(family.name + ", decode", a, peer.decode(row, skip_special_tokens=False) if is_json else peer.decode(row), row[:40])
    size = sum(map(len, texts))
    print(f"{family.name:45} {size / 1e6:6.2f} MB {sum(map(len, found)):9} ids {len(rows):5} rows decoded, "
          f"{report.mismatches - before} mismatches ({time.time() - began:.1f} s)", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", required=True)
    parser.add_argument("--bytes", type=int, default=300_000, help="of text per tokenizer")
    parser.add_argument("--only", default="", help="only families whose name has this in it")
    parser.add_argument("--seed", type=int, default=seed.seed())
    args = parser.parse_args()
    ours, report, rng, letters = Ours(args.helper), Report(), random.Random(args.seed), letters_of_scripts()
    code = stdlib(max(400_000, min(args.bytes, 8_000_000)))
    corpus = [t.decode() for t in stdlib(250_000)] + [prose(rng, letters, 4000) for _ in range(60)]
    # Most of the text is the same for all; the rest is full of what the tokenizer in question has special words for.
    common = list(mixed_text(rng, args.bytes, code, letters, ["<s>", "</s>", "<|endoftext|>"]))
    with tempfile.TemporaryDirectory() as folder:
        known = {family.name: family for family in families(corpus) if args.only in family.name}
        for name in known if args.only else seed.draw("families", known, 9):
            family = known[name]
            own = mixed_text(random.Random(args.seed), max(60_000, args.bytes // 50), code, letters, family.words)
            compare(family, ours, pathlib.Path(folder), common + list(own), report)
    print(f"result: {report.compared} comparisons, mismatches = {report.mismatches}")
    return 1 if report.mismatches or report.compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
