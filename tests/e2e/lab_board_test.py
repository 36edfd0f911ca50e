#!/usr/bin/env python3
"""Tests `ostro lab board`: an honest entry counts, also one whose model this program does not have, and with drawn steps; twelve forged
entries are refused, each by the rule that it breaks; a board that was altered is found. What is drawn needs a beacon, nothing outside of the entry and
the store is read, and only what counts can be copied.

    lab_board_test.py --ostro PROGRAM
"""
import argparse
import json
import pathlib
import re
import shutil
import sys
import tempfile
import zipfile

from program import Program, check

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "fault"))
import forger  # noqa: E402

STEPS = 9
CONFIG = """
data: {train_urls: [texts], cache_dir: cache, vocab_size: 300}
model: {seq_len: 16, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {id: small, mp: f32, train_batch_size: 4, num_train_steps: 9, steps_per_eval: 0, checkpointer: {keep: [{every: 3}]}}
numerics: {leaf_examples: 2}
"""
FEW = ("--cuts", "30", "--sums", "2")
CHAIN = "record/chain.jsonl"


class Lab:
    def __init__(self, program):
        self.program, self.root = program, program.folder
        for name in ("texts", "others", "eval"):
            (self.root / name).mkdir()
        for i in range(20):
            (self.root / f"texts/{i}.txt").write_text(" ".join(map(str, range(i, i + 60))))
            (self.root / f"others/{i}.txt").write_text(" ".join(map(str, range(2 * i, 2 * i + 40))))
        (self.root / "eval/a.txt").write_text(" ".join(map(str, range(300, 330))))
        (self.root / "eval/b.txt").write_text("seven and eight")
        (self.root / "train.yaml").write_text(CONFIG)

    def train(self, name, *words):
        self.program.run("train", "--config", "train.yaml", "--trainer.id", name, *words)

    def publish(self, run, out, *words):
        self.program.run("publish", f"runs/{run}", "--out", out, "--score", "--checkpoints", "2", *words)
        return self.root / out

    def copy(self, name, of="honest"):
        shutil.copytree(self.root / of, self.root / name)
        return self.root / name

    def check(self, entry, code, *words, track=("--track", "track.yaml"), cache="cache"):
        if "--beacon" not in words:
            words += ("--beacon", "12 31 44")
        return self.program.run("lab", "board", "check", entry, *track, "--cache", cache, *FEW, *words, code=code)

    def refused(self, entry, rules, *words, says=(), track=("--track", "track.yaml"), cache="cache"):
        """Refused by exactly these rules, the first of them with these words."""
        out = self.check(entry, 1, *words, track=track, cache=cache)
        found = re.findall(r"^refused: ([a-z ]+): (.*)$", out, re.M)
        check([rule for rule, _ in found] == list(rules), f"{entry}: expected {rules}: {out}")
        check("counts: " not in out, out)
        for word in says:
            check(word in found[0][1], f"{entry}: expected {word!r} in {out}")


def rewritten(bundle, edit):
    """The chain with `edit(entry)` applied, and all hashes of the bundle made to fit."""
    old = json.loads((bundle / "bundle.json").read_text())["head"]
    forger.rewrite_chain(bundle / CHAIN, edit)
    new = json.loads((bundle / CHAIN).read_text().splitlines()[-1])["h"]
    card = bundle / "README.md"
    card.write_text(card.read_text().replace(old, new))
    forger.refit(bundle / "record")
    if (bundle / "provenance.json").exists():
        forger.refit_provenance(bundle)
    forger.reseal(bundle)


def score_edited(lab, name, edit):
    bundle = lab.copy(name)
    path = bundle / "record/score.ir"
    before = path.read_text()
    after = edit(before)
    check(after != before, f"{name}: the score program was not changed")
    path.write_text(after)
    forger.reseal(bundle)
    return name


def honest(lab):
    lab.train("small")
    lab.publish("small", "honest")
    lab.program.run("publish", "runs/small", "--out", "without_score")
    text = lab.program.run("lab", "board", "track", "runs/small", "--name", "tiny", "--evaluation", "eval/a.txt", "eval/b.txt",
                           "--flops", "1e9")
    (lab.root / "track.yaml").write_text(text)
    lab.program.run("lab", "board", "new", "board", "--track", "track.yaml")
    board = ("--board", "board")
    entered = lab.program.run("lab", "board", "enter", "honest", *board)
    check("entry 1 of the board" in entered, entered)
    out = lab.check("honest", 0, track=board)
    check(out.startswith("counts: ") and f"replayed: all {STEPS} steps" in out, out)
    check("later tokens changed at 30 of them, all targets summed at 2" in out, out)
    check("looks at the next token at" in out and "is missed with a chance of" in out, out)
    shown = lab.program.run("lab", "board", "show", "board")
    bits = re.search(r"counts: ([0-9.]+) bits", out)[1]
    check(f"{bits} bits per byte" in shown, shown)
    check("had its outcome already" in lab.check("honest", 0, track=board), "an outcome was written twice")
    again = lab.check("honest", 0)
    check(f"counts: {bits} bits" in again and "whether it is a copy" in again, again)
    # Every place, in a text as short as this: nothing is left open about the score.
    words = ("lab", "board", "check", "honest", "--track", "track.yaml", "--cache", "cache", "--beacon", "1")
    every = lab.program.run(*words, "--cuts", "1000", "--sums", "1")
    check("looks at the next token" not in every, every)
    lab.refused("without_score", ["score program"], says=["score.ir"])
    # What is drawn without a beacon is known to the entrant before.
    words = ("lab", "board", "check", "honest", "--track", "track.yaml")
    known = lab.program.run(*words, "--cache", "cache", *FEW, code=2)
    check("--beacon needs a public text that is younger than the entry" in known, known)
    check("--cache needs the token store" in lab.program.run(*words, *FEW, "--beacon", "1", code=2), "no --cache")
    return float(re.search(r"training: ([0-9.e+]+) of", out)[1]), bits


def drawn(lab, bits):
    """Some steps, by the entry, the head behind it and the beacon."""
    text = (lab.root / "track.yaml").read_text()
    check("steps: null" in text, text)
    (lab.root / "some.yaml").write_text(text.replace("steps: null", "steps: 3"))
    some = ("--track", "some.yaml")
    out = lab.program.run("lab", "board", "check", "honest", *some, code=2)
    check("--beacon" in out, out)
    one = lab.check("honest", 0, "--beacon", "12 31 44", track=some)
    check(one == lab.check("honest", 0, "--beacon", "12 31 44", track=some), "the draw is not repeated")
    check(f"counts: {bits} bits" in one, one)
    check(f"a run of which 1 of {STEPS} steps are false is missed with a chance of 0.6667" in one, one)
    check("steps; the first, the last, and drawn: " in one, one)
    states = [0, *(int(path.name[5:]) for path in (lab.root / "honest/record/checkpoints").iterdir())]
    for k in range(4):  # each step is counted once
        said = lab.check("honest", 0, "--beacon", str(k), track=some)
        done, listed = re.search(rf"replayed: (\d+) of {STEPS} steps; .* drawn: (.*)", said).groups()
        wanted = {1, STEPS, *map(int, listed.split(", "))}
        needed = {step for last in wanted for step in range(max(s for s in states if s < last) + 1, last + 1)}
        check(int(done) == len(needed), f"{done} of {needed}: {said}")
    draws = {re.search(r"drawn: (.*)", lab.check("honest", 0, "--beacon", str(k), track=some))[1] for k in range(4)}
    check(len(draws) > 1, f"the beacon does not change the draw: {draws}")
    # The first and the last step are looked at in every draw: a run could jump to any state in them.
    for name, step in (("first", 1), ("last", STEPS)):
        rewritten(lab.copy(name), lambda e: e | {"loss": "0x1p+0"} if e["kind"] == "step" and e["step"] == step else e)
        for k in range(3):
            lab.refused(name, ["replay"], "--beacon", str(k), track=some, says=[f"step {step}: loss is 1 in the chain"])


def foreign(lab, bits):
    """A record whose model has a name and options that no program here knows: programs alone."""
    bundle = lab.publish("small", "foreign", "--without_model")
    check(not (bundle / "config.json").exists() and not (bundle / "provenance.json").exists(), "a model was published")

    def renamed(text):
        text = text.replace("  type: llama\n", "  type: novel\n", 1).replace("  hidden_dim: ", "  breadth: ")
        check("type: novel" in text and "breadth: 16" in text, text)
        return text

    def edit(entry):
        if entry["kind"] == "genesis":
            model = entry["config"]["model"]
            model["type"], model["breadth"] = "novel", model.pop("hidden_dim")
        return entry

    config = bundle / "record/config.yaml"
    config.write_text(renamed(config.read_text()))
    for checkpoint in (bundle / "record/checkpoints").iterdir():
        manifest = forger.read_manifest(checkpoint)
        forger.seal(checkpoint, config=renamed(manifest["config"]))
    rewritten(bundle, edit)
    out = lab.check("foreign", 0)
    check(f"counts: {bits} bits" in out and "its programs alone were run" in out, out)
    said = lab.program.run("verify", "foreign", code=4)
    check("novel" in said, said)


def constant(number):
    data = "0000803f" * 20000
    return f'  %{number} = constant() {{axes = <"pad">, data = "{data}", dtype = "f32", sizes = [20000]}} : f32[pad:20000] @ "" "" ""\n'


def before_return(text, lines, value):
    """Puts lines before the program's return, which then gives `value(old)` first."""
    at = text.rindex("  return ")
    end = text.index("\n", at)
    words = text[at:end].split()
    words[1] = value(words[1].rstrip(",")) + ("," if len(words) > 2 else "")
    return text[:at] + lines + "  " + " ".join(words) + text[end:]


def next_number(text):
    """Of the program's own block: regions count for themselves, and are indented more."""
    return 1 + max(int(n) for values in re.findall(r"^  (%[%\d, ]+) =", text, re.M) for n in re.findall(r"\d+", values))


def halved(text):
    n, shape = next_number(text), "f32[batch:2, pos:16]"
    lines = (f'  %{n} = constant() {{axes = <>, dtype = "f32", sizes = [], value = 0x1p-1}} : f32[] @ "" "" ""\n'
             f'  %{n + 1} = broadcast(%{n}) {{axes = <"batch", "pos">, sizes = [2, 16]}} : {shape} @ "" "" ""\n')
    old = re.search(r"  return (%\d+)", text[text.rindex("  return "):])[1]
    lines += f'  %{n + 2} = mul({old}, %{n + 1}) : {shape} @ "" "" ""\n'
    return before_return(text, lines, lambda _: f"%{n + 2}")


def forgeries(lab, flops):
    board = ("--board", "board")
    # 1. A copied entry, with another card around it.
    lab.publish("small", "copied", "--license", "mit")
    lab.program.run("lab", "board", "enter", "copied", *board)
    lab.refused("copied", ["copy"], track=board, says=[f"its {STEPS} steps are those of entry 1"])
    # 2. A result file alone.
    (lab.root / "result").mkdir()
    (lab.root / "result/result.json").write_text('{"bits_per_byte": 0.5}')
    lab.refused("result", ["not a bundle"])
    lab.refused("result/result.json", ["not a bundle"])
    with zipfile.ZipFile(lab.root / "entry.zip", "w") as packed:  # a bundle, but packed, and one that lacks its shape
        packed.writestr("bundle.json", "{}")
    lab.refused("entry.zip", ["not a bundle"])
    (lab.root / "broken.zip").write_bytes((lab.root / "entry.zip").read_bytes()[:40])
    lab.refused("broken.zip", ["not a bundle"])
    check("error: there is no no_such" in lab.check("no_such", 1), "an entry that is not there")
    # 3. A loss edited, and hashed again.
    rewritten(lab.copy("loss"), lambda e: e | {"loss": "0x1p+0"} if e["kind"] == "step" and e["step"] == 7 else e)
    lab.refused("loss", ["replay"], says=["step 7: loss is 1 in the chain"])
    # 4. Other data.
    same_words = ("--data.tokenizer", "runs/small/tokenizer.json", "--data.vocab_size", "null")
    lab.train("others", "--data.train_urls", "[others]", "--data.cache_dir", "cache2", *same_words)
    lab.publish("others", "other_data")
    lab.refused("other_data", ["data"], cache="cache2")
    # 5. Evaluation text in the data.
    lab.train("seen", "--data.train_urls", "[texts, eval/a.txt]", "--data.cache_dir", "cache3", *same_words)
    lab.publish("seen", "seen_eval")
    out = lab.check("seen_eval", 1, cache="cache3")
    check("refused: evaluation text: row" in out and "is eval/a.txt of the evaluation" in out, out)
    # 6. Another tokenizer's bytes: in the record, and in the training.
    bundle = lab.copy("merges")
    path = bundle / "record/tokenizer.json"
    tokenizer = json.loads(path.read_text())
    tokenizer["model"]["merges"].pop()
    path.write_text(json.dumps(tokenizer))
    forger.reseal(bundle)
    out = lab.check("merges", 1)
    check(out.startswith("refused: tokenizer: merges/record/tokenizer.json has the hash"), out)
    lab.train("words", "--data.vocab_size", "290", "--data.cache_dir", "cache4")
    lab.publish("words", "other_words")
    out = lab.check("other_words", 1, cache="cache4")
    check(out.startswith("refused: tokenizer: its tokenizer has the hash"), out)
    # 7. More operations than the track allows.
    text = (lab.root / "track.yaml").read_text()
    (lab.root / "small.yaml").write_text(re.sub(r"(?m)^flops: .*", f"flops: {flops * 0.99}", text))
    lab.refused("honest", ["flops"], track=("--track", "small.yaml"), says=["FLOPs"])
    # 8. Weights in constants.
    score_edited(lab, "hidden", lambda ir: before_return(ir, constant(next_number(ir)), lambda old: old))
    lab.refused("hidden", ["constants"], says=["and may have 65536"])
    # 9. A trained start.
    lab.train("tuned", "--trainer.initialize_from", "runs/small")
    lab.publish("tuned", "tuned_entry")
    out = lab.check("tuned_entry", 1)
    check("refused: start: its genesis says that it began with" in out, out)
    # 10. A score that looks ahead: attention without its mask.
    score_edited(lab, "ahead", lambda ir: ir.replace("causal = 1", "causal = 0"))
    lab.refused("ahead", ["looks ahead"], says=["with other tokens behind position"])
    # The state that is scored was left out: known before anything is replayed.
    bundle = lab.copy("no_end")
    shutil.rmtree(bundle / f"record/checkpoints/step-{STEPS:08}")
    forger.reseal(bundle)
    out = lab.check("no_end", 1)
    check(f"refused: end: the state after step {STEPS}, its last one, is not in the bundle" in out and "replayed" not in out, out)
    # Links lead out of the entry, to files of whoever checks it.
    (lab.root / "secret.yaml").write_text("a_key_of_the_keeper: 1\n")
    for name in ("record/config.yaml", "ledger"):
        bundle = lab.copy("linked")
        shutil.move(bundle / name, lab.root / "moved")
        (bundle / name).symlink_to(lab.root / ("secret.yaml" if name.endswith("yaml") else "moved"))
        lab.refused("linked", ["cannot check"], says=["is a link, which may lead to any file of this machine"])
        said = lab.program.run("lab", "board", "enter", "linked", *board, code=2)
        check("is a link" in said and "a_key_of_the_keeper" not in said, said)
        shutil.rmtree(bundle)
        moved = lab.root / "moved"
        shutil.rmtree(moved) if moved.is_dir() else moved.unlink()
    # An operation of a later version is none of the entrant's faults.
    score_edited(lab, "later", lambda ir: re.sub(r"= (\w+)\(", r"= \1_later(", ir, count=1))
    lab.refused("later", ["cannot check"], says=["unknown op"])
    # 11. One that does not sum to 1.
    score_edited(lab, "short", halved)
    lab.refused("short", ["not a code"], says=["sums to"])


def other_batch(lab):
    """12. One step with another batch: it was really trained so, by a fork that draws other batches, and a fork that goes on."""
    lab.program.run("fork", "runs/small", "--step", "3", "--out", "runs/aside", "--trainer.seed", "5", "--trainer.num_train_steps", "4")
    lab.program.run("train", "--config", "runs/aside/config.yaml")
    lab.program.run("fork", "runs/aside", "--step", "4", "--out", "runs/back", "--trainer.seed", "0", "--trainer.num_train_steps", str(STEPS))
    lab.program.run("train", "--config", "runs/back/config.yaml")
    lines = {}
    for run in ("small", "aside", "back"):
        for line in (lab.root / f"runs/{run}/chain.jsonl").read_text().splitlines():
            entry = json.loads(line)
            if entry["kind"] in ("step", "checkpoint"):
                lines[run, entry["kind"], entry["step"]] = {k: v for k, v in entry.items() if k != "h"}

    def edit(entry):
        key = (entry["kind"], entry.get("step"))
        if key[0] == "genesis" or key[1] <= 3:
            return entry
        return lines["aside" if key[1] == 4 else "back", *key]

    for claimed in (False, True):
        bundle = lab.copy(f"batch_{claimed}")

        def honest_batch(entry):
            made = edit(entry)
            if claimed and entry["kind"] == "step":
                made = made | {"batch": entry["batch"]}
            return made

        for checkpoint in (bundle / "record/checkpoints").iterdir():
            step = int(checkpoint.name[5:])
            if step > 3:
                manifest = forger.read_manifest(checkpoint)
                shutil.rmtree(checkpoint)
                shutil.copytree(lab.root / f"runs/back/checkpoints/{checkpoint.name}", checkpoint)
                forger.seal(checkpoint, config=manifest["config"])
        for path in bundle.iterdir():  # the files of the model are of the honest state
            if path.is_file() and path.name not in ("bundle.json", "README.md", "SHA256SUMS"):
                path.unlink()
        rewritten(bundle, honest_batch)
        if claimed:
            lab.refused(bundle.name, ["replay"], says=["step 4: loss is"])
        else:
            lab.refused(bundle.name, ["batch"], says=["step 4 was done with the batch"])


def elsewhere(lab, bits):
    """A run of a component whose store lies where its configuration says: the board reads it below --cache, and nowhere else."""
    (lab.root / "component.yaml").write_text(CONFIG.replace(
        "{train_urls: [texts], cache_dir: cache, vocab_size: 300}",
        "{tokenizer: runs/small/tokenizer.json, cache_dir: none, components: {words: {train_urls: [texts], cache_dir: theirs}}}"))
    lab.program.run("train", "--config", "component.yaml", "--trainer.id", "component")
    lab.publish("component", "component_entry")
    out = lab.program.run("lab", "board", "check", "component_entry", "--track", "track.yaml", "--cache", "stores", *FEW, "--beacon", "1", code=2)
    check((lab.root / "theirs").is_dir() and "data.components.words: theirs: no finished token store" in out, out)
    (lab.root / "stores").mkdir()
    shutil.copytree(lab.root / "theirs", lab.root / "stores/words")
    shutil.rmtree(lab.root / "theirs")
    check("counts: " in lab.check("component_entry", 0, cache="stores"), "the store of the component")


def again(lab):
    """An entry that was refused, or could not be checked here, makes no other one a copy."""
    board = ("--board", "second")
    lab.program.run("lab", "board", "new", "second", "--track", "track.yaml")
    for entry in ("without_score", "honest", "copied"):
        lab.program.run("lab", "board", "enter", entry, *board)
    lab.refused("without_score", ["score program"], track=board)
    out = lab.check("honest", 0, track=board)
    check(f"shared: its steps 1 to {STEPS} are those of entry 1" in out and "which was refused" in out, out)
    lab.refused("copied", ["copy"], track=board, says=[f"its {STEPS} steps are those of entry 2"])
    lines = [json.loads(line) for line in (lab.root / "second/board.jsonl").read_text().splitlines()]
    one = next(line for line in lines if line["kind"] == "outcome" and line["counts"])
    check((one["cuts"], one["sums"], one["memory"], one["beacon"]) == (30, 2, 16 << 30, "12 31 44"), f"{one}")


def endless(lab):
    """A training that draws its weights with more operations than a number can count: refused, and the board can still be read."""
    bundle = lab.copy("endless", of="foreign")
    path = bundle / "record/program.ir"
    init, rest = path.read_text().split("\n---\n", 1)
    shape, loops = "u32[word:2]", 20
    lines = ""
    for depth in range(loops):
        number = next_number(init) if depth == 0 else 1
        lines += (f'  %{number} = scan(%0) {{axis = "n", carries = 1, consts = 0, length = {1 << 62}, reverse = 0}} : {shape} @ "" "" ""\n'
                  f"    region (%0: {shape}) {{\n")
    lines += f'  %1 = bit_xor(%0, %0) : {shape} @ "" "" ""\n' + "  return %1\n    }\n" * loops
    at = init.rindex("  return ")
    path.write_text(init[:at] + lines + init[at:] + "\n---\n" + rest)
    forger.reseal(bundle)
    said = lab.check("endless", 1)
    check("refused: bundle: " in said, said)
    there, here = re.search(r"is not the program of the chain \((\w+) there, (\w+) here\)", said).groups()
    rewritten(bundle, lambda entry: json.loads(json.dumps(entry).replace(there, here)))
    board = ("--board", "second")
    lab.program.run("lab", "board", "enter", "endless", *board)
    lab.refused("endless", ["copy", "flops"], track=board)
    shown = lab.program.run("lab", "board", "show", "second")
    check("refused: copy, flops" in shown, shown)
    check("refused: flops: its training has inf FLOPs" in lab.check("endless", 1), "a training with endless operations")


def altered_board(lab):
    path = lab.root / "board/board.jsonl"
    good = path.read_text()
    check(lab.program.run("lab", "board", "show", "board").count("refused: copy") == 1, "the copy is not on the board")
    for old, new in (('"counts":false', '"counts":true'), ('"refused":["copy"]', '"refused":[]')):
        check(old in good, good)
        path.write_text(good.replace(old, new))
        out = lab.program.run("lab", "board", "show", "board", code=1)
        check("was altered" in out, out)
    path.write_text(good)
    track = lab.root / "board/track.yaml"
    text = track.read_text()
    track.write_text(re.sub(r"(?m)^flops: .*", "flops: 1e12", text))
    check("is not the track of the first line" in lab.program.run("lab", "board", "show", "board", code=1), "another track")
    track.write_text(text)
    kept = lab.root / "board/evaluation/0.txt"
    kept.write_text(kept.read_text() + " ")
    check("has other bytes" in lab.check("honest", 1, track=("--board", "board")), "other evaluation")


def pages(lab, bits):
    """The boards on the pages of a lab: entries with scores and what was replayed, refusals with reasons, names that are no markup."""
    hostile = "</td><script>window.bad=1</script><img src=x onerror='window.bad=1'>\u202e"
    text = lab.program.run("lab", "board", "track", "runs/small", "--name", hostile, "--evaluation", "eval/a.txt", "--flops", "1e9")
    (lab.root / "hostile.yaml").write_text(text)
    lab.program.run("lab", "board", "new", "hostile_board", "--track", "hostile.yaml")
    lab.program.run("lab", "board", "enter", "honest", "--board", "hostile_board")
    (lab.root / "plan.yaml").write_text("lab: pages\nquestion: Which?\nsteps: {texts: {source: {files: [texts], licence: MIT}}}\n")
    words = ("lab", "site", "plan.yaml", "--out", "site")
    lab.program.run(*words)
    check(not (lab.root / "site/boards.html").exists() and "Boards" not in (lab.root / "site/index.html").read_text(), "a page of no board")
    lab.program.run(*words, "--board", "board", "hostile_board")
    page = (lab.root / "site/boards.html").read_text()
    for part in (bits, f"all {STEPS} steps", "<b>copy</b>: its 9 steps are those of entry 1", "not checked", "Track <bdi>tiny</bdi>", "&lt;script&gt;"):
        check(part in page, f"boards.html lacks {part!r}: {page}")
    check(page.count("<script") == 1 and "<img" not in page, "the name of a track became markup")
    # A drawn check is never called whole, and a line of an earlier version, without the steps, is not called a failure.
    lab.program.run("lab", "board", "new", "drawn_board", "--track", "some.yaml")
    lab.program.run("lab", "board", "enter", "honest", "--board", "drawn_board")
    said = lab.check("honest", 0, track=("--board", "drawn_board"))
    done = re.search(rf"replayed: (\d+) of {STEPS} steps", said)[1]
    lab.program.run(*words, "--board", "drawn_board")
    page = (lab.root / "site/boards.html").read_text()
    check(f"{done} of {STEPS} steps" in page and f"all {STEPS} steps" not in page, f"a drawn check: {page}")
    shutil.copytree(lab.root / "board", lab.root / "old_board")
    forger.rewrite_chain(lab.root / "old_board/board.jsonl", lambda e: {k: v for k, v in e.items() if k != "replayed"})
    lab.program.run(*words, "--board", "old_board")
    page = (lab.root / "site/boards.html").read_text()
    check("not recorded" in page and page.count("not replayed") == 1, f"an outcome without the steps: {page}")
    lab.program.run(*words)
    check(not (lab.root / "site/boards.html").exists(), "the page of boards stays when they are not asked for")
    check("no_board is no board" in lab.program.run(*words, "--board", "no_board", code=1), "a folder that is no board")


def limits(lab):
    """A check that reaches a limit is ended with all that it started; the error names the limit and the option that raises it."""
    scratch = lab.root / "scratch"
    scratch.mkdir()

    def ended(entry, *words):
        return lab.program.run("lab", "board", "check", entry, "--track", "track.yaml", "--cache", "cache", "--beacon", "1", *FEW, *words, code=1,
                               TMPDIR=str(scratch))

    out = ended("honest", "--time", "0.001")
    check("the check of honest was ended: it took longer than 0.001 s; --time SECONDS raises the limit" in out, out)
    out = ended("honest", "--addresses", "0.01")
    check("--addresses GIB raises the limit" in out and "counts" not in out, out)
    for option in ("--time", "--cpu_time", "--addresses", "--memory"):
        check(f"{option} -1: use " in lab.check("honest", 2, option, "-1"), option)
    check(not list(scratch.iterdir()), f"folders of checks are left: {list(scratch.iterdir())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ostro", required=True)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab(Program(parser.parse_args().ostro, folder))
        flops, bits = honest(lab)
        drawn(lab, bits)
        foreign(lab, bits)
        forgeries(lab, flops)
        other_batch(lab)
        elsewhere(lab, bits)
        again(lab)
        endless(lab)
        altered_board(lab)
        limits(lab)
        pages(lab, bits)
    print("an honest entry counts, and twelve forged ones are refused by name")
    return 0


if __name__ == "__main__":
    sys.exit(main())
