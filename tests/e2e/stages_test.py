#!/usr/bin/env python3
"""Tests a run that is amended in phases, as a user does it: a second phase adds a component of data that did not exist before, and has
a learning rate that counts from its own first step.

`ostro train --amend --dry_run` says what would change and changes nothing; batches of the first phase are the same bytes by its own
configuration and by the run's config.yaml, and `data find` finds the added texts in the second phase only; learning rates are those of
a closed form; verify, a bundle and tools/verify_chain.py take the run, and a changed root of the added data in a chain is found.

    stages_test.py --ostro PROGRAM
"""
import argparse
import hashlib
import json
import pathlib
import random
import subprocess
import tempfile

from program import Program, check

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS, END, PEAK, AGAIN = 6, 12, 1e-3, 4e-3
CONFIG = """
data:
  cache_dir: cache
  vocab_size: 300
  components: {{{components}}}
  train_weights: {weights}
  mixture_block_size: 8
model: {{seq_len: 24, hidden_dim: 16, intermediate_dim: 16, num_layers: 1, num_heads: 2, num_kv_heads: 1}}
optimizer: {{{optimizer}}}
trainer: {{id: run, train_batch_size: 4, num_train_steps: {steps}, steps_per_eval: 0, checkpointer: {{keep: [{{every: 3}}]}}}}
"""
WEB = "web: {train_urls: [web], validation_fraction: 0.1}"
BETTER = "better: {train_urls: [better], validation_fraction: 0}"


def write_texts(root):
    rng = random.Random(5)
    for folder, words in (("web", "sun moon star wind rain sky".split()), ("better", "proof lemma set field ring map".split())):
        (root / folder).mkdir()
        for i in range(20):
            (root / folder / f"{i}.txt").write_text(" ".join(rng.choice(words) for _ in range(120)))


def batch(program, config, step):
    """What a step reads: the ids, and the files that they come from."""
    value = json.loads(program.run("data", "batch", "--config", config, "--step", str(step), "--explain", "--json"))
    files = {document["file"] for sequence in value["sequences"] for document in sequence["source"]["documents"]}
    return [(s["tokens"], s["targets"], s["loss_mask"]) for s in value["sequences"]], files


def expected_rate(step):
    """The first phase: constant. The second: two steps up from its rate, then linearly down to a tenth in four."""
    if step < STEPS:
        return PEAK
    i = step - STEPS
    return PEAK + (AGAIN - PEAK) * (i / 2) if i < 2 else AGAIN + (AGAIN * 0.1 - AGAIN) * ((i - 2) / 4)


def check_chain(root, run):
    """tools/verify_chain.py, which needs NumPy, takes the run's chain, and no other root of the data that were there."""
    if not (ROOT / ".venv/installed.sha256").exists():
        return print("not compared with tools/verify_chain.py: .venv is not set up (scripts/setup.sh --python)")
    tool = [ROOT / "scripts/venv_python.sh", ROOT / "tools/verify_chain.py"]
    done = subprocess.run([*tool, str(root / run)], capture_output=True, text=True, check=False, cwd=ROOT)
    check(done.returncode == 0 and "1 amends" in done.stdout, f"verify_chain.py: {done.stdout}{done.stderr}")
    lines, head, path = [], "", root / run / "chain.jsonl"
    honest = path.read_text()
    for line in honest.splitlines():
        entry = json.loads(line)
        del entry["h"]
        if entry["kind"] == "amend":
            entry["difference"]["data_roots"]["to"]["web"] = "0" * 64
        text = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        head = hashlib.sha256((head + text).encode()).hexdigest()
        lines.append(json.dumps({**entry, "h": head}, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n")
    path.write_text("".join(lines))
    done = subprocess.run([*tool, str(root / run)], capture_output=True, text=True, check=False, cwd=ROOT)
    check(done.returncode == 1 and "data_roots are not those of before" in done.stdout, f"a forged root: {done.stdout}{done.stderr}")
    path.write_text(honest)


def check_run(program, root):
    write_texts(root)
    (root / "one.yaml").write_text(CONFIG.format(components=WEB, weights="{web: 1}", steps=STEPS,
                                                 optimizer=f"learning_rate: {PEAK}, lr_schedule: constant, warmup: 0"))
    (root / "two.yaml").write_text(CONFIG.format(
        components=f"{WEB}, {BETTER}", weights="{web: 0.25, better: 0.75}", steps=END,
        optimizer=f"learning_rate: {AGAIN}, lr_schedule: linear, min_lr_ratio: 0.1, warmup: 2, warmup_from: {PEAK}, schedule_from: {STEPS}"))
    program.run("train", "--config", "one.yaml")
    before = [batch(program, "one.yaml", step) for step in range(STEPS)]
    chain = root / "runs/run/chain.jsonl"
    was = chain.read_text()

    told = program.run("train", "--config", "two.yaml", "--amend", "--dry_run")
    for part in (f"amend of runs/run after step {STEPS}", "data.components.better is added", "optimizer.schedule_from from absent to 6",
                 "data better: "):
        check(part in told, f"--dry_run does not say {part!r}: {told}")
    refused = program.run("train", "--config", "two.yaml", code=2)
    check("add --amend" in refused, refused)
    refused = program.run("train", "--config", "two.yaml", "--amend", "--optimizer.schedule_from", "12", code=2)
    check("optimizer.schedule_from: 12 is no step of a run of 12" in refused, refused)
    check(chain.read_text() == was, "the chain changed before the amend")

    program.run("train", "--config", "two.yaml", "--amend")
    check(chain.read_text().startswith(was), "the amend changed what was there")
    rates = [row["train/learning_rate"] for row in map(json.loads, (root / "runs/run/metrics.jsonl").read_text().splitlines())
             if "train/learning_rate" in row]
    check(len(rates) == END, f"{len(rates)} rates")
    for step, rate in enumerate(rates):
        check(abs(rate - expected_rate(step)) < 1e-6 * PEAK, f"step {step}: the rate is {rate}, not {expected_rate(step)}")

    own = "runs/run/config.yaml"
    check([batch(program, own, step) for step in range(STEPS)] == before, "batches before the amend are others")
    files = set().union(*(batch(program, own, step)[1] for step in range(STEPS, END)))
    check({name.split("/")[-2] for name in files} == {"web", "better"}, f"behind the amend: {files}")
    added = sorted(name for name in files if "better" in name)[0]
    uses = json.loads(program.run("data", "find", "runs/run", "--document", f"{added}:1", "--json"))
    steps = [use["step"] for row in uses["rows"] for use in row["uses"]]
    check(steps and min(steps) >= STEPS, f"{added} is used in steps {steps}")

    program.run("verify", "runs/run")
    check_chain(root, "runs/run")
    program.run("publish", "runs/run", "--out", "bundle")
    program.run("verify", "bundle")
    renamed = "another: {train_urls: [better], validation_fraction: 0}"
    (root / "three.yaml").write_text((root / "two.yaml").read_text().replace(WEB, renamed).replace("web: 0.25", "another: 0.25"))
    refused = program.run("train", "--config", "three.yaml", "--amend", "--trainer.num_train_steps", "14", code=2)
    check("web would be removed; an amend can only add components" in refused, refused)
    check_chat_template(program, root)


def check_chat_template(program, root):
    """A chat component that an amend adds brings its template, which the run keeps for exports."""
    pairs = [{"prompt": f"sun {n}", "response": "moon"} for n in range(40)]
    chats = [{"messages": [{"role": "user", "content": f"wind {n}"}, {"role": "assistant", "content": "rain"}]} for n in range(40)]
    for folder, rows in (("pairs", pairs), ("chat", chats)):
        (root / folder).mkdir()
        (root / folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    template = "{% for m in messages %}{{ m.role }}: {% generation %}{{ m.content }}{% endgeneration %}\n{% endfor %}"
    first = "pairs: {train_urls: [pairs], validation_fraction: 0, format: {type: supervised}}"
    chat = f"talk: {{train_urls: [chat], validation_fraction: 0, format: {{type: chat, chat_template: {json.dumps(template)}}}}}"
    for name, components, weights, steps in (("five", first, "{pairs: 1}", 2), ("six", f"{first}, {chat}", "{pairs: 0.5, talk: 0.5}", 4)):
        text = CONFIG.format(components=components, weights=weights, steps=steps, optimizer="learning_rate: 0.01")
        (root / f"{name}.yaml").write_text(text.replace("id: run", "id: talks").replace("cache_dir: cache", "cache_dir: talks").replace("vocab_size: 300", "tokenizer: runs/run/tokenizer.json"))
    program.run("train", "--config", "five.yaml")
    kept = root / "runs/talks/chat_template.jinja"
    check(not kept.exists(), "a run without chats has a template")
    program.run("train", "--config", "six.yaml", "--amend")
    check(kept.exists() and kept.read_text() == template, "the template of the added component was not kept")
    program.run("verify", "runs/talks")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        check_run(Program(options.ostro, folder), pathlib.Path(folder))
    print("a run in two phases: added data, rates, batches, verify, bundle")


if __name__ == "__main__":
    main()
