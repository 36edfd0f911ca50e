#!/usr/bin/env python3
"""The text of answers of `ostro serve`, for the tokenizers that models are trained with (tokenizer_families.py): models of random
weights make random ids, and so bytes of many scripts that are cut anywhere.

What arrives in pieces is the whole answer, which is what `tokenizers` or `sentencepiece` decode of all ids, as /detokenize does; a piece is whole
characters; a stop string cuts where one pass over the whole text cuts, and no part of it arrives.
For every tokenizer, the stream of texts alone gets drawn ids by text_stream_helper (text_streams.py): 20,000 answers each, and 2,000 cut by stop strings.
Usage: check_serve_text.py --ostro build/.../ostro --helper build/.../text_stream_helper [--only WORD] [--log FILE]. A sampled run has
two tokenizers served, and takes 100 answers of each.
"""
import argparse
import contextlib
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import types

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))

from check_tokenizer import stdlib
from check_tokenizer_families import letters_of_scripts, prose
from serve_load import LoadServer, Log, environment
from tiny_run import Report
from text_streams import check_streams, cut, drawn_stops
from tokenizer_families import families

import seed


class TextCheck:
    def __init__(self, family, server, report):
        self.family, self.server, self.report = family, server, report
        self.peer, self.is_json = family.peer(), family.file.endswith(".json")
        self.size = self.peer.get_vocab_size() if self.is_json else self.peer.get_piece_size()
        self.by_bytes = b"<0x00>" in family.content
        self.stopped = self.broken = self.compared = 0

    def decoded(self, ids):
        return self.peer.decode(ids, skip_special_tokens=True) if self.is_json else self.peer.decode(ids)

    def streamed(self, fields):
        """The pieces of an answer, and why it ended."""
        choices = [event["choices"][0] for event in self.server.events("/v1/completions", **fields) if event["choices"]]
        return [c["text"] for c in choices], choices[-1]["finish_reason"]

    def one(self, rng):
        prompt = [rng.randrange(self.size) for _ in range(rng.randint(1, 4))]
        fields = {"prompt": prompt, "max_tokens": rng.randint(1, rng.choice((8, 60))), "seed": rng.randint(0, 2**53), "temperature": 2, "return_token_ids": True}
        whole = self.server.complete(**fields)["choices"][0]
        ids, text = whole["token_ids"], whole["text"]
        pieces, finish = self.streamed(fields)
        before, every = self.decoded(prompt), self.decoded(prompt + ids)
        # Where the prompt's text ends inside of a character, or is changed by what follows, the answer has no text of its own. With
        # byte fallback, peers write U+FFFD for every byte of a run that is not all text, which nobody can know before its end.
        if every.startswith(before) and not before.endswith("\ufffd") and not (self.by_bytes and "\ufffd" in every):
            self.same(text, every[len(before):], f"decoded of {prompt} + {ids}")
            self.compared += 1
            self.broken += "\ufffd" in text
        every = self.peer.decode(prompt + ids, skip_special_tokens=False) if self.is_json else every
        self.same(self.server.post("/detokenize", {"tokens": prompt + ids})["prompt"], every, f"/detokenize of {prompt} + {ids}")
        self.same("".join(pieces), text, f"in pieces, {prompt}, {ids}")
        self.same(finish, whole["finish_reason"], "the reason")
        if not text:
            return
        # One with U+FFFD may come to be by the end of the answer, whose reason stays the length.
        stops = [stop for stop in drawn_stops(rng, text) if stop not in self.family.words and "\ufffd" not in stop]
        if not stops:
            return
        expected = cut(text, stops)
        pieces, finish = self.streamed(fields | {"stop": stops})
        for count in range(len(pieces) + 1):
            self.report_if(not expected.startswith("".join(pieces[:count])), f"{stops} leak: {pieces[:count]}, the text is {text!r}")
        self.same("".join(pieces), expected, f"cut at {stops} of {text!r}")
        self.same(self.server.complete(**(fields | {"stop": stops}))["choices"][0]["text"], expected, f"whole, cut at {stops} of {text!r}")
        self.same(finish, "stop" if expected != text else whole["finish_reason"], f"the reason at {stops}")
        self.stopped += expected != text

    def same(self, got, expected, what):
        self.report_if(got != expected, f"{what}: {got!r}, expected {expected!r}")

    def report_if(self, wrong, what):
        if wrong:
            self.report.check(False, f"{self.family.name}: {what}"[:1500])


def check_family(family, ostro, folder, report, log):
    path = folder / family.file
    path.write_bytes(family.content)
    (folder / "text.txt").write_text("some text, not much of it\n" * 400)
    (folder / "config.yaml").write_text(json.dumps({
        "data": {"tokenizer": str(path), "enforce_eos": False, "cache_dir": str(folder / "cache"), "train_urls": [str(folder / "text.txt")]},
        "model": {"type": "llama", "seq_len": 96, "hidden_dim": 16, "intermediate_dim": 32, "num_layers": 1, "num_heads": 2, "num_kv_heads": 2},
        "optimizer": {"type": "adam", "learning_rate": 0.001},
        "trainer": {"id": "served", "log_dir": str(folder / "runs"), "mp": "p=f32,c=f32", "train_batch_size": 2, "num_train_steps": 1, "steps_per_eval": 0},
    }))  # JSON is YAML
    done = subprocess.run([ostro, "train", "--config", folder / "config.yaml"], cwd=folder, env=environment(OSTRO_ISA="generic"), capture_output=True, text=True, check=False)
    if done.returncode:
        report.check(False, f"{family.name}: train: {done.stderr}")
        return 0
    place = types.SimpleNamespace(ostro=str(ostro), folder=folder)
    with contextlib.closing(LoadServer(place, model="runs/served", OSTRO_ISA="generic")) as server:
        checks = TextCheck(family, server, report)
        rounds, failed = 40 if seed.full() else 8, report.failed
        for number in range(rounds):
            checks.one(random.Random(f"{seed.seed()} {family.name} {number}"))
        server.stop()
    said = (f"{family.name}: {rounds} answers in pieces, {checks.compared} compared with its peer's text, {checks.broken} with bytes that are no text, "
            f"{checks.stopped} cut by a stop string, {report.failed - failed} wrong")
    report.check(report.failed == failed, said)
    log.lines.append(said)
    return checks.stopped


def check_alone(known, helper, folder, report, log):
    """The stream of texts, without a server, for all tokenizers."""
    totals = [0] * 6
    for family in known.values():
        failed, path = report.failed, folder / family.file
        path.write_bytes(family.content)

        def same(got, expected, what, name=family.name):
            if got != expected:
                report.check(False, f"{name}: {what}: {got!r}, expected {expected!r}"[:1500])

        counts = check_streams(family, helper, path, same)
        totals = [a + b for a, b in zip(totals, counts, strict=True)]
        path.unlink()
        report.check(report.failed == failed, f"{family.name}: {counts[0]} answers in pieces, {report.failed - failed} wrong")
    said = "{} answers of drawn ids in pieces, {} compared with peers' texts, {} other than their tokens one by one, {} with bytes that are no text; {} stop strings, {} answers cut".format(*totals)
    report.check(min(totals) > 0, f"{len(known)} tokenizers: {said}")
    log.lines.append(f"{len(known)} tokenizers: {said}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--helper", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    ostro, report, log = pathlib.Path(args.ostro).resolve(), Report(), Log(args.log, "Texts of a server")
    rng, letters = random.Random(seed.seed()), letters_of_scripts()
    corpus = [t.decode() for t in stdlib(60_000)] + [prose(rng, letters, 4000) for _ in range(20)]
    known = {family.name: family for family in families(corpus) if args.only in family.name}
    with tempfile.TemporaryDirectory() as folder:
        check_alone(known, args.helper, pathlib.Path(folder), report, log)
    stopped = 0
    for name in known if args.only else seed.draw("families", known, 2):
        with tempfile.TemporaryDirectory() as folder:
            stopped += check_family(known[name], ostro, pathlib.Path(folder), report, log)
    report.check(stopped > 0, f"{stopped} answers were cut")
    log.write()
    report.finish()


if __name__ == "__main__":
    main()
