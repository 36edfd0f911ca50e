#!/usr/bin/env python3
"""Tests the paper of a lab: equal bytes in another folder, time zone and language, with other threads and another user; planted edits
named by row and value; numbers typed by hand; classes that cannot be raised; hashes and values, computed again by Python. Typst is
that of .venv or python3; where neither has it, a module in its place shows what Ostro gives it and does with what it gives.

    lab_paper_test.py --ostro PROGRAM [--python DIR]
"""
import argparse
import hashlib
import json
import math
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import tempfile

import guide_test
import other_user
from lab_test import PLAN, Lab, check

TYPST = "0.15.0"
QUERIES = {
    "best": ("SELECT min(bits_per_byte) FROM evaluations", "recorded"),
    "mean": ("SELECT avg(loss) FROM chain", "recorded"),
    "tokens": ("SELECT sum(tokens) FROM chain", "recorded"),
    # What a person said, by ways that could hide it.
    "licences": ("SELECT count(DISTINCT l) FROM (SELECT licence AS l FROM sources)", "declared"),
    "hidden": ("WITH c AS (SELECT max(length(licence)) AS n FROM sources) SELECT min(loss) + 0 * (SELECT n FROM c) FROM chain", "declared"),
    "filtered": ("SELECT max(loss) FROM chain WHERE EXISTS (SELECT 1 FROM sources WHERE licence = 'none') OR step > 3", "declared"),
    # What the query itself says.
    "constant": ("SELECT 0.25 FROM chain LIMIT 1", "declared"),
    "added": ("SELECT 0.5 + 0 * max(loss) FROM chain", "declared"),
}
REPORT = PLAN + "queries:\n" + "".join(f'  {name}: "{sql}"\n' for name, (sql, _) in QUERIES.items()) + """
figures:
  loss: "SELECT run, step, loss FROM chain ORDER BY run, step"
  tokens: "SELECT run, step, tokens FROM chain ORDER BY run, step"
tables: {scores: "SELECT name, loss FROM evaluations ORDER BY name"}
report: paper/paper.typ
"""
PAPER = """#import "ostro.typ": *
#set page(width: 21cm)
#set heading(numbering: "1.")

= 1.1 Rates <sec:1>
With the best rate there are #num("best", digits: 4) bits per byte, of 41 runs @sec:1.
#fig("loss", caption: [The loss falls by 0.42.])
#tab("scores")
#include "parts/more.typ"
"""
MORE = """#import "../ostro.typ": num
The mean is #num("mean")#footnote[Over 43 steps.], and $ x_1 < 44 $.
// 5 words, `6`
#let note(x) = [#x of 4,500]
#image("../dot.svg", width: 3pt)
"""
TYPED = ["paper.typ:6: 41", "paper.typ:7: 0.42", "parts/more.typ:2: 43", "parts/more.typ:2: 44", "parts/more.typ:4: 4,500",
         "plan.yaml: queries.hidden: 0", "plan.yaml: queries.constant: 0.25", "plan.yaml: queries.added: 0.5", "plan.yaml: queries.added: 0"]
STAND_IN = '''
import hashlib, os
class TypstError(RuntimeError):
    message = "panicked with: the plan has no query \\\\"bset\\\\""
    diagnostic = "  \\u250c\\u2500 ostro.typ:4:2\\n  \\u250c\\u2500 paper.typ:6:30\\n"
    hints = []
def compile_with_warnings(main, root, ignore_system_fonts, format, timestamp, package_path, package_cache_path):
    assert ignore_system_fonts and timestamp == 0 and not os.path.exists(package_path)
    files = sorted(os.path.relpath(os.path.join(d, f), root) for d, _, names in os.walk(root) for f in names)
    if "bset" in open(root + "/paper.typ").read():
        raise TypstError()
    hashes = [f + hashlib.sha256(open(root + "/" + f, "rb").read()).hexdigest() for f in files]
    return ("%PDF " + os.path.basename(main) + " " + format + "</head>" + " ".join(hashes)).encode(), []
'''


def stand_in(top, version):
    package = top / f"python{version}"
    (package / f"typst-{version}.dist-info").mkdir(parents=True)
    (package / f"typst-{version}.dist-info/METADATA").write_text(f"Metadata-Version: 2.1\nName: typst\nVersion: {version}\n")
    (package / "typst.py").write_text(STAND_IN.replace('\\\\"', '\\"'))
    return str(package)


def find_typst(given):
    """The folder of a Python that has the pinned Typst, or None."""
    places = [given] if given else [pathlib.Path(__file__).resolve().parents[2] / ".venv/bin", pathlib.Path("/usr/bin")]
    for place in places:
        words = [str(pathlib.Path(place) / "python3"), "-c", f"import typst, sys; sys.exit(typst.__version__ != '{TYPST}')"]
        if pathlib.Path(words[0]).exists() and subprocess.run(words, check=False, capture_output=True).returncode == 0:
            return str(place)
    return None


def report(lab, *words, status=0, error="", **variables):
    done = lab.start("report", "plan.yaml", "--out", "report", *words, **variables)
    check(done.returncode == status and error in done.stderr, f"{words} {error}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def table_hash(db, table):
    out = hashlib.sha256()
    for row in db.execute(f"SELECT * FROM {table}"):
        for value in row:
            if value is None:
                out.update(b"n")
            elif isinstance(value, int):
                out.update(b"i" + struct.pack("<q", value))
            elif isinstance(value, float):
                out.update(b"r" + struct.pack("<d", value))
            else:
                out.update(b"t" + struct.pack("<Q", len(value.encode())) + value.encode())
    return out.hexdigest()


def check_values(lab):
    """values.json, computed again by Python's sqlite3 and math.fsum."""
    values = json.loads((lab.top / "report/values.json").read_text())
    db = sqlite3.connect(lab.top / "report/record.sqlite")
    for name, python in (("sum", lambda v: math.fsum(v) if any(isinstance(x, float) for x in v) else sum(v)),
                         ("avg", lambda v: math.fsum(v) / len(v))):
        db.create_aggregate(name, 1, type("A", (), {"__init__": lambda self: setattr(self, "all", []),
                                                    "step": lambda self, x: self.all.append(x), "finalize": lambda self, f=python: f(self.all)}))
    for name, (sql, wanted) in QUERIES.items():
        entry, (theirs,) = values["values"][name], db.execute(sql).fetchone()
        check(entry["value"] == repr(theirs), f"{name}: {entry['value']}, and Python has {theirs!r}")
        check(entry["class"] == wanted, f"{name} is {entry['class']}, not {wanted}")
        if isinstance(theirs, float):
            check(entry["rounded"] == [f"{theirs:.{d}f}" for d in range(10)], f"{name}: {entry['rounded']}")
    check(values["values"]["hidden"]["reads"] == ["chain", "sources"], values["values"]["hidden"])
    check({"chain", "evaluations", "sources"} <= set(values["inputs"]), values["inputs"])
    for table, theirs in values["inputs"].items():
        check(table_hash(db, table) == theirs, f"the hash of the table {table}")
    check(values["typed"] == TYPED, values["typed"])
    said = report(lab, "--value", "best").stdout.splitlines()
    check(said[0] == values["values"]["best"]["value"] and said[1] == "class: recorded" and
          said[3] == f"reads: evaluations {values['inputs']['evaluations']}", said)
    report(lab, "--value", "bset", status=2, error='the nearest is "best"')


def check_edits(lab):
    """Each planted edit is named."""
    folder = lab.top / "report"
    report(lab, "--check")
    altered = lab.top / "altered.sqlite"
    shutil.copy(folder / "record.sqlite", altered)
    with sqlite3.connect(altered) as db:
        db.execute("UPDATE chain SET loss = loss - 0.001 WHERE rowid = 3")
    values = (folder / "values.json").read_text()
    best = json.loads(values)["values"]["best"]["value"]
    for name, other, error in (
            ("record.sqlite", altered.read_bytes(), "record.sqlite: chain: row 3: loss is "),
            ("values.json", values.replace(f'"value": "{best}"', '"value": "0.5"', 1).encode(), f"values.best.value: is 0.5, not {best}"),
            ("values.json", values.replace('"class": "declared"', '"class": "recorded"', 1).encode(), ".class: is recorded, not declared"),
            ("loss.svg", (folder / "tokens.svg").read_bytes(), "loss.svg: its bytes are those of tokens.svg"),
            ("parts/more.typ", MORE.replace("43", "53").encode(), "parts/more.typ: is not what the lab gives"),
            ("report.pdf", (folder / "report.pdf").read_bytes() + b"\n", "report.pdf: is not what the lab gives"),
            ("report.html", b"<p>", "report.html: is not what the lab gives"),
            ("report.lock", (folder / "report.lock").read_bytes().replace(TYPST.encode(), b"0.14.0"), "report.lock: is not what")):
        before = (folder / name).read_bytes()
        check(before != other, f"{name}: nothing was changed")
        (folder / name).write_bytes(other)
        report(lab, "--check", status=1, error=error)
        (folder / name).write_bytes(before)
    (lab.top / "paper/parts/more.typ").write_text(MORE.replace("44", "45"))
    report(lab, "--check", status=1, error="typed[3]: is parts/more.typ:2: 44, not parts/more.typ:2: 45")
    (lab.top / "paper/parts/more.typ").write_text(MORE)
    report(lab, "--check")


def check_latex(lab):
    done = report(lab, "--latex")
    check(done.stdout.startswith("report: 15 files"), done.stdout)
    macros = (lab.top / "report/latex/macros.tex").read_text()
    values = json.loads((lab.top / "report/values.json").read_text())["values"]
    for line in (f"\\newcommand{{\\ostrobest}}{{{values['best']['value']}}}", f"\\newcommand{{\\ostrobestdigitsfour}}{{{values['best']['rounded'][4]}}}",
                 f"\\newcommand{{\\ostrotokens}}{{{values['tokens']['value']}}}"):
        check(line in macros.splitlines(), f"{line} is not in\n{macros}")
    check((lab.top / "report/latex/loss.pdf").read_bytes().startswith(b"%PDF"), "latex/loss.pdf")
    report(lab, "--check")


def check_elsewhere(lab, top, found):
    """The same bytes in another folder, time zone and language, with other threads, and made by another user."""
    other = Lab(lab.ostro, top / "other folder")
    shutil.rmtree(other.top)
    shutil.copytree(lab.top, other.top, ignore=shutil.ignore_patterns("report"))
    settings = {"TZ": "Asia/Tokyo", "LC_ALL": "C", "LANG": "C", "HOME": str(other.top), "USER": "other", "OSTRO_THREADS": "2", "RAYON_NUM_THREADS": "1",
                "SOURCE_DATE_EPOCH": "1234567890", "TMPDIR": str(other.top)} | found
    words, reason = other_user.other_user(lab.ostro, __file__)
    env = {k: v for k, v in os.environ.items() if not k.startswith("OSTRO_")} | settings
    for user in ([], words):
        shutil.rmtree(other.top / "report", ignore_errors=True)
        if user:
            other_user.give(other.top, top)
            # The python3 of .venv may be a link into a folder of root: the user takes its own, with Typst beside it.
            if "PATH" in found:
                env |= {"PATH": os.environ["PATH"], "PYTHONPATH": guide_test.typst_settings(top)["PYTHONPATH"]}
            reason = "" if other_user.imports(user, env, "typst") else "its python3 has no Typst"
        if user is None or (user and reason):
            print(f"NOT RUN: the paper as another user: {reason}")
            continue
        done = subprocess.run([*user, lab.ostro, "lab", "report", "plan.yaml", "--out", "report"], cwd=other.top, env=env, text=True, capture_output=True,
                              check=False)
        check(done.returncode == 0, f"{user}: {done.stdout}{done.stderr}")
        for file in sorted(p.relative_to(lab.top) for p in (lab.top / "report").rglob("*") if p.is_file()):
            check((lab.top / file).read_bytes() == (other.top / file).read_bytes(), f"{user}: {file} differs")
        check((other.top / "report/values.json").stat().st_uid == (other_user.NUMBER if user else os.geteuid()), f"{user}: who made the report")
        check(not list(other.top.glob("ostro-paper-*")), "a folder of Typst's was left")


def files_of(folder):
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def check_made_by_run(lab, old):
    """A plan that says where report and pages go: `ostro lab run` makes them, the same files as the commands, and does no step again."""
    lab.write(REPORT.replace("report: paper/paper.typ", "report: {paper: paper/paper.typ, out: made/report}\nsite: {out: made/site}"))
    done = lab.start("run", "plan.yaml", PYTHONPATH=old, PATH=os.environ["PATH"])
    check(done.returncode == 1 and "report.pdf, report.html, report.lock were not made: a paper needs typst" in done.stderr, done.stdout + done.stderr)
    check(done.stdout.splitlines()[-1].startswith("lab hash: ") and "without the paper itself" in done.stdout, done.stdout)
    made = files_of(lab.top / "made")
    check({"report/values.json", "report/loss.svg", "site/index.html", "site/report/report.html"} <= made.keys(), f"without Typst: {made.keys()}")
    wanted = files_of(lab.top / "report")
    for time in ("first", "second"):
        out = lab.run().stdout.splitlines()
        check({line.split()[0] for line in out} == {"done", "report:", "site:", "lab"}, out)
        made = files_of(lab.top / "made")
        for place in ("report", "site/report"):
            found = {name.removeprefix(place + "/"): data for name, data in made.items() if name.startswith(place + "/")}
            check(found == wanted, f"{time}: made/{place} has not what `ostro lab report` makes: {found.keys() ^ wanted.keys()}")
        check(time == "first" or made == before, "a second run made other files")
        before = made
    lab.write(REPORT)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--python", help="a folder with a python3 that has typst")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ostro-lab-paper-") as folder:
        top = pathlib.Path(folder)
        lab = Lab(args.ostro, top / "lab")
        lab.write(REPORT)
        (lab.top / "paper/parts").mkdir(parents=True)
        (lab.top / "paper/paper.typ").write_text(PAPER)
        (lab.top / "paper/parts/more.typ").write_text(MORE)
        (lab.top / "paper/dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 2 2"><rect width="2" height="2"/></svg>\n')
        lab.run()
        old = stand_in(top, "0.1")
        done = report(lab, status=1, error=f"and python3 has typst 0.1: python3 -m pip install typst=={TYPST}", PYTHONPATH=old)
        check({"values.json", "loss.svg", "paper.typ", "ostro.typ"} <= {f.name for f in (lab.top / "report").iterdir()}, "files without Typst")
        check(not (lab.top / "report/report.pdf").exists() and "report.pdf, report.html, report.lock were not made" in done.stderr, done.stderr)
        check(done.stdout.splitlines()[1:] == [f"typed by hand: {place}" for place in TYPED], done.stdout)
        place = find_typst(args.python)
        found = {"PATH": f"{place}:{os.environ['PATH']}"} if place else {"PYTHONPATH": stand_in(top, TYPST)}
        start = lab.start
        lab.start = lambda *words, **variables: start(*words, **found | variables)
        report(lab)
        if place:
            page = (lab.top / "report/report.html").read_text()
            check('href="#ostro-values-best"' in page and 'id="ostro-values-best"' in page and "<math" in page and "default-src 'none'" in page, page[-3000:])
            check((lab.top / "report/report.pdf").read_bytes().startswith(b"%PDF-"), "report.pdf")
        check_values(lab)
        check_elsewhere(lab, top, found)
        check_made_by_run(lab, old)
        check_edits(lab)
        check_latex(lab)
        (lab.top / "paper/paper.typ").write_text(PAPER.replace('num("best"', 'num("bset"'))
        report(lab, status=2, error='paper/paper.typ:6: the plan has no query "bset"')
    print("the real Typst" if place else "NOT RUN: Typst itself; neither .venv nor python3 has it. A module in its place", "gave equal bytes, and each edit was named")


if __name__ == "__main__":
    main()
