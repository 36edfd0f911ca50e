"""The results file: sections that are measured one by one, each with its date, commit and command, and one table of goals.

A section that is measured again takes the place of the old one, but one of few turns (--quick) not that of a whole one; the
others stay. What is kept is JSON beside the page (RESULTS.json beside RESULTS.md), which is written anew after every section,
so that a run that is stopped loses one.
"""
import json, os, pathlib, sys

ORDER = ("Training", "Prices", "Families", "Ablation", "Mixtures", "Workers", "Audits", "Products and attention",
         "Products of int8", "Growth of a step", "Pages", "Products of few rows", "Decoding", "Choosing tokens", "Generation", "Serving", "Data", "Text to token store", "Tokenizers",
         "Labs")

HEAD = """# Benchmark results

`scripts/bench.sh` writes this page, section by section. The first lines of the modules that `bench/compare.py` names say what
the figures mean and how they are measured.

- Compare ratios, not absolute figures. Absolute figures change with the other load on the machine.
- Ratios are medians of 7 pairs, unless another number stands beside them. A peer that is far behind the fastest of a case, and
  that no goal names, has 2 pairs. Starts are the median of 3 with a warm cache, and one start with a cold one.
- Where training is compared, the losses of both sides are equal to 4 digits in f32 and to 2 in bf16. Levanter draws its own
  initial weights; its loss is equal to 1 digit. A section in which losses differ more says so in bold at its end.
- Levanter does not run the drawn sizes. If the processor has no instructions for bf16, PyTorch's bf16 is run for nano only.
"""


def table(head, rows):
    return ["| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *rows]] + [""]


class Results:
    def __init__(self, page, machine):
        self.page, self.data = pathlib.Path(page), pathlib.Path(page).with_suffix(".json")
        self.machine, self.sections = machine, {}
        if self.data.exists():
            known = json.loads(self.data.read_text())
            if known["machine"] != machine:
                sys.exit(f"error: {self.page} has results of {known['machine']}, this is {machine}: ratios of two machines do "
                         "not belong in one table; give another file with --out")
            self.sections = known["sections"]
        elif self.page.exists():
            sys.exit(f"error: {self.page} stands without {self.data.name}, from which it is written, and would be lost; move it "
                     "away or give another file with --out")

    def put(self, title, made, lines, goals, failed, quick):
        if quick and title in self.sections and not self.sections[title]["quick"]:
            print(f"{self.page} keeps its section {title!r}, which has more turns", flush=True)
            return
        self.sections[title] = dict(made=made, lines=lines, goals=goals, failed=failed, quick=quick)
        self.page.parent.mkdir(parents=True, exist_ok=True)
        place = {name: i for i, name in enumerate(ORDER)}
        self.sections = dict(sorted(self.sections.items(), key=lambda s: place[s[0].split(":")[0]]))
        for path, text in ((self.data, json.dumps(dict(machine=self.machine, sections=self.sections), indent=1)),
                           (self.page, self.text())):
            part = path.with_name(path.name + ".part")
            part.write_text(text.rstrip("\n") + "\n")
            os.replace(part, path)

    def text(self):
        goals = [goal for s in self.sections.values() for goal in s["goals"]]
        held = sum(goal[3] == "yes" for goal in goals)
        lines = [HEAD, f"{self.machine}.", "", f"## Goals: {held} of {len(goals)} held", ""]
        lines += table(["case", "goal", "seen", "held", "settings"], goals)
        for title, s in self.sections.items():
            lines += [f"## {title}", "", s["made"], "", *s["lines"]]
            lines += [line for text in s["failed"] for line in (f"**{text}**", "")]
        return "\n".join(lines)
