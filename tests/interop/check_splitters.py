#!/usr/bin/env python3
"""Compares our splitters with the regular expressions they stand for, piece by piece.

The judge is Hugging Face `tokenizers` (Split, Isolated), on random strings over all Unicode classes, runs around the
window of the fast form, and the Python standard library. With --regex the module `regex` judges too, on the strings
without characters newer than its Unicode release. Usage: check_splitters.py --helper build/.../tokenizer_cli_helper
"""
import argparse
import pathlib
import random
import struct
import subprocess
import sys
import sysconfig
import time
import unicodedata

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed
from tokenizers import Regex, pre_tokenizers

END = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
FOLDED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
PREFIX = r"[^\r\n\p{L}\p{N}]?"
OTHER = r"| ?[^\s\p{L}\p{N}]+[\r\n"
PATTERNS = {
    "gpt2": r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    "llama3": FOLDED + "|" + PREFIX + r"\p{L}+|\p{N}{1,3}" + OTHER + "]*" + END,
    "cl100k": r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
              r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
    "qwen2": FOLDED + "|" + PREFIX + r"\p{L}+|\p{N}" + OTHER + "]*" + END,
    "qwen3.5": FOLDED + "|" + PREFIX + r"[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*" + END,
    "tekken": PREFIX + UPPER + "*" + LOWER + "+|" + PREFIX + UPPER + "+" + LOWER + r"*|\p{N}" + OTHER + "/]*" + END,
    "o200k": PREFIX + UPPER + "*" + LOWER + "+" + FOLDED + "?|" + PREFIX + UPPER + "+" + LOWER + "*" + FOLDED
             + r"?|\p{N}{1,3}" + OTHER + "/]*" + END,
}


def cased_letters():
    """Ranges of all letters with case, as DeepSeek-V2's file has them."""
    cased = [c for c in range(0x250) if unicodedata.category(chr(c)) in ("Lu", "Ll", "Lt")]
    first = [c for c in cased if c - 1 not in cased]
    return "".join(f"{chr(a)}-{chr(next(c for c in range(a, 0x251) if c not in cased) - 1)}" for a in first)


# What has no code of its own: the expressions of DeepSeek-V3, V2 and Coder.
PATTERNS |= {
    "three digits": r"\p{N}{1,3}",
    "deepseek v3": r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
                   r"""| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+""",
    "kana": "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+",
    "deepseek v2": rf"\s?[{cased_letters()}]+",
    "signs": "\\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+",
    "end": r"\s+$",
    "cjk": "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+",
    "coder": r"\s?\p{L}+",
    "line ends": "[\r\n]",
}
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u180e\u2000\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff\x1c\x1f"
# Of every general category a few, so that each class meets each other one in short strings.
CATEGORIES = {}
for c in range(0x110000):
    if not 0xD800 <= c < 0xE000:
        CATEGORIES.setdefault(unicodedata.category(chr(c)), []).append(chr(c))
ASCII_RUNS = ["a", "b", "Z", "Q", "0", "7", "!", "/", "'", " ", "\n", "\r", "\t", "_"]
CONTRACTIONS = ["'s", "'S", "'\u017f", "'T", "'re", "'RE", "'Ve", "'m", "'ll", "'lL", "'D", "'", "''", "'\u212a", "'l", "'r", "'v"]


def random_text(rng, length):
    parts = []
    while len(parts) < length:
        kind = rng.random()
        if kind < 0.4:
            parts.append(rng.choice(CATEGORIES[rng.choice(list(CATEGORIES))]))
        elif kind < 0.5:
            parts.append(rng.choice(SPACES) * rng.randint(1, 3))
        elif kind < 0.58:
            parts.append(rng.choice(CONTRACTIONS))
        elif kind < 0.62:
            parts.append(rng.choice(ASCII_RUNS) * rng.randint(1, 70))
        elif kind < 0.8:
            parts.append("".join(rng.choice(ASCII_RUNS) for _ in range(rng.randint(1, 6))))
        elif kind < 0.9:
            parts.append(rng.choice([" the", "don't", "HTTPServer", "fooBar", " I'LL", "x1234567", "a/b//\n", " \n \n"]))
        else:
            parts.append("".join(rng.choice(CATEGORIES[rng.choice(["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc"])])
                                 for _ in range(rng.randint(1, 5))))
    return "".join(parts)


def ours(helper, regex, texts):
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    out = subprocess.run([helper, "split", regex], input=data, capture_output=True, check=True).stdout
    at, found = 0, []
    for _ in texts:
        (n,) = struct.unpack_from("<I", out, at)
        found.append(list(struct.unpack_from(f"<{n}I", out, at + 4)))
        at += 4 + 4 * n
    return found


def ends_of(pieces):
    ends, at = [], 0
    for piece in pieces:
        at += len(piece.encode())
        ends.append(at)
    return ends


def compare(judge, regex, texts, found, cut):
    mismatches = 0
    for text, ends in zip(texts, found):
        expected = ends_of(cut(text))
        if ends != expected:
            mismatches += 1
            if mismatches <= 3:
                print(f"MISMATCH {regex} by {judge}: {text[:120]!r}\n  ours   {ends[:30]}\n  theirs {expected[:30]}")
    return mismatches


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", required=True)
    parser.add_argument("--fuzz", type=int, default=20_000, help="random strings per pattern")
    parser.add_argument("--seed", type=int, default=seed.seed())
    parser.add_argument("--regex", action="store_true", help="ask the module regex, too")
    args = parser.parse_args()
    rng, total, compared = random.Random(args.seed), 0, 0
    files = sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:40]
    real = [f.read_text(errors="replace")[:20_000] for f in files]
    for name, regex in PATTERNS.items():
        began = time.time()
        texts = real + [random_text(rng, rng.randint(1, 12)) for _ in range(args.fuzz)]
        texts += [random_text(rng, 400) for _ in range(args.fuzz // 100)]
        found = ours(args.helper, regex, [t.encode() for t in texts])
        split = pre_tokenizers.Split(Regex(regex), behavior="isolated")
        bad = compare(f"tokenizers ({name})", regex, texts, found,
                      lambda t: [t[a:b] for _, (a, b) in split.pre_tokenize_str(t)])
        compared += len(texts)
        # There "{1,3}+" is a possessive interval, to tokenizers a repeated one.
        if args.regex and name != "cl100k":
            import regex as module
            compiled = module.compile(regex)
            old = [(t, e) for t, e in zip(texts, found) if all(unicodedata.category(c) != "Cn" for c in t) and "\u180e" not in t]
            bad += compare(f"regex ({name})", regex, [t for t, _ in old], [e for _, e in old],
                           lambda t: [m.group() for m in compiled.finditer(t)])
            compared += len(old)
        total += bad
        print(f"{name}: {len(texts)} texts, {bad} mismatches ({time.time() - began:.1f} s)", flush=True)
    print(f"result: {compared} comparisons, mismatches = {total}")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
