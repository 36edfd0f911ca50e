#!/usr/bin/env python3
"""Writes ostro/tokenizer/unicode/normalization_tables.inc: what the tokenizer's normalizers know of Unicode.

Like make_unicode_tables.py, everything is read out of the Hugging Face `tokenizers` library, because identical ids
need its release of Unicode: decompositions, compositions, combining classes, lower case and marks by normalising every
code point; grapheme clusters by a precompiled charsmap whose result shows what was one cluster (the classes come from
the `regex` package, and a code point that the library does not treat so is left out).
Usage: scripts/make_normalization_tables.py [--check]  (--check: fail if the file differs)
"""
import io
import pathlib
import sys
import tempfile
import unicodedata

import regex
import sentencepiece
import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

from make_unicode_tables import write_or_check

OUT = pathlib.Path(__file__).resolve().parent.parent / "ostro/tokenizer/unicode/normalization_tables.inc"
LIMIT = 0x110000
POINTS = [c for c in range(LIMIT) if not 0xD800 <= c < 0xE000]
HANGUL = range(0xAC00, 0xAC00 + 11172)
BLOCK = 128

# Bits of a record; normalization_data.h names the same ones. The low four are the grapheme class.
GRAPHEME = ["Other", "CR", "LF", "Control", "Extend", "ZWJ", "Regional_Indicator", "Prepend", "SpacingMark", "L", "V", "T",
            "LV", "LVT", "Pictographic"]
CONSONANT, LINKER = 1 << 4, 1 << 5
NFD, NFKD, NFC, NFKC, SECOND, LOWER, MARK, PUNCTUATION, DIGIT = (1 << i for i in range(6, 15))


def each(normalizer, points=POINTS):
    """What the normalizer makes of each code point on its own; a line end between them keeps them apart."""
    rows = normalizer.normalize_str("".join(chr(c) + "\n" for c in points if c != 0x0A)).split("\n")
    kept = [c for c in points if c != 0x0A]
    assert len(rows) == len(kept) + 1
    return dict(zip(kept, rows)) | {0x0A: "\n"}


def combining_classes(nfd):
    """Canonical combining class of every code point that the library reorders."""
    references = {}
    for c in POINTS:
        references.setdefault(unicodedata.combining(chr(c)), chr(c))
    del references[0]
    classes = sorted(references)

    def swapped(points, before, after):
        """Code points that change places: with a reference after them, or with one before them."""
        text = "".join("a" + before + chr(c) + after + "\n" for c in points)
        rows = normalizers.NFD().normalize_str(text).split("\n")
        return {c for c, row in zip(points, rows) if row != "a" + before + nfd[c] + after and row != ""}

    plain = [c for c in POINTS if nfd[c] == chr(c) and c != 0x0A and c not in HANGUL]
    low, high = references[classes[0]], references[classes[-1]]
    marks = sorted(swapped(plain, "", low) | swapped(plain, high, ""))
    out = dict.fromkeys(marks, classes[0])
    for here, above in zip(classes, classes[1:]):
        for c in swapped(marks, "", references[here]):
            out[c] = above
    return out


def charsmap(rules):
    """A precompiled charsmap of {text: replacement}, compiled by sentencepiece."""
    model = io.BytesIO()
    with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
        for key, value in rules.items():
            file.write(" ".join(f"{ord(c):X}" for c in key) + "\t" + " ".join(f"{ord(c):X}" for c in value) + "\n")
        file.flush()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(["a b c"] * 4), model_writer=model, model_type="char", vocab_size=7, hard_vocab_limit=False,
            normalization_rule_tsv=file.name, minloglevel=3)
    return find_field(find_field(model.getvalue(), 3), 2)  # ModelProto.normalizer_spec.precompiled_charsmap


def find_field(message, number):
    """The bytes of a length-delimited field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        if tag & 7 == 0:
            varint()
        elif tag & 7 == 5:
            at += 4
        elif tag & 7 == 1:
            at += 8
        else:
            size = varint()
            if tag >> 3 == number:
                return message[at:at + size]
            at += size
    raise ValueError(f"no field {number}")


def grapheme_classes():
    """Class of every code point that is not Other. A cluster of less than six bytes that begins with a key of the
    charsmap becomes the key's value as a whole, so what vanishes was in the cluster."""
    classes = {}
    for name in GRAPHEME[1:-1]:
        for c in map(ord, regex.findall(rf"\p{{Grapheme_Cluster_Break={name}}}", "".join(map(chr, POINTS)))):
            classes[c] = name
    for c in map(ord, regex.findall(r"\p{Extended_Pictographic}", "".join(map(chr, POINTS)))):
        classes.setdefault(c, "Pictographic")

    step = normalizers.Precompiled(charsmap({"A": "B"}))
    others = [c for c in POINTS if c not in (0x0A, 0x41)]
    rows = step.normalize_str("".join("A" + chr(c) + "\n" for c in others)).split("\n")
    joined = {c for c, row in zip(others, rows) if row == "B"}
    for c in joined:
        if classes.get(c) not in ("Extend", "ZWJ", "SpacingMark"):
            sys.exit(f"U+{c:04X} continues a cluster in tokenizers, but is {classes.get(c)} in regex")
    prepend = [c for c in classes if classes[c] == "Prepend"]
    step = normalizers.Precompiled(charsmap({chr(c): "B" for c in prepend}))
    rows = step.normalize_str("".join(chr(c) + "A\n" for c in prepend)).split("\n")
    before = {c for c, row in zip(prepend, rows) if row == "B"}
    for c, name in list(classes.items()):
        if (name in ("Extend", "ZWJ", "SpacingMark") and c not in joined) or (name == "Prepend" and c not in before):
            del classes[c]
    return classes


def indic():
    """InCB=Consonant and InCB=Linker, which join a syllable to one cluster."""
    text = "".join(map(chr, POINTS))
    found = []
    for value in ("Consonant", "Linker"):
        found.append(set(map(ord, regex.findall(rf"\p{{InCB={value}}}", text))))
    return found


def split_out(splitter):
    """Code points that a pre-tokenizer of behaviour "removed", or one that puts them on their own, finds."""
    kept = set()
    for piece, _ in splitter.pre_tokenize_str("".join(map(chr, POINTS))):
        kept.update(map(ord, piece))
    return set(POINTS) - kept


def digits():
    """Code points that the Digits pre-tokenizer takes for digits: it cuts between one and a letter."""
    pieces = pre_tokenizers.Digits().pre_tokenize_str("".join("a" + chr(c) for c in POINTS) + "a")
    starts = {begin for _, (begin, _) in pieces}
    return {c for i, c in enumerate(POINTS) if 2 * i + 1 in starts}


def rows(values, per_line, form="{}"):
    return "\n".join("    " + ", ".join(form.format(v) for v in values[i:i + per_line]) + "," for i in range(0, len(values), per_line))


def array(kind, name, values, per_line=24, form="{}"):
    return f"inline constexpr {kind} {name}[{len(values)}] = {{\n{rows(values, per_line, form)}\n}};"


def build():
    nfd, nfkd, nfc, nfkc = (each(n) for n in (normalizers.NFD(), normalizers.NFKD(), normalizers.NFC(), normalizers.NFKC()))
    lower = each(normalizers.Lowercase())
    bare = each(normalizers.StripAccents())
    ccc = combining_classes(nfd)
    graphemes = grapheme_classes()
    consonants, linkers = indic()
    punctuation = split_out(pre_tokenizers.Punctuation("removed"))
    numeric = digits()
    if split_out(pre_tokenizers.WhitespaceSplit()) != split_out(pre_tokenizers.Split(Regex(r"\s"), "removed")):
        sys.exit("WhitespaceSplit and \\s differ: unicode.h has one class for both")

    # Pairs: the composite of the whole decomposition, less its last code point, with that last one.
    pairs = {}
    for c in POINTS:
        if len(nfd[c]) > 1 and c not in HANGUL and normalizers.NFC().normalize_str(nfd[c]) == chr(c):
            first = normalizers.NFC().normalize_str(nfd[c][:-1])
            if len(first) == 1:
                pairs[(ord(first), ord(nfd[c][-1]))] = c
    for (a, b), c in pairs.items():
        if normalizers.NFC().normalize_str(chr(a) + chr(b)) != chr(c):
            sys.exit(f"U+{a:04X} U+{b:04X} does not compose to U+{c:04X}")
    seconds = {b for _, b in pairs} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))

    def bits(c):
        value = GRAPHEME.index(graphemes.get(c, "Other"))
        value |= CONSONANT * (c in consonants) | LINKER * (c in linkers)
        value |= NFD * (nfd[c] != chr(c)) | NFKD * (nfkd[c] != chr(c)) | NFC * (nfc[c] != chr(c)) | NFKC * (nfkc[c] != chr(c))
        return value | SECOND * (c in seconds) | LOWER * (lower[c] != chr(c)) | MARK * (bare[c] == "") \
            | PUNCTUATION * (c in punctuation) | DIGIT * (c in numeric)

    records, stage2_of, stage1 = {}, {}, []
    for start in range(0, LIMIT, BLOCK):
        block = tuple(records.setdefault((0, 0) if 0xD800 <= c < 0xE000 else (bits(c), ccc.get(c, 0)), len(records))
                      for c in range(start, start + BLOCK))
        stage1.append(stage2_of.setdefault(block, len(stage2_of)))
    assert len(records) < 256 and len(stage2_of) < 65536

    # Decompositions: canonical ones, then those that compatibility adds or changes. A canonical one equal to the
    # compatibility one is stored once.
    pool, places, keys = [], {}, {"Canonical": [], "Compatible": []}
    for name, table in (("Canonical", nfd), ("Compatible", nfkd)):
        for c in POINTS:
            if c in HANGUL or table[c] == chr(c) or (name == "Compatible" and table[c] == nfd[c]):
                continue
            if table[c] not in places:
                places[table[c]] = len(pool)
                pool.extend(map(ord, table[c]))
            assert len(table[c]) < 32
            keys[name].append((c, places[table[c]] << 5 | len(table[c])))

    # Lower case: runs of code points `stride` apart that move by the same distance.
    runs = []
    for c in POINTS:
        if lower[c] == chr(c) or len(lower[c]) > 1:
            continue
        delta = ord(lower[c]) - c
        if runs and runs[-1][3] == delta and runs[-1][0] == runs[-1][1] and c - runs[-1][1] <= 2:
            runs[-1] = [runs[-1][0], c, c - runs[-1][1], delta]
        elif runs and runs[-1][3] == delta and c - runs[-1][1] == runs[-1][2]:
            runs[-1][1] = c
        else:
            runs.append([c, c, 1, delta])
    if {c for c in POINTS if len(lower[c]) > 1} != {0x130}:
        sys.exit("another code point than U+0130 has a lower case of several")

    record_list = list(records)
    return "\n".join([
        "// Generated by scripts/make_normalization_tables.py; do not edit.",
        f"// Origin: what the normalizers of Hugging Face tokenizers {tokenizers.__version__} do, code point by code point:",
        f"//   {len(keys['Canonical'])} canonical and {len(keys['Compatible'])} compatibility decompositions beside Hangul's, {len(pairs)} pairs that compose,",
        f"//   {len(ccc)} code points with a combining class, {sum(r[3] != 0 for r in runs)} runs of upper-case letters, {len(graphemes)} with a grapheme class.",
        "// clang-format off",
        array("uint16_t", "kNormStage1", stage1),
        array("uint8_t", "kNormStage2", [v for block in stage2_of for v in block], 36),
        array("uint16_t", "kNormBits", [r[0] for r in record_list]),
        array("uint8_t", "kNormClass", [r[1] for r in record_list]),
        array("uint32_t", "kDecomposed", pool, 20),
        *(text for name in keys for text in (
            array("uint32_t", f"k{name}Keys", [k for k, _ in keys[name]], 20),
            array("uint32_t", f"k{name}Places", [p for _, p in keys[name]], 20))),
        array("uint64_t", "kComposedKeys", [a << 32 | b for a, b in sorted(pairs)], 10),
        array("uint32_t", "kComposed", [pairs[p] for p in sorted(pairs)], 20),
        array("LowerRun", "kLowerRuns", ["{%d, %d, %d, %d}" % tuple(r) for r in runs], 6),
        "// clang-format on", ""])


if __name__ == "__main__":
    write_or_check(OUT, build, __doc__)
