#!/usr/bin/env python3
"""Compares our tokenizer with Hugging Face `tokenizers`: ids, decoded text, trained merges, files both ways.

(a) tokenizers trained by Hugging Face (GPT-2 style, Llama-3 style, and variants of every flag we read) are loaded by
    ours and must give the same ids on every text;
(b) tokenizers trained by ours must load there (and in transformers' AutoTokenizer, when it is installed), give the
    same ids, and have the same merges as Hugging Face's own trainer finds.
Texts: the Python standard library, generated text of many scripts, emoji, control characters, runs of spaces, random
bytes, and >= 20,000 random strings per tokenizer. A sampled run (tests/suite/seed.py) takes three of the variants of (a)
and a shorter corpus. Usage: check_tokenizer.py --helper build/.../tokenizer_cli_helper
"""
import argparse
import json
import pathlib
import random
import resource
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "suite"))
import seed
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
EOT = "<|endoftext|>"
SPACES = " \t\n\r\x0b\x0c\x85\xa0\u1680\u180e\u2000\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"
CONTRACTIONS = ["'s", "'S", "'\u017f", "'t", "'T", "'re", "'RE", "'Re", "'ve", "'vE", "'m", "'M", "'ll", "'LL", "'lL", "'d",
                "'D", "'", "''", "\u2019s", "'\u212a", "'l", "'r", "'v", "'\u017ft"]
SCRIPTS = [(0x41, 0x5A), (0x61, 0x7A), (0x30, 0x39), (0xC0, 0x24F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF),
           (0x590, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x1C80, 0x1C8F), (0x2070, 0x209F), (0x2150, 0x218B), (0x2460, 0x24FF),
           (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFE00, 0xFE0F), (0x105C0, 0x105FF), (0x10940, 0x1095F),
           (0x16D40, 0x16D7F), (0x1D400, 0x1D7FF), (0x1F300, 0x1F6FF), (0x1F9B0, 0x1F9FF), (0x20000, 0x2A6DF)]


class Ours:
    """The helper program, one process per batch of texts."""

    def __init__(self, helper):
        self.helper = helper

    def run(self, *args, data=b""):
        result = subprocess.run([self.helper, *map(str, args)], input=data, capture_output=True, check=False)
        if result.returncode != 0:
            sys.exit(f"{' '.join(map(str, args))}: {result.stderr.decode(errors='replace')}")
        return result.stdout

    @staticmethod
    def pack(texts):
        return b"".join(struct.pack("<I", len(t)) + t for t in texts)

    def encode(self, path, texts, special=False):
        out = self.run("encode", path, *(["special"] if special else []), data=self.pack(texts))
        ids, at = [], 0
        for _ in texts:
            (n,) = struct.unpack_from("<I", out, at)
            ids.append(list(struct.unpack_from(f"<{n}I", out, at + 4)))
            at += 4 + 4 * n
        assert at == len(out)
        return ids

    def decode(self, path, rows):
        out = self.run("decode", path, data=b"".join(struct.pack(f"<I{len(r)}I", len(r), *r) for r in rows))
        texts, at = [], 0
        for _ in rows:
            (n,) = struct.unpack_from("<I", out, at)
            texts.append(out[at + 4:at + 4 + n].decode())
            at += 4 + n
        return texts


def stdlib(limit):
    files, total = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        data = path.read_bytes()
        files.append(data)
        total += len(data)
        if total > limit:
            break
    return files


def random_text(rng, length, specials=()):
    parts = []
    for _ in range(length):
        kind = rng.random()
        if kind < 0.35:
            low, high = rng.choice(SCRIPTS)
            parts.append("".join(chr(rng.randint(low, high)) for _ in range(rng.randint(1, 4))))
        elif kind < 0.55:
            parts.append(rng.choice(SPACES) * rng.randint(1, 4) if rng.random() < 0.5 else " ")
        elif kind < 0.65:
            parts.append(rng.choice(CONTRACTIONS))
        elif kind < 0.75:
            parts.append(rng.choice(["the", " of", "def ", "self.", "hello", " world", "return", "import "]))
        elif kind < 0.8:
            parts.append(chr(rng.randint(0, 0x9F)))
        elif kind < 0.85:
            parts.append(chr(rng.choice([rng.randint(0, 0xD7FF), rng.randint(0xE000, 0x10FFFF)])))
        elif kind < 0.9:
            parts.append("".join(rng.choice("!?.,;:()[]{}+-*/=<>|&^%$#@~`\"\\_\n\r") for _ in range(rng.randint(1, 5))))
        elif kind < 0.95 and specials:
            parts.append(rng.choice(specials))
        else:
            parts.append(rng.choice(["\U0001F469\u200d\U0001F4BB", "\U0001F1E9\U0001F1EA", "e\u0301", "\u4f60\u597d", "\u0645\u0631"]))
    return "".join(parts)


def random_bytes(rng, length):
    pool = [b"a", b" ", b"\n", b"\xc3", b"\xa9", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\xc0\xaf",
            b"\xf4\x90\x80\x80", b"\xff", b"\x80", b"\xe0\x80", b"\xf8\x88\x80\x80\x80"]
    return b"".join(bytes([rng.randrange(256)]) if rng.random() < 0.5 else rng.choice(pool) for _ in range(length))


def test_texts(rng, fuzz, specials):
    texts = stdlib(1_500_000)
    texts += [b"", b" ", b"  ", b"a", b"\n", b" \n \n", b"'s", b"x" * 5000, b" " * 5000, "\u00e9".encode() * 3000, b"ab" * 3000, b"=" * 3000,
              b"1" * 1000, "\n".join(CONTRACTIONS).encode(), "".join(SPACES).encode()]
    texts += [("a" + a + b + "b" + a + b + "\n").encode() for a in SPACES for b in SPACES]
    texts += [random_text(rng, rng.randint(1, 24), specials).encode() for _ in range(fuzz)]
    texts += [random_bytes(rng, rng.randint(1, 40)) for _ in range(fuzz // 4)]
    texts += [random_text(rng, 3000, specials).encode() for _ in range(20)]
    return texts


def hf_tokenizer(style, vocab_size, corpus, alphabet=True, specials=(EOT,)):
    tokenizer = Tokenizer(models.BPE())
    if style == "gpt2":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
            pre_tokenizers.Split(Regex(LLAMA3), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, special_tokens=list(specials), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if alphabet else [])
    tokenizer.train_from_iterator((t.decode(errors="replace") for t in corpus), trainer)
    return tokenizer


def edited(tokenizer, edit):
    """The tokenizer with its JSON changed by edit(dict)."""
    content = json.loads(tokenizer.to_str())
    edit(content)
    return json.dumps(content)


def variants(corpus):
    """(name, tokenizer.json text, strings that are special in it)."""
    gpt2 = hf_tokenizer("gpt2", 4000, corpus)
    llama3 = hf_tokenizer("llama3", 4000, corpus, specials=("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"))
    yield "gpt2", gpt2.to_str(), [EOT]
    yield "gpt2 without an initial alphabet", hf_tokenizer("gpt2", 1000, corpus[:40], alphabet=False).to_str(), [EOT]

    def old_file(content):
        content["model"]["merges"] = [" ".join(m) if isinstance(m, list) else m for m in content["model"]["merges"]]
        content["model"]["continuing_subword_prefix"] = ""
        content["model"]["end_of_word_suffix"] = ""
        content["pre_tokenizer"]["add_prefix_space"] = True

    yield "gpt2, merges as strings, prefix space", edited(gpt2, old_file), [EOT]

    llama3.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=False),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", pair="<|begin_of_text|> $A $B",
                                      special_tokens=[("<|begin_of_text|>", llama3.token_to_id("<|begin_of_text|>"))])])

    def ignore_merges(content):
        content["model"]["ignore_merges"] = True
        vocab = content["model"]["vocab"]
        for token in ["\u0120helloworld", "\u0120\u00e9\u00a9", "qqqq", "\u0120\u0120\u0120\u0120\u0120x"]:  # no merge makes these
            if token not in vocab:
                vocab[token] = len(vocab)
        for word in ["'S", "hello", "def"]:
            vocab.setdefault(word, len(vocab))

    llama3_specials = ["<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>", " helloworld", "qqqq"]
    yield "llama3", llama3.to_str(), llama3_specials
    yield "llama3, ignore_merges", edited(llama3, ignore_merges), llama3_specials

    # Two sets of flags: a token that begins with spaces after one that strips spaces to its right makes Hugging Face
    # panic ("bad split"), so they are not mixed.
    near = ["word", "wordy", "hello", "\u00e9\u00e9", "\u4f60", "W", "  ", "\u00a0", "\n", "_", "\u0301", "\u203f", "\u200d", "\u24b6"]
    right = Tokenizer.from_str(llama3.to_str())
    right.add_special_tokens([AddedToken("<L>", lstrip=True), AddedToken("<R>", rstrip=True),
                              AddedToken("<LR>", lstrip=True, rstrip=True), AddedToken("<|eot_id|>x")])
    right.add_tokens([AddedToken("word", single_word=True, normalized=True), AddedToken("wordy", normalized=False),
                      AddedToken("<L><R>", normalized=True), AddedToken("\u4f60", rstrip=True, single_word=True)])
    yield "llama3, added tokens that strip", right.to_str(), llama3_specials + near + ["<L>", "<R>", "<LR>", "<|eot_id|>x", "<L><R>"]
    left = Tokenizer.from_str(llama3.to_str())
    left.add_special_tokens([AddedToken("<W>", single_word=True), AddedToken("  <S", normalized=False)])
    left.add_tokens([AddedToken("hello", normalized=True, lstrip=True), AddedToken("\u00e9\u00e9"), AddedToken(" spaced ", normalized=False),
                     AddedToken("\n\n", lstrip=True), AddedToken("W", single_word=True, lstrip=True, normalized=False)])
    yield "llama3, added tokens with spaces", left.to_str(), llama3_specials + near + ["<W>", "  <S", " spaced ", "\n\n"]


class Report:
    def __init__(self):
        self.compared = self.mismatches = 0

    def same(self, what, ours, theirs, show):
        self.compared += 1
        if ours != theirs:
            self.mismatches += 1
            if self.mismatches <= 10:
                print(f"MISMATCH {what}: {show!r}\n  ours   {ours[:40]}\n  theirs {theirs[:40]}")


def compare(name, ours, path, theirs, texts, report):
    before, began = report.mismatches, time.time()
    decoded = [t.decode(errors="replace") for t in texts]
    for special in (False, True):
        expected = [e.ids for e in theirs.encode_batch(decoded, add_special_tokens=special)]
        found = ours.encode(path, texts, special)
        for a, b, text in zip(found, expected, decoded):
            report.same(name, a, b, text[:200])
    rows = [r[:60] for r in found]  # cut rows end inside characters: decoding must repair them alike
    for a, row in zip(ours.decode(path, rows), rows):
        report.same(name + ", decode", a, theirs.decode(row, skip_special_tokens=False), row[:40])
    print(f"{name}: {len(texts)} texts, {report.mismatches - before} mismatches ({time.time() - began:.1f} s)", flush=True)


def check_trained(ours, style, corpus, texts, folder, report):
    vocab_size = 4096
    trained = ours.run("train", vocab_size, style, 1, data=ours.pack(corpus))
    if ours.run("train", vocab_size, style, 3, data=ours.pack(reversed(corpus))) != trained:
        sys.exit(f"{style}: training depends on the order of documents or the number of threads")
    target = folder / f"ours-{style}"
    target.mkdir()
    path = target / "tokenizer.json"
    path.write_bytes(trained)
    theirs = Tokenizer.from_file(str(path))
    compare(f"ours, {style}", ours, path, theirs, texts, report)
    reference = hf_tokenizer(style, vocab_size, corpus)
    a, b = json.loads(trained)["model"], json.loads(reference.to_str())["model"]
    report.same(f"{style} merges", a["merges"], b["merges"], "trained")
    report.same(f"{style} vocabulary", sorted(a["vocab"].items()), sorted(b["vocab"].items()), "trained")
    print(f"ours, {style}: {len(a['merges'])} merges and the vocabulary compared with Hugging Face's trainer")
    check_auto_tokenizer(ours, path, texts, report)


def check_auto_tokenizer(ours, path, texts, report):
    try:
        from transformers import AutoTokenizer
    except ImportError:
        print("transformers is not installed: AutoTokenizer not compared")
        return
    (path.parent / "tokenizer_config.json").write_bytes(ours.run("config", path))
    auto = AutoTokenizer.from_pretrained(str(path.parent))
    report.same("eos", [auto.eos_token, auto.eos_token_id], [EOT, 0], "eos_token")
    decoded = [t.decode(errors="replace") for t in texts[-3000:]]
    found = ours.encode(path, texts[-3000:])
    for a, text, back in zip(found, decoded, ours.decode(path, found)):
        report.same("AutoTokenizer", a, auto(text, add_special_tokens=False)["input_ids"], text[:200])
        report.same("AutoTokenizer decode", back, auto.decode(a), a[:40])
    print(f"AutoTokenizer ({type(auto).__name__}): {len(found)} texts compared")


def check_long(ours, path, report):
    theirs = Tokenizer.from_file(str(path))
    for name, unit in [("letter", b"a"), ("space", b" "), ("bang", b"!"), ("cyrillic", "\u0430".encode()), ("indent", b" \n"), ("alphabet", b"abcdefghij")]:
        text = unit * ((1 << 20) // len(unit))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        (ids,) = ours.encode(path, [text])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if seconds > 5:  # of CPU time, whatever else the machine does
            report.mismatches += 1
        report.same("1 MiB", ids, theirs.encode(text.decode(), add_special_tokens=False).ids, name)
        print(f"1 MiB of one {name}: {seconds * 1000:.0f} ms of CPU time with loading, {len(ids)} ids")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--helper", required=True)
    parser.add_argument("--fuzz", type=int, default=20_000, help="random strings per tokenizer")
    parser.add_argument("--seed", type=int, default=seed.seed())
    args = parser.parse_args()
    ours, rng, report = Ours(args.helper), random.Random(args.seed), Report()
    corpus = stdlib(3_000_000 if seed.full() else 800_000) + [random_text(rng, 2000).encode() for _ in range(60)] + [random_bytes(rng, 2000) for _ in range(20)]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        made = {label: (content, specials) for label, content, specials in variants(corpus)}
        for i, label in enumerate(seed.draw("variants", made, 3)):
            content, specials = made[label]
            path = folder / f"{i}.json"
            path.write_text(content)
            compare(label, ours, path, Tokenizer.from_str(content), test_texts(rng, args.fuzz, specials), report)
        texts = test_texts(rng, args.fuzz, [EOT])
        for style in ("gpt2", "llama3"):
            check_trained(ours, style, corpus, texts, folder, report)
            check_long(ours, folder / f"ours-{style}/tokenizer.json", report)
    print(f"result: {report.compared} comparisons, mismatches = {report.mismatches}")
    return 1 if report.mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
