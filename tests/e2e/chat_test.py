#!/usr/bin/env python3
"""Tests the worked example of docs/guide/chat.md: text, conversations, pairs and ready-made ids in one run.

Its commands print what the page says; every target and loss weight of its batches is derived again from the rows;
packing is the greedy one; a run that was killed, and one by two workers, have the same chain; what does not count does
not move the loss.

    chat_test.py --ostro BINARY [--update]
"""
import argparse
import array
import functools
import json
import operator
import pathlib
import re
import sys

from readme_test import ROOT, compare, examples, run

for folder in ("fault", "matrix"):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / folder))
from harness import Failure, Workspace, check, in_order, killed
from runs import corpus

PAGE = ROOT / "docs/guide/chat.md"
SEQ_LEN, EOS = 128, "<|endoftext|>"
CONFIG = ("--config", "sft.yaml")
PLAIN = ("--data.components.chat.format.mask_user_turns", "false", "--data.components.chat.cache_dir", "cache/plain")


def files_of(page):
    """The files that the page's code blocks name behind their language."""
    return re.findall(r"^```\w+ (\S+)\n(.*?)^```$", page, re.M | re.S)


class Numbers:
    """The same on every machine and with every Python."""

    def __init__(self, state):
        self.state = state

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def words(self, most):
        words = ["sun", "moon", "naïve", "東京", "x = y;", '"so"', "end."]
        return " ".join(words[self.below(len(words))] for _ in range(1 + self.below(most)))


def serial(values):
    """Their sum, one after the other; Python's own compensates from 3.12 on."""
    return functools.reduce(operator.add, values, 0.0)


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_rows(root):
    """Beside the page's rows; some are longer than a sequence."""
    numbers = Numbers(5)
    chat, pairs, ids = [], [], []
    for i in range(90):
        turns = [{"role": "system", "content": "Be brief."}] if i % 5 == 0 else []
        for _ in range(1 + numbers.below(2)):
            turns.append({"role": "user", "content": numbers.words(3)})
            turns.append({"role": "assistant", "content": numbers.words(3 if i % 9 else 30)})
        chat.append({"messages": turns})
        pairs.append({"prompt": numbers.words(3 if i % 11 else 60), "response": numbers.words(3)})
        length = 2 + numbers.below(40)
        ids.append({"input_ids": [numbers.below(300) for _ in range(length)],
                    "loss_weights": [(k + i) % 3 * 0.25 for k in range(length)]})
    for name, rows in (("chat", chat), ("pairs", pairs), ("ids", ids)):
        write_lines(root / name / "more.jsonl", rows)


def token_bytes(tokenizer):
    """The bytes of every id of a byte-level tokenizer."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    shown += [b for b in range(256) if b not in shown]
    others = iter(range(0x100, 0x200))
    byte_of = {chr(b if i < 188 else next(others)): b for i, b in enumerate(shown)}
    out = {i: bytes(byte_of[c] for c in text) for text, i in tokenizer["model"]["vocab"].items() if text != EOS}
    return out | {t["id"]: t["content"].encode() for t in tokenizer["added_tokens"]}


def written(component, row):
    """A row's text and, for each of its bytes, whether it counts: the template and the formats, said in Python."""
    if component == "pairs":
        parts = [(row["prompt"] + " = ", 0), (row["response"] + EOS, 1)]
    else:
        parts = []
        for m in row["messages"]:
            mine = m["role"] == "assistant"
            parts += [(f"<{m['role']}> ", 0), (m["content"] + (EOS if mine else ""), int(mine)), ("\n", 0)]
    return "".join(t for t, _ in parts).encode(), b"".join(bytes([w]) * len(t.encode()) for t, w in parts)


class Test:
    def __init__(self, ostro, update):
        self.ostro, self.update = ostro, update
        self.w = Workspace(ostro)
        self.close = self.w.close
        self.sequences = {"chat": {}, "pairs": {}}  # of these components: number -> documents

    def page(self):
        text = PAGE.read_text()
        for name, content in files_of(text):
            path = self.w.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(content)
        write_rows(self.w.root)
        corpus(self.w.root / "text", documents=20, words=100)
        cases = examples(text)
        check(len(cases) >= 8, f"{len(cases)} commands in {PAGE}")
        settings = {k: v for k, v in self.w.env.items() if k.startswith("OSTRO_")}
        outputs = run([command for _, command, _ in cases], self.ostro, self.w.root, settings)
        check(compare(PAGE, cases, outputs, self.update) == 0, f"{PAGE} says something else")
        template = self.w.root / "tokenizer" / "chat_template.jinja"
        for copy in ("runs/sft", "exported"):
            check((self.w.root / copy / template.name).read_bytes() == template.read_bytes(), f"{copy} has another template")
        self.bytes = token_bytes(json.loads((self.w.root / "tokenizer" / "tokenizer.json").read_text()))

    def json(self, *words):
        status, out, err = self.w.run(*words, "--json")
        check(status == 0, f"{' '.join(words)}: exit status {status}\n{err}")
        return json.loads(out)

    def row(self, document):
        begin, end = document["bytes"]
        return json.loads((self.w.root / document["file"]).read_bytes()[begin:end])

    def packed(self, where, component, document, inputs, targets, weights):
        """A conversation's or a pair's targets and weights against its text."""
        text, counts = written(component, self.row(document))
        ids = [inputs[0], *targets]
        check(inputs[1:] == targets[:-1], f"{where}: targets are not the next tokens")
        have = b"".join(self.bytes[i] for i in ids)
        whole = len(targets) < SEQ_LEN or have == text  # a row that is cut fills a sequence
        at = 0 if component == "chat" else len(text) - len(have)
        check((have == text) if whole else text[at:at + len(have)] == have, f"{where}: {have} is not of {text}")
        at += len(self.bytes[ids[0]])
        for token, weight in zip(targets, weights):
            end = at + len(self.bytes[token])
            check(weight == max(counts[at:end]), f"{where}: {self.bytes[token]} at {at} of {text} has weight {weight}")
            at = end
        return whole

    def batch(self, step, seen, *words):
        batch = self.json("data", "batch", *CONFIG, "--step", str(step), *words)
        for number, s in enumerate(batch["sequences"]):
            component, where = s["source"]["component"], f"step {step}, sequence {number}"
            documents, used, segments = s["source"]["documents"], 0, []
            seen[component] = seen.get(component, 0) + 1
            for k, d in enumerate(documents):
                check(d["begin"] == used, f"{where}: a gap before {used}")
                used, part = d["end"], slice(d["begin"], d["end"])
                targets, weights = s["targets"][part], s["loss_mask"][part]
                if component in self.sequences:
                    segments += [k] * len(targets)
                    whole = self.packed(where, component, d, s["tokens"][part], targets, weights)
                    seen["whole" if whole else "cut"] = seen.get("whole" if whole else "cut", 0) + 1
                elif component == "own":
                    row = self.row(d)
                    first = d["first_token"] + 1
                    mine = row["loss_weights"][first:first + len(weights)]
                    check(weights[:len(mine)] == mine, f"{where}: weights {weights}, the row's {mine}")
                    check(targets[:len(mine)] == row["input_ids"][first:first + len(mine)], f"{where}: ids of {row}")
                else:
                    check(set(weights) == {1}, f"{where}: text with weights {weights}")
            if component in self.sequences:
                self.sequences[component][s["source"]["sequence"]] = documents
                segments += [len(documents)] * (SEQ_LEN - used)
                check(set(s["loss_mask"][used:]) <= {0}, f"{where}: padding counts")
            else:
                segments = [0] * SEQ_LEN
            check(s["segment_ids"] == segments, f"{where}: segments {s['segment_ids']}, not {segments}")

    def batches(self):
        seen = {}
        for step in range(24):
            self.batch(step, seen)
        check(min(seen.get(k, 0) for k in ("web", "chat", "pairs", "own", "whole", "cut")) > 0, f"saw {seen}")
        # Greedy: the first row of a sequence did not fit into the one before.
        neighbours = 0
        for found in self.sequences.values():
            for number, documents in found.items():
                if number + 1 in found:
                    first = found[number + 1][0]
                    check(documents[-1]["end"] + first["end"] > SEQ_LEN, f"sequence {number} had room for {first}")
                    neighbours += 1
        check(neighbours > 20, f"{neighbours} neighbours")
        most = {name: max(map(len, found.values())) for name, found in self.sequences.items()}
        check(min(most.values()) > 1, f"rows in a sequence, at most: {most}")
        print(f"  24 batches: {seen}, {neighbours} pairs of neighbours")

    def equal_stores(self):
        """A build that is killed twice has the ledgers of the page's."""
        hashes = []
        for folder, kills in (("cache", 0), ("again", 2)):
            command = ("data", "build", *CONFIG, "--data.cache_dir", folder)
            for _ in range(kills):
                status, out, err = self.w.run(*command, env={"OSTRO_FAILPOINT": "data_build:3"})
                check(killed(status), f"data_build:3 did not fire: exit status {status}\n{out}{err}")
            hashes.append(re.findall(r"ledger hash (\w+)", self.w.good(*command)))
        check(len(hashes[0]) == 4 and hashes[0] == hashes[1], f"ledger hashes differ: {hashes}")

    def equal_runs(self):
        """Killed within and between checkpoints, by one worker and by two: the chain of the page's run. Checkpoints are
        written while training goes on: that of step 10 is whole for certain when the next one's manifest is due."""
        whole = self.w.chain("sft")
        for name, env in (("killed", {}), ("two", {"OSTRO_SIM_WORKERS": "2"})):
            command = ("train", *CONFIG, "--trainer.id", name)
            for place in ("manifest:2", "step:3"):
                status, out, err = self.w.run(*command, env=env | {"OSTRO_FAILPOINT": place})
                check(killed(status), f"{name}: {place} did not fire: exit status {status}\n{out}{err}")
            text = self.w.good(*command, env=env)
            check("after step 10" in text, f"{name} did not go on after step 10:\n{text}")
            check(self.w.chain(name) == whole, f"{name}: its chain differs from the undisturbed run's")

    def evaluate(self, name, *words):
        """Losses by component; log-probabilities and masks, a sequence a row."""
        out = self.json("eval", "--checkpoint", "runs/sft", *CONFIG, "--per_token", name, *words)
        data = (self.w.root / name).read_bytes()
        size = int.from_bytes(data[:8], "little")
        tensors = {}
        for key, t in json.loads(data[8:8 + size]).items():
            if key in ("log_prob", "mask"):
                begin, end = t["data_offsets"]
                check(t["dtype"] == "F32", f"{key} is {t['dtype']}")
                tensors[key] = array.array("f", data[8 + size + begin:8 + size + end])
        return out["components"], tensors["log_prob"], tensors["mask"]

    def masked_loss(self):
        """Without the mask another loss, of the same log-probabilities: the mask decides alone."""
        masked, log_prob, mask = self.evaluate("masked")
        plain, plain_log_prob, plain_mask = self.evaluate("plain", *PLAIN)
        check(log_prob == plain_log_prob, "the mask changes what the model says")
        check(masked["own"] == plain["own"] and masked["pairs"] == plain["pairs"], "other components changed")
        check(masked["chat"]["loss"] != plain["chat"]["loss"], f"the mask does not change the loss {masked['chat']}")
        # Conversations come first.
        stats = self.json("data", "stats", *CONFIG, "--component", "chat")["chat"]["splits"]["validation"]
        rows = range(stats["packing"]["sequences"] * SEQ_LEN)
        changed = [i for i in range(len(mask)) if mask[i] != plain_mask[i]]
        check(changed and changed[-1] in rows, f"the masks differ at {changed}")
        check(all(mask[i] == 0 and plain_mask[i] == 1 for i in changed), "the mask takes other tokens in")
        for said, weights in ((masked["chat"], mask), (plain["chat"], plain_mask)):
            tokens = sum(weights[i] for i in rows)
            # Token by token within a batch of leaf_examples sequences, batch by batch.
            batches = [rows[i:i + 3 * SEQ_LEN] for i in range(0, len(rows), 3 * SEQ_LEN)]
            loss = serial(serial(weights[i] * -log_prob[i] for i in b) for b in batches) / tokens
            check(tokens == said["tokens"] and loss == said["loss"], f"{loss} of {tokens} tokens, said {said}")
        try:
            self.batch(20, {}, *PLAIN)
        except Failure as failure:
            check("has weight 1" in str(failure), str(failure))
        else:
            raise Failure("batches without the mask have the weights of those with it")
        print(f"  conversations: loss {masked['chat']['loss']:.6f} of {masked['chat']['tokens']} tokens of the assistant, "
              f"{plain['chat']['loss']:.6f} of all {plain['chat']['tokens']}")

    def nothing_counts(self):
        """A mask of zeros is an error that says so; rows and batches without a target that counts are, too."""
        user = {"role": "user", "content": "alone"}
        write_lines(self.w.root / "user.jsonl", [{"messages": [user]}] * 7)
        # The answer is beyond the end of a sequence.
        answer = {"role": "assistant", "content": "late"}
        write_lines(self.w.root / "long.jsonl", [{"messages": [user | {"content": f"{i} " * 99}, answer]} for i in range(7)])
        train = ("train", *CONFIG, "--trainer.id", "none", "--data.components.chat.validation_fraction", "0",
                 "--data.components.chat.cache_dir")
        self.w.bad(*train, "cache/user", "--data.components.chat.train_urls", "[user.jsonl]",
                   says=["data.components.chat", "7 rows were left out", "loss weights are all 0", "generation",
                         "mask_user_turns"])
        self.w.bad(*train, "cache/other", "--data.components.chat.format.chat_template", "no_template.jinja",
                   says=["chat_template", "no_template.jinja"])
        self.w.bad(*train, "cache/long", "--data.components.chat.train_urls", "[long.jsonl]", "--data.train_weights",
                   "{web: 0, chat: 1, pairs: 0, own: 0}", says=["of which none has a target", "model.seq_len"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ostro", required=True)
    parser.add_argument("--update", action="store_true", help="write what the commands print into the page")
    args = parser.parse_args()
    return in_order(Test(args.ostro, args.update), ("page", "batches", "equal_stores", "equal_runs", "masked_loss",
                                                    "nothing_counts"))


if __name__ == "__main__":
    sys.exit(main())
