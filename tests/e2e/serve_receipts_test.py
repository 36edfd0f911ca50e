#!/usr/bin/env python3
"""Receipts of answers that `ostro serve` made under load: all are computed again with another instruction set and number of
threads, every kind of forgery is named, and a byte that was changed is found.

    serve_receipts_test.py --ostro BINARY [--only PART] [--log FILE]
"""
import concurrent.futures
import copy
import hashlib
import json
import random
import struct
import subprocess

import serve_load
from program import check
from serve_load import LoadServer, environment, seed, serving
from serve_test import KEY, PUBLIC

OTHER_KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIEzNCJb/mzvbpv3Rbu+rOmwbpg9njqeXlvW7nqKg+Z5P\n-----END PRIVATE KEY-----\n"


def answers(place, count, folder, *words):
    """The documents of `count` answers, asked twelve at a time, some from a nonce."""
    with serving(LoadServer(place, "--receipts", folder, *words)) as server:
        def ask(i):
            fields = place.fields(random.Random(f"{seed.seed()} {i}"), receipt=True, top_k=(0, 5, 40)[i % 3], n=1 + (i % 9 == 8))
            if i == 1:  # what forgeries are made of
                fields |= {"temperature": 1.2, "top_k": 0, "max_tokens": 16}
            if i % 4 == 0:
                del fields["seed"]
                fields["nonce"] = f"lottery {i}"
            return [choice["receipt"] for choice in server.complete(**fields)["choices"]]

        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            out = [document for documents in pool.map(ask, range(count)) for document in documents][:count]
        server.stop()
    return out


def replayed(place, log):
    """A log with the openings of all: each is chosen again."""
    count = 200 if seed.full() else 24
    (place.folder / "key.pem").write_text(KEY)
    (place.folder / "pub.pem").write_text(PUBLIC)
    place.documents = answers(place, count, "log", "--sign", "key.pem")
    openings = place.folder / "openings"
    openings.mkdir()
    total = len((place.folder / "log/receipts.jsonl").read_text().splitlines())
    for document in place.documents:
        (openings / f"{document['receipt']['number']}.json").write_text(json.dumps(document))
    settings = [{"OSTRO_ISA": "generic", "OSTRO_THREADS": "1"}, {"OSTRO_ISA": "avx2", "OSTRO_THREADS": "3"}, {}]
    for setting in settings if seed.full() else settings[:1]:
        said = json.loads(place.program("verify", "--receipts", "log/receipts.jsonl", "--sample", str(total), "--challenge", "all", "--checkpoint", "runs/long",
                                        "--openings", "openings", "--key", "pub.pem", "--json", code=0 if total == count else 3, **setting))
        check(said["replayed"] == count and len(said["findings"]) == total - count, f"{setting}: {str(said)[:500]}")
        log.say(f"{said['replayed']} answers made twelve at a time, {said['output_tokens']} tokens, chosen again with {setting or 'the same settings'}: equal")


def forged(document, change, nonce=False):
    """Changed, with the hashes that anyone can compute, and not signed; without its nonce, from which the seed is checked first."""
    out = copy.deepcopy(document)
    receipt, opening = out["receipt"], out["opening"]
    receipt["key"] = ""
    out.pop("signature"), out.pop("public_key")
    receipt["nonce"] = receipt["nonce"] if nonce else ""
    change(receipt, opening)
    for name in ("prompt", "output"):
        ids = opening[f"{name}_ids"]
        receipt[name] = hashlib.sha256(f"{name}\n{opening['salt']}\n{','.join(map(str, ids))}\n".encode()).hexdigest()
        receipt[f"{name}_tokens"] = len(ids)
    receipt["log_probs"] = hashlib.sha256(b"".join(struct.pack("<f", v) for v in opening["log_probs"])).hexdigest()
    return out


def next_f32(value):
    return struct.unpack("<f", struct.pack("<I", struct.unpack("<I", struct.pack("<f", value))[0] + 1))[0]


FORGERIES = [
    ("a token", lambda r, o: o["output_ids"].__setitem__(2, o["output_ids"][2] ^ 1), "at token 2 of the answer: it is"),
    ("the seed", lambda r, o: r.update(seed=str(int(r["seed"]) + 1)), "this checkpoint chooses"),
    ("the temperature", lambda r, o: r["options"].update(temperature=0.02), "this checkpoint chooses"),
    ("a log-probability", lambda r, o: o["log_probs"].__setitem__(1, next_f32(o["log_probs"][1])), "at token 1 of the answer: its log-probability is"),
    ("the checkpoint", lambda r, o: r.update(state="0" * 64), "the checkpoint's state is 0000"),
    ("the template", lambda r, o: r.update(chat_template="1" * 64), "the chat template is 1111"),
    ("the tokenizer", lambda r, o: r.update(tokenizer="2" * 64), "the tokenizer is 2222"),
    ("the prompt", lambda r, o: o["prompt_ids"].__setitem__(-1, o["prompt_ids"][-1] ^ 1), "of the answer"),
    ("the finish", lambda r, o: r.update(finish="stop_token"), 'the answer ends by "stop_token"'),
    ("the length", lambda r, o: (o["output_ids"].pop(), o["log_probs"].pop()), "the answer ends by"),
]


def forgeries(place, log):
    def verdict(document, code, says, *words):
        (place.folder / "r.json").write_text(json.dumps(document))
        text = place.program("verify", "--receipt", "r.json", "--checkpoint", "runs/long", *words, code=code)
        check(says in text.split("\n")[0], f"{says!r} is not in {text}")

    plain = place.documents[1]
    from_nonce = next(d for d in place.documents if d["receipt"]["nonce"])
    verdict(forged(plain, lambda r, o: None), 0, "equal: ")
    for what, change, says in FORGERIES:
        verdict(forged(plain, change), 1, says)
    verdict(forged(from_nonce, lambda r, o: r.update(seed="4"), nonce=True), 1, "the seed is 4; the nonce gives")
    (place.folder / "other.pem").write_text(OTHER_KEY)
    stranger = answers(place, 1, "other", "--sign", "other.pem")[0]
    verdict(stranger, 0, "equal: ")
    verdict(stranger, 1, "(--key)", "--key", "pub.pem")
    verdict(dict(stranger, receipt=plain["receipt"]), 1, "the public key has the fingerprint")
    verdict(dict(place.documents[2], receipt=plain["receipt"]), 1, "the signature is not one of this receipt")
    lines = (place.folder / "log/receipts.jsonl").read_text().splitlines(keepends=True)
    for what, content in (("removed", lines[:3] + lines[4:]), ("reordered", lines[:3] + [lines[4], lines[3]] + lines[5:])):
        (place.folder / "bad.jsonl").write_text("".join(content))
        text = place.program("verify", "--receipts", "bad.jsonl", code=1)
        check("line 4 does not follow the one before it" in text, f"{what}: {text}")
    names = [what for what, _, _ in FORGERIES] + ["a seed that is not the nonce's", "another key", "a receipt under another one's signature", "one removed", "two reordered"]
    log.say(f"{len(names)} forgeries are named: {', '.join(names)}")


def meaning(text):
    """What a document says, for one whose numbers are written otherwise; None: it is no JSON."""
    try:
        out = json.loads(text)
        out["opening"]["log_probs"] = [struct.pack("<f", value) for value in out["opening"]["log_probs"]]
        return out
    except (ValueError, KeyError, TypeError, OverflowError, struct.error, RecursionError, AttributeError):
        return None


def flipped(place, log):
    """One byte is another one: in a client's document, which is computed again, and in the server's log."""
    count = 500 if seed.full() else 8
    document = json.dumps(min((d for d in place.documents if not d["receipt"]["nonce"]), key=lambda d: len(d["opening"]["output_ids"])), separators=(",", ":"))
    lines = (place.folder / "log/receipts.jsonl").read_bytes()
    same = []

    def change(i):
        from_log, rng = i % 2, random.Random(f"{seed.seed()} flip {i}")
        text = bytearray(lines if from_log else document.encode())
        at = rng.randrange(len(text))
        text[at] ^= rng.randrange(1, 256)
        path = place.folder / f"flip{i}"
        path.write_bytes(text)
        words = ("--receipts", str(path)) if from_log else ("--receipt", str(path), "--checkpoint", "runs/long")
        done = subprocess.run([place.ostro, "verify", *words], cwd=place.folder, env=environment(), capture_output=True, check=False).returncode
        path.unlink()
        if done == 0 and not from_log and meaning(bytes(text)) == meaning(document.encode()):
            same.append(at)
            return
        if done == 0 and text.count(b"\n") == lines.count(b"\n") and [json.loads(x) for x in text.splitlines()] == [json.loads(x) for x in lines.splitlines()]:
            same.append(at)
            return
        check(done in (1, 3, 4), f"byte {at} of the {'log' if from_log else 'document'}: {text[max(0, at - 30):at + 30]}: exit {done}")

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(change, range(2 * count)))
    check(len(same) <= max(2, count // 10), f"{len(same)} changes are said to change nothing")
    but = f", but {len(same)} by which nothing is said otherwise (a digit below a number's precision, white space)" if same else ""
    log.say(f"{2 * count} bytes changed, half in a client's document of {len(document)} bytes, half in a log of {len(lines)}: all found{but}")


if __name__ == "__main__":
    serve_load.run("Receipts of a server under load", __doc__, (replayed, forgeries, flipped))
