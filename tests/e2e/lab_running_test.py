#!/usr/bin/env python3
"""Tests how `ostro lab run` runs the steps of a plan: side by side, small, done again to compare; killed while steps are side by side.
A sweep that is halved (lab_halving.py). And the versions of the kinds of steps: outputs of fixed texts, which must not move while a version stays.

    lab_running_test.py --ostro PROGRAM
"""
import argparse
import contextlib
import hashlib
import json
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "suite"))
import seed  # noqa: E402
from lab_halving import check_halving  # noqa: E402
from lab_test import PLAN, Lab, check  # noqa: E402

# The contents of the steps of PLAN over fixed texts, by kind and version (ostro/experiment/plan/step_kinds.cc).
GOLDEN = {
    "run 1": "cbc1febb856cc937f38a20474d5414ffbae163d44bc2112d0c3807a03e736eb5",
    "source 1": "2dba20459859a0fb010ac7dbcc25e70ef19bdeefdeb682c99e761cfbaa669358",
    "tokenizer 1": "f631b80e05e99ddc1a602fd62e838a358a132dfc8a7b9a9fb2b7dce53af5f7c2",
    "tokens 1": "5f658d879ff257b67f2de80676ef553ca18102b6295b6f30d51e5bf8acff1abf",
    "train 1": "71b04b13d43e121456a6b35c332ae9726aa84866a496905e3edf0f1cbf5673c9",
    "fork 1": "04d783b1571bfb7e645cebfe2bfae57c5c6065adbf4e4324f89587ac81b6c707",
    "eval 1": "45dc869ccc50425e34d3d8246670e4d1751ed4875c09c5dec2687119912ea013",
    "sample 1": "293fcd33bdef9347f80b7cbd52839cf6a0e9facd1d8acc54f0b2e81c8a9a957a",
    "publish 1": "35bb346959a00633e7f4b5b362e5be847ccf6c4543ce02cf0faabb90ac4c99eb",
    "export 1": "3446326b95b5d02acc388a8ffc8b08a7afaa6e5a23457c4ae69a0dee322b55ea",
}


def entries_of(journal):
    return [json.loads(line) for line in journal.read_text().splitlines()]


def write_journal(journal, entries):
    """Writes entries with new hashes, as a machine would have done that computed them."""
    def text(entry):
        return json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    head, lines = "", []
    for entry in entries:
        body = {key: value for key, value in entry.items() if key != "h"}
        head = hashlib.sha256((head + text(body)).encode()).hexdigest()
        lines.append(text(body | {"h": head}))
    journal.write_text("\n".join(lines) + "\n")


def check_versions(ostro, top):
    """Outputs that move while the version of their kind stays would be served from old journals for other bits."""
    lab = Lab(ostro, top / "golden")
    words = random.Random(1)
    for folder, count in (("texts", 4000), ("held", 600)):
        for file in (lab.top / folder).iterdir():
            file.unlink()
        letters = "etaoinshrdlu"
        text = " ".join("".join(words.choices(letters, k=words.randint(1, 6))) for _ in range(count))
        (lab.top / folder / "a.txt").write_text(text)
    lab.write(PLAN.replace("[0.001, 0.01]", "[0.01]") +
              "  said: {sample: {of: $base, prompts: [e, ta], tokens: 6, temperature: 0.9, seed: 3}}\n"
              "  model: {export: {of: $base, dtype: bf16}}\n  bundle: {publish: {of: $base}}\n"
              "  capitals: {run: {program: [sh, -c, 'tr a-z A-Z < in/t/texts/a.txt > out/a'], inputs: {t: $texts}, outputs: [a]}}\n")
    lab.run()
    found = {}
    for entry in entries_of(lab.top / "small.lab/journal.jsonl"):
        if entry["kind"] == "done":
            recipe = json.loads(entry["recipe"])
            found.setdefault(f"{recipe['kind']} {recipe['version']}", entry["content"])
    for kind in sorted(found | GOLDEN):
        check(found.get(kind) == GOLDEN.get(kind),
              f"{kind}: the content of its output is {found.get(kind)}, and was {GOLDEN.get(kind)}. If outputs are meant to move, "
              "raise the version of the kind in ostro/experiment/plan/step_kinds.cc and write the new content into GOLDEN here")
    check(found.get("eval 1") != found.get("train 1"), "contents are compared with themselves")
    check_states(lab)


def check_states(lab):
    """The steps that take states of a run give what the commands give that do the same."""
    plan = (lab.top / "plan.yaml").read_text()
    lab.write(plan + "  kept: {eval: {of: $base, at: kept}}\n  early: {sample: {of: $base, prompts: [e], tokens: 6, at: 4}}\n")
    lab.run()
    run = lab.outputs("train")["base[rate=0.01]"]
    state = run / "checkpoints/step-00000012"

    def ostro(*words):
        done = subprocess.run([lab.ostro, *map(str, words)], cwd=lab.top, text=True, capture_output=True, check=False)
        check(done.returncode == 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    (lab.top / "prompts.txt").write_text("e\nta\n")
    words = ("--max_new_tokens", "6", "--json", "--batch", "prompts.txt")
    said = [json.loads(line) for line in ostro("sample", "--checkpoint", state, *words, "--temperature", "0.9", "--seed", "3").splitlines()]
    texts = [json.loads(line) for line in (lab.outputs("sample")["said[rate=0.01]"] / "texts.jsonl").read_text().splitlines()]
    check([(t["prompt"], t["text"], t["ids"]) for t in texts] == [(s["prompt"], s["text"], s["ids"]) for s in said], f"{texts} and {said}")
    early = json.loads(ostro("sample", "--checkpoint", run / "checkpoints/step-00000004", *words).splitlines()[0])
    texts = json.loads((lab.outputs("sample")["early[rate=0.01]"] / "texts.jsonl").read_text())
    check(texts["ids"] == early["ids"], "a sample of an earlier state")
    ostro("export", "--checkpoint", state, "--to", "hf", "--out", "exported", "--dtype", "bf16")
    model = lab.outputs("export")["model[rate=0.01]"]
    check({f.name: f.read_bytes() for f in model.iterdir()} == {f.name: f.read_bytes() for f in (lab.top / "exported").iterdir()}, "the exported model")
    check("equal" in ostro("verify", lab.outputs("publish")["bundle[rate=0.01]"] / "bundle"), "the bundle")
    kept = json.loads((lab.outputs("eval")["kept[rate=0.01]"] / "evaluation.json").read_text())
    last = json.loads((lab.outputs("eval")["score[rate=0.01]"] / "evaluation.json").read_text())
    check([e["step"] for e in kept["earlier"]] == [4, 8] and {k: v for k, v in kept.items() if k != "earlier"} == last, kept)
    check(len({e["loss"] for e in [*kept["earlier"], kept]}) == 3, "control: states have one loss")
    ostro("lab", "record", "plan.yaml", "--out", "record.sqlite")
    with contextlib.closing(sqlite3.connect(lab.top / "record.sqlite")) as record:
        rows = record.execute("SELECT step, loss FROM evaluations WHERE name LIKE 'kept%' ORDER BY step").fetchall()
        check(rows == [(e["step"], float.fromhex(e["loss"])) for e in [*kept["earlier"], kept]], rows)
        rows = record.execute("SELECT number, prompt, text, tokens FROM samples WHERE name LIKE 'said%' ORDER BY number").fetchall()
        check(rows == [(i + 1, s["prompt"], None, len(s["ids"])) for i, s in enumerate(said)], rows)
        rows = record.execute("SELECT name, step, dtype, provenance FROM models ORDER BY name").fetchall()
        hashes = [hashlib.sha256(f.read_bytes()).hexdigest() for f in (lab.outputs("publish")["bundle[rate=0.01]"] / "bundle/provenance.json",
                                                                    model / "provenance.json")]
        check(rows == [("bundle[rate=0.01]", 12, "f32", hashes[0]), ("model[rate=0.01]", 12, "bf16", hashes[1])], rows)
    lab.write(plan + "show_texts: [GPL-3.0-only, Apache-2.0]\n")
    ostro("lab", "record", "plan.yaml", "--out", "record.sqlite")
    with contextlib.closing(sqlite3.connect(lab.top / "record.sqlite")) as record:
        rows = record.execute("SELECT text FROM samples ORDER BY number").fetchall()
        check(rows == [(s["text"],) for s in said], f"texts that may be shown: {rows}")
    for more, error in (("early: {sample: {of: $base, prompts: [e], at: 7}}", "at 7: the chain of"),
                        ("early: {sample: {of: $base, prompts: [e], at: 7}}", "A fork at step 4 with trainer.checkpointer.keep '[{every: 7}]' has it after 3 steps, about "),
                        ("early: {export: {of: $base, at: 3}}", "A run from its beginning on with trainer.checkpointer.keep '[{every: 3}]' has it after 3 steps, about "),
                        ("early: {export: {of: $base, dtype: f64}}", "use f32, bf16 or f16"),
                        ("early: {eval: {of: $base, at: all}}", "use last or kept"),
                        ("early: {eval: {of: $base, sets: [web]}}", "one token store and no components"),
                        (f"early: {{sample: {{of: $base, prompts: [{'e ' * 100}]}}}}", "the model's context is 32")):
        lab.write(plan + f"  {more}\n")
        said = lab.run(status=1).stderr
        check(error in said, f"{more}: {said}")


def check_jobs(ostro, top):
    """Steps side by side give what they give one after another, also after kills. Returns the lab and its hash."""
    lab = Lab(ostro, top / "one")
    _, wanted = lab.ran()
    for number, jobs in enumerate(("2", "5")):
        other = Lab(ostro, top / f"jobs{number}")
        out = other.run("-j", jobs, OSTRO_THREADS="2").stdout
        check(out.splitlines()[-1] == f"lab hash: {wanted}", f"-j {jobs}: {out}")
        lines = out.splitlines()
        first, second = (lines.index(f"run     base[rate={rate}]: was never done") for rate in ("0.001", "0.01"))
        check(abs(first - second) == 1, f"the trainings were not side by side\n{out}")
        check(any("held-out loss" in log.read_text() for log in (other.top / "small.lab/logs").iterdir()), "the logs")
        check(other.ran() == ([], wanted), "a second run did steps")
    # The same recipe twice is done once.
    twice = Lab(ostro, top / "twice")
    twice.write(PLAN.replace("sweep: {rate: [0.001, 0.01]}", "sweep: {rate: {a: 0.01, b: 0.01}}"))
    out = twice.run("-j", "2").stdout
    check(out.count("run     base") == 1 and "has the same fingerprint" in out, out)
    # Kills of the driver while steps are side by side: nothing goes on behind it, and the same command does.
    for number in range(2 if not seed.full() else 6):
        rng = random.Random(f"{seed.seed()} side by side {number}")
        killed = Lab(ostro, top / f"killed{number}")
        for _ in range(3):
            most = rng.randint(1, 9)
            process = subprocess.Popen([killed.ostro, "lab", "run", "plan.yaml", "-j", "2"], cwd=killed.top, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            for count, _line in enumerate(process.stdout):
                if count == most:
                    break
            process.send_signal(signal.SIGKILL)
            process.wait()
            process.stdout.close()
        # A child that is not yet gone still holds the lab, so this is one driver at a time.
        for _ in range(1000):
            done = killed.start("run", "plan.yaml", "-j", "2")
            if "another process works on this lab" not in done.stderr:
                break
        check(done.returncode == 0 and done.stdout.splitlines()[-1] == f"lab hash: {wanted}", f"after kills: {done.stdout}{done.stderr}")
    # A step that fails stops what needs it, and nothing else.
    other.write(PLAN.replace("[0.001, 0.01]", "[0.001, -1]"))
    done = other.run("-j", "2", status=1)
    check("error: plan.yaml:9: step base[rate=-1]" in done.stderr and "done    score[rate=0.001]" in done.stdout, done.stdout + done.stderr)
    check("use 1 to 256" in lab.run("-j", "0", status=2).stderr, "-j 0")
    return lab, wanted


def check_stop(ostro, top, wanted):
    """A signal stops trainings that are side by side, which save; the same command goes on."""
    lab = Lab(ostro, top / "stopped")
    lab.write(PLAN.replace("$rate}", "$rate, trainer.num_train_steps: 10000000}"))
    process = subprocess.Popen([lab.ostro, "lab", "run", "plan.yaml", "-j", "2"], cwd=lab.top, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.startswith("run     base[rate=0.01]"):
            break
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate()
    check(process.returncode == 75 and "the same command goes on" in errors, f"{process.returncode} {errors}")
    lab.write(PLAN)
    check(lab.run("-j", "2").stdout.splitlines()[-1] == f"lab hash: {wanted}", "another plan after a stop")


def check_sanity(lab, wanted):
    """The small form has a folder of its own, and leaves the lab as it is."""
    (lab.top / "texts/rows.jsonl").write_text("".join(json.dumps({"text": f"row {i} of many"}) + "\n" for i in range(1000)))
    before = (lab.top / "small.lab/journal.jsonl").read_bytes()
    lab.run("--sanity", "--pin", "texts")
    rows = sorted((lab.top / "small.sanity.lab/rows/texts").iterdir())
    check([row.suffix for row in rows] == [".txt", ".txt", ".jsonl"], rows)
    check(len(rows[-1].read_text().splitlines()) == 198, "200 rows of a source, of which two are texts")
    check(rows[0].stat().st_size <= 16384, "the beginning of a text")
    check((lab.top / "small.lab/journal.jsonl").read_bytes() == before, "the lab's journal was written")
    check(lab.run("--sanity").stdout.count("\nrun ") == 0, "a second small run did steps")
    lab.write(PLAN.replace("$rate}", "$rate, trainer.num_train_steps: 5000}"))
    lab.run("--sanity")
    chain = [len((folder / "chain.jsonl").read_text().splitlines()) for folder in (lab.top / "small.sanity.lab/out").iterdir()
             if (folder / "chain.jsonl").exists()]
    check(max(chain) < 40, f"chains of {chain} lines: a training had more than 20 steps")
    lab.write(PLAN)
    (lab.top / "texts/rows.jsonl").unlink()
    check(lab.ran("--pin", "texts") == ([], wanted), "the lab after a small run")


def draw_head(head, share):
    """The journal's head after the line that begins an audit."""
    text = json.dumps({"kind": "draw", "share": share}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256((head + text).encode()).hexdigest()


def check_audit(lab, wanted):
    """A share of the skipped steps is done again. An output that another machine would not make is found."""
    out = lab.run("--audit", "1").stdout
    check(out.count("was done again, and has the content") == 10 and out.splitlines()[-1] == f"lab hash: {wanted}", out)
    journal = lab.top / "small.lab/journal.jsonl"
    check([e["kind"] for e in entries_of(journal)].count("audit") == 10, "audits are not in the journal")
    check("was done again" not in lab.run("--audit", "0").stdout, "a share of nothing")
    head = entries_of(journal)[-1]["h"]
    drawn = [int(hashlib.sha256((draw_head(head, "0.3") + f).encode()).hexdigest()[:13], 16) / 2**52 < 0.3
             for f in {e["fingerprint"] for e in entries_of(journal) if e["kind"] == "audit"}]
    check(lab.run("--audit", "0.3").stdout.count("was done again") == sum(drawn), f"drawn: {drawn}")
    before = entries_of(journal)[-1]["h"]
    lab.run("--audit", "0.0000001")
    check(entries_of(journal)[-1]["h"] != before, "an audit that drew nothing would draw nothing the next time")
    check("--audit 2: use a share" in lab.run("--audit", "2", status=2).stderr, "a share of 2")
    # A machine that computed wrongly: output, manifest and journal agree with each other.
    saved = shutil.copytree(lab.top / "small.lab", lab.top / "saved")
    folder = lab.outputs("eval")["score[rate=0.01]"]
    evaluation = folder / "evaluation.json"
    text = evaluation.read_text()
    wrong = text.replace('"loss":"0x1.', '"loss":"0x1.0', 1)
    check(wrong != text, text)
    evaluation.write_text(wrong)
    content = hashlib.sha256(wrong.encode()).hexdigest()
    manifest = folder.with_suffix(".json")
    manifest.write_text(manifest.read_text().replace(hashlib.sha256(text.encode()).hexdigest(), content))
    entries = entries_of(journal)
    for entry in entries:
        if entry.get("step") == "score[rate=0.01]" and entry["kind"] == "done":
            entry["content"], entry["manifest"] = content, hashlib.sha256(manifest.read_bytes()).hexdigest()
    write_journal(journal, entries)
    check(lab.ran("--check", "full")[0] == [], "what agrees with itself is skipped")
    done = lab.run("--audit", "1", status=1)
    check("when it is done again" in done.stderr and "have both outputs" in done.stderr and folder.name in done.stderr, done.stderr)
    check((lab.top / "small.lab/audit/out" / folder.name / "evaluation.json").read_text() == text, "the other output is not kept")
    check("gave two different outputs" in lab.run(status=1).stderr, "the alarm was forgotten")
    shutil.rmtree(lab.top / "small.lab")
    saved.rename(lab.top / "small.lab")
    check(lab.ran() == ([], wanted), "the lab as it was")


def check_gc(lab, wanted):
    """What earlier plans left is removed, and nothing else; what is made again gives what the journal has."""
    out = lab.top / "small.lab/out"
    lab.write(PLAN.replace("0.01]", "0.02]"))
    other = lab.ran()[1]
    lab.write(PLAN)
    (out / "0123456789abcdef").mkdir()
    (out / "0123456789abcdef/x").write_text("begun")
    (out / "notes.txt").write_text("mine")
    before = sorted(out.rglob("*"))
    dry = lab.start("gc", "plan.yaml", "--dry_run").stdout
    check(sorted(out.rglob("*")) == before and "would be removed" in dry and "begun, and never done" in dry, dry)
    done = lab.start("gc", "plan.yaml")
    check(done.returncode == 0 and done.stdout.splitlines()[:-1] == dry.splitlines()[:-1], done.stdout + done.stderr)
    check("base[rate=0.02], content" in done.stdout and "base[rate=0.01], content" not in done.stdout, done.stdout)
    check((out / "notes.txt").exists() and not (out / "0123456789abcdef").exists(), "another file of the folder")
    (out / "notes.txt").unlink()
    check("removed: 0 outputs" in lab.start("gc", "plan.yaml").stdout, "gc twice")
    check(lab.ran("--check", "full") == ([], wanted), "gc removed what is needed")
    lab.write(PLAN.replace("0.01]", "0.02]"))
    done = lab.start("gc", "plan.yaml")
    check(done.returncode == 2 and "`ostro lab run plan.yaml` comes first" in done.stderr, done.stdout + done.stderr)
    again = lab.ran()
    check(again == (["base[rate=0.02]", "cool[rate=0.02]", "score[rate=0.02]", "cooled[rate=0.02]"], other), f"made again: {again}")
    lab.write(PLAN)


def check_costs(lab):
    """A dry run computes what trainings take whose inputs are there: twice the steps take twice the FLOPs."""
    def flops(steps):
        lab.write(PLAN.replace("$rate}", f"$rate, trainer.num_train_steps: {steps}}}"))
        out = lab.run("--dry_run").stdout
        lines = [line for line in out.splitlines() if line.startswith("run     base")]
        check(len(lines) == 2 and all("MiB of memory" in line for line in lines) and "trainings to be done: 2" in out, out)
        return float(lines[0].split("; ")[1].split(" GFLOP")[0])

    before = sorted(lab.top.rglob("*"))
    check(abs(flops(2000) / flops(1000) - 2) < 0.01, "FLOPs of twice the steps")
    check(sorted(lab.top.rglob("*")) == before, "a dry run wrote files")
    lab.write(PLAN.replace("vocab_size: 300", "vocab_size: 290"))
    check("what they take is not known: 4" in lab.run("--dry_run").stdout, "trainings that wait")
    lab.write(PLAN)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-running-") as folder:
        top = pathlib.Path(folder)
        check_versions(args.ostro, top)
        lab, wanted = check_jobs(args.ostro, top)
        check_stop(args.ostro, top, wanted)
        check_audit(lab, wanted)
        check_sanity(lab, wanted)
        check_gc(lab, wanted)
        check_costs(lab)
        check_halving(args.ostro, top)
    print("equal: steps side by side, after kills and done again have the hashes of one after another")


if __name__ == "__main__":
    main()
