"""A sweep that is halved, for lab_running_test.py: who goes on, computed again from the evaluations; chains that are those of whole runs;
what is left out; kills, edits, audits, the record and a publication of it."""
import contextlib
import json
import random
import re
import shutil
import sqlite3
import subprocess

import seed
from lab_publish_test import edit_json, forged
from lab_test import PLAN, Lab
from program import Program, check

RATES = ["0.0001", "0.003", "0.01", "0.0003", "0.001"]
SWEPT = PLAN.replace("[0.001, 0.01]", f"[{', '.join(RATES)}]")
HALVED = SWEPT.replace("    train:", "    halving: {keep: 2/5, at: [4, 8]}\n    train:")


def loss_of(lab, step):
    return float.fromhex(json.loads((lab.outputs("eval")[step] / "evaluation.json").read_text())["loss"])


def kept_of(lab, at, members, share):
    """The members that go on, in the order of the plan: the lowest losses, of equal ones the first."""
    ranked = sorted(members, key=lambda rate: (loss_of(lab, f"base-{at}-eval[rate={rate}]"), RATES.index(rate)))
    return [rate for rate in members if rate in ranked[:max(1, int(len(members) * share))]]


def arrival(lab, at):
    """The members in the order in which their evaluations were done."""
    done = [json.loads(line).get("step", "") for line in (lab.top / "small.lab/journal.jsonl").read_text().splitlines()]
    return [step.split("=")[1][:-1] for step in done if step.startswith(f"base-{at}-eval[")]


def check_chains(lab, straight):
    """Members that go on have the chain of a run that was never halved; the others have its beginning."""
    runs, whole = lab.outputs("train"), straight.outputs("train")
    first = kept_of(lab, 4, RATES, 0.4)
    last = kept_of(lab, 8, first, 0.4)
    check(len(first) == 2 and len(last) == 1, f"{first}, then {last}")
    check(set(first) != set(arrival(lab, 4)[:2]), f"control: who came first would go on, too: {first} of {arrival(lab, 4)}")
    for rate in RATES:
        chain = (runs[f"base[rate={rate}]"] / "chain.jsonl").read_bytes()
        straight_chain = (whole[f"base[rate={rate}]"] / "chain.jsonl").read_bytes()
        steps = 12 if rate in last else 8 if rate in first else 4
        end = json.loads(chain.splitlines()[-1])
        check(straight_chain.startswith(chain) and (chain == straight_chain) == (rate in last), f"{rate}: another chain than without halving")
        check(end["kind"] == "checkpoint" and end["step"] == steps, f"{rate}: its chain ends with {end}, not after step {steps}")
    check(lab.outputs("eval").keys() - {f"base-{at}-eval[rate={r}]" for at, of in ((4, RATES), (8, first)) for r in of}
          == {f"{name}[rate={last[0]}]" for name in ("score", "cooled")}, f"evaluations: {sorted(lab.outputs('eval'))}")
    return first, last


def check_begun(lab, first):
    """A part goes on with the states of the part before it: its run's record has a session that begins at that rung."""
    for rate in first:
        for part, sessions in (("base-4", [0]), ("base-8", [0, 4])):
            record = json.loads((lab.outputs("train")[f"{part}[rate={rate}]"] / "run.json").read_text())
            begun = [session["from_step"] for session in record["sessions"]]
            check(begun == sessions, f"{part}[rate={rate}]: its sessions begin behind the steps {begun}, not {sessions}")


def check_references(lab):
    """No step of the plan names what halving makes."""
    lab.write(HALVED.replace("{eval: {of: $base}}", "{eval: {of: $base-4}}"))
    out = lab.run(status=2).stderr
    check("step score: $base-4: halving makes this step for itself; write $base, the training" in out, out)
    lab.write(HALVED)


def check_classes(lab, wanted):
    """A number over a halved sweep is replayed when all of it was done again; the run's page says what was."""
    def class_of(out):
        done = lab.start("report", "plan.yaml", "--out", out)
        check(done.returncode == 0, done.stderr)
        return json.loads((lab.top / out / "values.json").read_text())["values"]["lowest"]["class"]

    def pages(out):
        done = lab.start("site", "plan.yaml", "--out", out)
        check(done.returncode == 0, done.stderr)
        found = [page.read_text() for page in (lab.top / out).glob("run-*.html")]
        return [re.search("computed again: ([^<]*)<", page)[1] for page in found]

    (lab.top / "halved.txt").write_text("The lowest is {value lowest}.\n")
    lab.write(HALVED + 'queries: {lowest: "SELECT min(loss) FROM evaluations"}\nreport: halved.txt\n')
    check(class_of("before") == "recorded", "control: nothing was done again")
    check(set(pages("pages0")) == {"nothing"}, pages("pages0"))
    audited = lab.run("--audit", "1").stdout
    check(f"lab hash: {wanted}" in audited and "base-4-rung: was done again" in audited, audited)
    check(class_of("after") == "replayed", "all of it was done again")
    check(set(pages("pages1")) == {"all of it, by an audit of this lab"}, pages("pages1"))
    lab.write(HALVED)


def check_record(lab, first, last):
    done = lab.start("record", "plan.yaml", "--out", "record.sqlite")
    check(done.returncode == 0, done.stderr)
    with contextlib.closing(sqlite3.connect(lab.top / "record.sqlite")) as record:
        rows = record.execute("SELECT run, steps FROM runs").fetchall()
        check(sorted(rows) == sorted([(f"base[rate={r}]", 12 if r in last else 8 if r in first else 4) for r in RATES]
                                     + [(f"cool[rate={last[0]}]", 12)]), rows)
        rows = record.execute("SELECT name, run, step, loss, place, kept FROM rungs").fetchall()
        wanted = []
        for at, members, go_on in ((4, RATES, first), (8, first, last)):
            losses = {r: loss_of(lab, f"base-{at}-eval[rate={r}]") for r in members}
            wanted += [(f"base-{at}-rung", f"base[rate={r}]", at, losses[r], 1 + sum(l < losses[r] for l in losses.values()), int(r in go_on))
                       for r in members]
        check(sorted(rows) == sorted(wanted), f"{rows}, not {wanted}")
        rows = record.execute("SELECT name FROM evaluations ORDER BY name").fetchall()
        check(rows == [(f"cooled[rate={last[0]}]",), (f"score[rate={last[0]}]",)], rows)


def check_published(lab):
    """Pages and a publication, which decides the rungs again and makes the record again from them."""
    done = lab.start("publish", "plan.yaml", "--out", "published")
    check(done.returncode == 0, done.stderr)
    check(len(list((lab.top / "published/bundles").iterdir())) == 2, "a bundle for each run that went to its end")
    rungs = [path for path in (lab.top / "published/small.lab/out").glob("*/rung.json")]
    check(len(rungs) == 2 and (lab.top / "published/site/index.html").exists(), f"{rungs}")
    verified = subprocess.run([lab.ostro, "verify", "published"], cwd=lab.top, text=True, capture_output=True, check=False)
    check(verified.returncode == 0 and "2 rungs, decided again" in verified.stdout, verified.stdout + verified.stderr)
    published = lab.top / "published"

    def member_of_no_plan(folder):
        edit_json(folder / rungs[0].relative_to(published), lambda rung: rung["members"].append(rung["members"][0] | {"run": "base-4[rate=7]"}))

    forged(Program(lab.ostro, lab.top), published, "a member of no plan", member_of_no_plan, "rung.json")
    shutil.rmtree(published)


def check_halving(ostro, top):
    straight = Lab(ostro, top / "straight")
    straight.write("".join(line + "\n" for line in SWEPT.splitlines() if not line.startswith(("  cool", "  score"))))
    straight.run()
    lab = Lab(ostro, top / "halved")
    lab.write(HALVED)
    lab.run("-j", "2", OSTRO_THREADS="2")
    first, last = check_chains(lab, straight)
    again, wanted = lab.ran()
    check(again == [], f"a second run did {again}")
    out = lab.run().stdout.splitlines()
    lost = next(rate for rate in RATES if rate not in first)
    check(any(line.startswith(f"left    score[rate={lost}]: base[rate={lost}] was stopped at the rung base-4-rung after step 4: place ") for line in out), out)
    why = lab.start("why", "plan.yaml", f"base[rate={lost}]").stdout
    check("done: was stopped at the rung base-4-rung after step 4: place " in why and " of 5 by held-out loss " in why, why)
    check_begun(lab, first)
    check_record(lab, first, last)
    check(lab.start("check", "plan.yaml", "--full").returncode == 0, "lab check")
    if seed.full():
        check_published(lab)
        check_classes(lab, wanted)
        # What a whole run has done already is not done again.
        straight.write(HALVED)
        ran, same = straight.ran()
        check(same == wanted and f"base[rate={last[0]}]" not in ran, ran)
        small = lab.run("--sanity").stdout
        check("left    score" in small, small)
    check_references(lab)
    # More go on: only what they lack is done.
    lab.write(HALVED.replace("2/5", "3/5"))
    ran, _ = lab.ran()
    check(not [step for step in ran if step.startswith("base-4[") or step.startswith("base-4-eval")], ran)
    check(len([step for step in ran if step.startswith("base-8[")]) == 1, ran)
    lab.write(HALVED)
    check(lab.ran() == ([], wanted), "the lab as it was")
    # Kills at drawn places, then the same command, side by side or not.
    points = [("step", 30), ("chain_append", 40), ("lab_step", 14), ("manifest", 14), ("journal_append", 20)]
    for number in range(1 if not seed.full() else 6):
        rng = random.Random(f"{seed.seed()} halving {number}")
        killed = Lab(ostro, top / f"halved{number}")
        killed.write(HALVED)
        for name, most in rng.sample(points, 3):
            done = killed.start("run", "plan.yaml", OSTRO_FAILPOINT=f"{name}:{rng.randint(1, most)}")
            check(done.returncode in (0, -9), f"{name}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        check(killed.ran()[1] == wanted, f"after kills: another lab hash than {wanted}")
    # Costs: all members to the first rung, then at most as many as may go on.
    lab.write(HALVED.replace("0.0001", "0.0002"))
    out = lab.run("--dry_run").stdout
    check("of which these go on at most: 1 of 5 of base, 2 of 5 of base-8; " in out and "trainings to be done: 1, " in out, out)
    for old, new, error in (("[4, 8]", "[4, 6]", "plan.yaml:9: step base-4[rate=0.0001]: halving.at: 6: the training keeps no state there"),
                            ("[4, 8]", "[4, 12]", "plan.yaml:9: step base-4[rate=0.0001]: halving.at: 12: the training has 12 steps, and a rung is before the last one")):
        lab.write(HALVED.replace(old, new))
        done = lab.run(status=1)
        check(error in done.stderr, done.stderr)
