#!/usr/bin/env python3
"""Tests `ostro lab publish` and `ostro verify` of what it writes: a lab with registration, a program and forks, published, moved and
checked without its folder; changed bytes, drawn in all files; forged steps, outputs, records and bundles whose lists were made anew;
the files for other programs; statements of replays and an audit, which make a number a replayed one.

    lab_publish_test.py --ostro PROGRAM [--log FILE]
"""
import argparse
import base64
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from program import Program, check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402

CONFIG = """
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {mp: f32, train_batch_size: 4, num_train_steps: 8, steps_per_eval: 4, checkpointer: {keep: [{every: 4}]}}
numerics: {leaf_examples: 2}
"""
PLAN = """
lab: small
question: Which `rate` is <best>?
steps:
  texts: {source: {files: [texts], licence: !include licence.yaml}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
  base:
    sweep: {rate: [0.001, 0.01]}
    train: {data: $rows, config: tiny.yaml, set: !include set.yaml}
  cool: {fork: {of: $base, at: 4, set: {optimizer.decay: 2}}}
  score: {eval: {of: $base}}
  said: {sample: {of: $base, prompts: [The, You], tokens: 5}}
  model: {export: {of: $base, dtype: bf16}}
  bundle: {publish: {of: $base}}
  count: {run: {program: [wc, -c, in/words/tokenizer.json], inputs: {words: $words}, outputs: [size.txt]}}
hypotheses:
  better: {metric: "SELECT s.name, s.loss FROM evaluations s", supported: "mean > 0", refuted: "mean < 0"}
queries:
  best: "SELECT min(bits_per_byte) FROM evaluations"
  cost: "SELECT sum(seconds) / 3600 * max(machine_hour) FROM sessions, price"
price: {machine_hour: 3600, currency: EUR}
report: report.txt
"""


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def make_lab(top):
    (top / "texts").mkdir(parents=True)
    (top / "held").mkdir()
    licences = pathlib.Path("/usr/share/common-licenses")
    shutil.copy(licences / "GPL-2", top / "texts" / "gpl.txt")
    shutil.copy(licences / "Apache-2.0", top / "held" / "a.txt")
    (top / "tiny.yaml").write_text(CONFIG)
    (top / "set.yaml").write_text("optimizer.learning_rate: $rate\n")
    (top / "licence.yaml").write_text("GPL-3.0-only\n")
    (top / "report.txt").write_text("The best has {value best 3} bits per byte.\n")
    (top / "count.sh").write_text("wc -c < in/words/tokenizer.json > out/size.txt\n")
    plan = PLAN.replace("[wc, -c, in/words/tokenizer.json]", "[sh, count.sh], files: [count.sh]")
    (top / "plan.yaml").write_text(plan)


def seal_again(folder):
    """Writes publication.json and SHA256SUMS for the files as they are now: what a forger does who has no key."""
    path = folder / "publication.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {str(f.relative_to(folder)): {"bytes": f.stat().st_size, "sha256": sha256(f.read_bytes())}
                         for f in sorted(folder.rglob("*")) if f.is_file()
                         and not str(f.relative_to(folder)).startswith(("bundles/", "publication.json", "SHA256SUMS"))}
    text = canonical(manifest) + "\n"
    path.write_text(text)
    sums = {name: value["sha256"] for name, value in manifest["files"].items()} | {"publication.json": sha256(text.encode())}
    (folder / "SHA256SUMS").write_text("".join(f"{value}  {name}\n" for name, value in sorted(sums.items())))


def check_flips(program, published):
    """Bytes changed at drawn places of drawn files: each is found."""
    rng = random.Random(f"{seed.seed()} flips")
    files = sorted(f for f in published.rglob("*") if f.is_file())
    flips = 0
    for number in range(300 if seed.full() else 12):
        file = rng.choice(files)
        data = file.read_bytes()
        if not data:
            continue
        at = rng.randrange(len(data))
        file.write_bytes(data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1:])
        done = subprocess.run([program.ostro, "verify", str(published)], capture_output=True, text=True, check=False)
        flips += 1
        check(done.returncode in (1, 4), f"{number}: a changed byte {at} of {file.name} was not found: {done.stdout}{done.stderr}")
        file.write_bytes(data)
    return f"seed {seed.seed()}: {flips} changed bytes, drawn in {len(files)} files of a publication: all found"


def check_steps(published):
    """Of steps that take states of runs the publication has what its record is made of: no texts and no second copy of a model."""
    lab = published / "small.lab"
    entries = [json.loads(line) for line in (lab / "journal.jsonl").read_text().splitlines()]
    outputs = {e["step"]: lab / "out" / e["fingerprint"][:16] for e in entries if e["kind"] == "done"}
    for step, wanted in (("said", ["samples.json"]), ("model", ["provenance.json"]), ("bundle", ["bundle/provenance.json"])):
        output = outputs[f"{step}[rate=0.01]"]
        found = sorted(str(f.relative_to(output)) for f in output.rglob("*") if f.is_file())
        check(found == wanted, f"{step}: {found}")
    with sqlite3.connect(published / "site/report/record.sqlite") as db:
        texts = db.execute("SELECT prompt, text FROM samples WHERE name LIKE 'said%' ORDER BY name, number").fetchall()
    check(texts == [("The", None), ("You", None)] * 2, texts)


def forged(program, published, what, change, words):
    """A copy with a change and new lists: refused with these words."""
    copy = published.parent / "forged"
    shutil.copytree(published, copy)
    change(copy)
    seal_again(copy)
    out = program.run("verify", str(copy), code=1)
    check(words in out, f"{what}: expected {words!r} in {out}")
    shutil.rmtree(copy)


def edit_json(path, change):
    value = json.loads(path.read_text())
    change(value)
    path.write_text(canonical(value) + "\n")


def check_forgeries(program, published):
    out = published / "small.lab" / "out"
    score = next(f.parent for f in out.rglob("evaluation.json"))

    def lower_loss(folder):
        edit_json(folder / score.relative_to(published) / "evaluation.json", lambda e: e.update(loss="0x1p+0"))
    forged(program, published, "an evaluation", lower_loss, "is not what step score")

    def lower_record(folder):
        with sqlite3.connect(folder / "site/report/record.sqlite") as db:
            db.execute("UPDATE evaluations SET loss = 1.0")
    forged(program, published, "the record", lower_record, "is not what plan, journal and outputs give")

    def other_content(folder):
        def change(m):
            m["steps"]["score[rate=0.01]"]["content"] = m["steps"]["score[rate=0.001]"]["content"]
        edit_json(folder / "publication.json", change)
    forged(program, published, "a content", other_content, "step score[rate=0.01]: the journal has no line")

    def other_plan(folder):
        plan = folder / "plan.yaml"
        plan.write_text(plan.read_text().replace("mean > 0", "mean > 9"))
    forged(program, published, "a rule", other_plan, "is not the plan that the journal names last")

    # A plan includes no other file of the machine that checks it, whatever lies there.
    def included(place):
        def change(folder):
            plan = folder / "plan.yaml"
            plan.write_text(plan.read_text().replace("licence: !include licence.yaml", f"licence: !include {place}"))
        return change
    (published.parent / "beside.yaml").write_text("GPL-3.0-only\n")
    os.mkfifo(published.parent / "pipe")
    for place in ("/dev/zero", "../beside.yaml", str(published.parent / "pipe"), "site/../../beside.yaml"):
        forged(program, published, f"an include of {place}", included(place), "is none of the files that publication.json lists, so it is not opened")

    def swapped_bundles(folder):
        a, b = folder / "bundles/base-rate-0.001", folder / "bundles/base-rate-0.01"
        a.rename(folder / "c"), b.rename(a), (folder / "c").rename(b)
    forged(program, published, "bundles that were swapped", swapped_bundles, "bundles/base-rate-0.001")

    def without_beginning(folder):
        journal = folder / "small.lab/journal.jsonl"
        journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-1]))
    forged(program, published, "a journal that was cut", without_beginning, "ends with another line")

    def added_bundle(folder):
        shutil.copytree(folder / "bundles/base-rate-0.01", folder / "bundles/better")
    forged(program, published, "a bundle of no step", added_bundle, "it was added")


def check_others(published, key):
    crate = json.loads((published / "ro-crate-metadata.json").read_text())
    ids = [node["@id"] for node in crate["@graph"]]
    check(len(ids) == len(set(ids)), "ro-crate: an @id is there twice")

    def references(value):
        if isinstance(value, dict):
            if set(value) == {"@id"}:
                yield value["@id"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)
    for node in crate["@graph"]:
        for name in references([v for k, v in node.items() if k != "@id"]):
            check(name in ids or name.startswith("https://"), f"ro-crate: {name} is described nowhere")
    croissant = json.loads((published / "croissant.json").read_text())
    hashes = {f["sha256"] for f in croissant["distribution"]}
    check(hashes == {sha256(pathlib.Path("/usr/share/common-licenses", n).read_bytes()) for n in ("GPL-2", "Apache-2.0")},
          "croissant: other files")
    envelope = json.loads((published / "provenance.intoto.jsonl").read_text())
    payload = base64.b64decode(envelope["payload"])
    text = f"DSSEv1 {len(envelope['payloadType'])} {envelope['payloadType']} {len(payload)} ".encode() + payload
    (published.parent / "pae").write_bytes(text)
    (published.parent / "sig").write_bytes(base64.b64decode(envelope["signatures"][0]["sig"]))
    done = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin", "-in", published.parent / "pae",
                           "-sigfile", published.parent / "sig"], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"in-toto: the envelope's signature does not hold: {done.stdout}{done.stderr}")
    named = {s["name"]: s["digest"]["sha256"] for s in json.loads(payload)["subject"]}
    check(all(sha256((published / n).read_bytes()) == h for n, h in named.items()) and "plan.yaml" in named, "in-toto: other subjects")


def check_price(program, top, lab_hash):
    """The declared price is in the pages and the record, and in no fingerprint."""
    plan = (top / "plan.yaml").read_text()
    for hour in ("3600", "7200"):
        (top / "plan.yaml").write_text(plan.replace("price: {machine_hour: 3600", f"price: {{machine_hour: {hour}"))
        check(program.run("lab", "run", "plan.yaml").splitlines()[-1] == lab_hash, "a price moved the lab hash")
        program.run("lab", "site", "plan.yaml", "--measured", "--out", f"site{hour}")
        check(" EUR</td>" in (top / f"site{hour}/runs.html").read_text(), "the pages have no price")
        program.run("lab", "record", "plan.yaml", "--out", f"{hour}.sqlite", "--measured")
        with sqlite3.connect(top / f"{hour}.sqlite") as db:
            check(db.execute("SELECT * FROM price").fetchall() == [(float(hour), "EUR")], "the table price")
            check(db.execute("SELECT sum(seconds) / 3600 * machine_hour FROM sessions, price").fetchone()[0] > 0, "what it took")
    (top / "plan.yaml").write_text(plan)
    said = program.run("lab", "report", "plan.yaml", "--value", "cost").splitlines()
    check("class: measured" in said, said)
    (top / "wrong.yaml").write_text(plan.replace("machine_hour: 3600", "machine_hour: -1"))
    check("price.machine_hour: expected a number from 0 on" in program.run("lab", "run", "wrong.yaml", code=2), "a negative price")


def value_of(program, *words):
    return program.run("lab", "report", "plan.yaml", "--value", "best", *words).splitlines()


def check_replays(program, top):
    """Statements of replays, and an audit: a number is replayed when all that it stands on was done again, whole."""
    def folder(step):
        lines = [json.loads(line) for line in (top / "small.lab/journal.jsonl").read_text().splitlines()]
        return "small.lab/out/" + next(e["fingerprint"][:16] for e in lines if e["kind"] == "done" and e["step"] == step)

    check("class: recorded" in value_of(program), "nothing was replayed yet")
    said = program.run("verify", folder("base[rate=0.01]"), "--statement", "ann.json", "--by", "Ann", "--sign", "key.pem")
    check("all 8 steps replayed" in said, said)
    forged = json.loads((top / "ann.json").read_text())

    def forge(values):
        (top / "forged.json").write_text(json.dumps(values, separators=(",", ":"), sort_keys=True) + "\n")

    forge(forged)
    check((top / "forged.json").read_bytes() == (top / "ann.json").read_bytes(), "the form of a statement")
    forge(forged | {"by": "Bob"})
    check("its signature does not fit" in program.run("lab", "replayed", "plan.yaml", "forged.json", code=1), "a forged name")
    unsigned = {k: v for k, v in forged.items() if k not in ("public_key", "signature")}
    forge(unsigned | {"first": 1, "last": 1, "from": 1, "to": 1})
    out = program.run("lab", "replayed", "plan.yaml", "forged.json", code=1)
    check("speaks of a run of the steps 1 to 1, and the chain of" in out and out.rstrip().endswith("has 1 to 8"), out)
    (top / "forged.json").write_text(json.dumps(forged) + "\n")  # the same with blanks, which would be taken once more
    check("is not written as a statement is" in program.run("lab", "replayed", "plan.yaml", "forged.json", code=1), "another form")
    forge(unsigned | {"run_hash": "0" * 64})
    check("no step of plan.yaml made a run" in program.run("lab", "replayed", "plan.yaml", "forged.json", code=2), "another run")
    check(program.run("lab", "replayed", "plan.yaml", "ann.json").startswith("taken: base[rate=0.01]: all 8 steps replayed, by Ann (key "), "taken")
    check(program.run("lab", "replayed", "plan.yaml", "ann.json").startswith("taken already: "), "taken twice")
    # An earlier version took a statement in another form, or of other steps; such a line says nothing, and hinders nothing.
    journal = top / "small.lab/journal.jsonl"
    kept = journal.read_text()
    lines = kept.splitlines()
    line = json.loads(lines[-1])
    check(line["kind"] == "replay" and "class: recorded" in value_of(program), line)
    for statement in (json.dumps(unsigned | {"by": "Early"}) + "\n", canonical(unsigned | {"by": "Early", "last": 9, "to": 9}) + "\n"):
        entry = {k: v for k, v in line.items() if k != "h"} | {"by": "Early", "statement": statement}
        hashed = sha256((line["h"] + canonical(entry)).encode())
        journal.write_text(kept + canonical(entry | {"h": hashed}) + "\n")
        said = value_of(program)
        check("class: recorded" in said and not any("Early" in text and text.startswith("replayed: ") for text in said), said)
        check(any(text.startswith("warning: ") and text.endswith("Its line is left out") for text in said), said)
    journal.write_text(kept)
    said = value_of(program)
    check("class: recorded" in said and any(line.startswith("replayed: base[rate=0.01]: all 8 steps") for line in said), said)
    run = folder("base[rate=0.001]")
    said = program.run("verify", run, "--sample", "2", "--challenge", "lottery", "--statement", "cem.json", "--by", "Cem")
    check('2 of 8 steps replayed, drawn by "lottery"' in said, said)
    check("(not signed)" in program.run("lab", "replayed", "plan.yaml", "cem.json"), "a sample")
    chain = top / run / "chain.jsonl"
    before = chain.read_bytes()
    chain.write_bytes(before.replace(b'"loss":"0x1', b'"loss":"0x2', 1))
    (top / "none.json").unlink(missing_ok=True)
    check("none was written" in program.run("verify", run, "--statement", "none.json", "--by", "Ann", code=1), "a forged run")
    check(not (top / "none.json").exists(), "a statement about a forged run")
    chain.write_bytes(before)
    program.run("verify", run, "--no_replay", "--statement", "none.json", "--by", "Ann", code=2)
    program.run("lab", "run", "plan.yaml", "--audit", "1", "--by", "Dora")
    said = value_of(program)
    check("class: replayed" in said and any("done again, whole, by Dora" in line for line in said), said)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--log", type=pathlib.Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder) / "lab"
        make_lab(top)
        os.environ["OSTRO_THREADS"] = "1"
        program = Program(args.ostro, top)
        out = program.run("lab", "publish", "plan.yaml", "--out", "early", code=2)
        check("`ostro lab run" in out and not (top / "early").exists(), f"a lab that is not done: {out}")
        program.run("lab", "register", "plan.yaml")
        hash_line = next(line for line in program.run("lab", "run", "plan.yaml").splitlines() if line.startswith("lab hash: "))
        for words in (["genpkey", "-algorithm", "ed25519", "-out", "key.pem"], ["pkey", "-in", "key.pem", "-pubout", "-out", "pub.pem"]):
            subprocess.run(["openssl", *words], cwd=top, check=True, capture_output=True)
        check_price(program, top, hash_line)
        check_replays(program, top)
        program.run("lab", "publish", "plan.yaml", "--out", "first", "--sign", "key.pem")
        check("first" in program.run("lab", "publish", "plan.yaml", "--out", "first", code=2), "a folder that exists")
        published = pathlib.Path(folder) / "published"
        (top / "first").rename(published)
        elsewhere = Program(args.ostro, folder)
        top.rename(pathlib.Path(folder) / "gone")
        key = pathlib.Path(folder) / "gone" / "pub.pem"
        out = elsewhere.run("verify", "published", "--key", str(key), "--run_hash", hash_line.removeprefix("lab hash: "))
        check(out.startswith("equal: ") and "the registry of 1 entries holds" in out, out)
        for words in (r"what Ann \(key [0-9a-f]{12}\) says of base\[rate=0\.01\]: all 8 steps replayed",
                      r"what Cem \(not signed\) says of base\[rate=0\.001\]: 2 of 8 steps replayed"):
            check(re.search(words, out), f"{words} is not in what was not checked:\n{out}")
        check("differs" in elsewhere.run("verify", "published", "--run_hash", "0" * 64, code=1), "another lab hash")
        elsewhere.run("verify", "published/bundles/base-rate-0.01")
        check("GNU GENERAL PUBLIC" not in "".join(f.read_text(errors="ignore") for f in published.rglob("*")
                                                  if f.is_file() and "bundles" not in f.parts), "a text of a source was published")
        check_others(published, key)
        with sqlite3.connect(published / "site/report/record.sqlite") as db:
            replays = db.execute("SELECT name, who, whole FROM replays").fetchall()
        check(("base[rate=0.01]", "Dora", 1) in replays and ("base[rate=0.001]", "Cem (not signed)", 0) in replays, replays)
        check_steps(published)
        said = check_flips(elsewhere, published)
        print(said)
        if args.log:
            with args.log.open("a") as file:
                file.write(said + "\n")
        for seal in published.glob("publication.json.*"):
            seal.unlink()
        check_forgeries(elsewhere, published)
    print("a published lab was checked elsewhere; changed bytes and forgeries were found")


if __name__ == "__main__":
    main()
