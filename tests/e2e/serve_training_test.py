#!/usr/bin/env python3
"""What `ostro serve` says of a token is what training and `ostro score` say, in every bit.

families: tiny models of drawn families; log-probabilities over HTTP, by text and by ids, through JSON, are those of
`ostro score`, and of held-out text minus the losses of training's program (`ostro eval --per_token`). followed: while a run trains, `--follow` serves its checkpoints; the log-probability of every sampled token is
that of `ostro score` at that checkpoint, and its receipt holds there.

    serve_training_test.py --ostro BINARY [--only PART] [--log FILE]
"""
import json
import pathlib
import random
import signal
import struct
import subprocess
import tempfile
import time

import families_test
import serve_load
from program import check, kill_all
from serve_load import LoadServer, environment, seed, serving
from serve_precision import tensors
from serve_test import serial


def is_f32(value):
    return struct.unpack("f", struct.pack("f", value))[0] == value


def score(place, checkpoint, requests, **settings):
    """The log-probabilities of `ostro score`."""
    done = place.program("score", "--checkpoint", str(checkpoint), given="".join(json.dumps(r) + "\n" for r in requests), **settings)
    return [json.loads(line)["log_prob"] for line in done.splitlines()]


def trained(place, made, config, run):
    """Rows of held-out tokens with minus their losses, by the program whose loss training has, on another instruction set."""
    place.program("eval", "--config", config, "--checkpoint", str(run), "--data.validation_urls", f"[{made.top}/held.txt]", "--data.cache_dir", str(made.top / "held"),
                  "--trainer.max_eval_batches", "4", "--per_token", "tokens.safetensors", OSTRO_ISA="generic")
    there = tensors(place.folder / "tokens.safetensors")
    check(all(m == 1 for m in there["mask"]), "a position of the held-out text has no loss")
    length = 96
    rows = [range(at, at + length) for at in range(0, len(there["tokens"]), length)]
    for row in rows:
        check(there["tokens"][row[1]:row[-1] + 1] == there["targets"][row[0]:row[-1]], "the rows are no text")
    return [([there["tokens"][i] for i in row], [there["log_prob"][i] for i in row[:-1]]) for row in rows]


def families(place, log):
    names = sorted(families_test.FAMILIES)
    names = random.Random(seed.seed()).sample(names, 12 if seed.full() else 1)
    compared, by_loss, rng = 0, 0, random.Random(seed.seed())
    with tempfile.TemporaryDirectory() as top:
        made = families_test.Place(place.ostro, pathlib.Path(top))
        (made.top / "held.txt").write_text(" ".join(f"w{rng.randrange(60):x}" for _ in range(500)))
        for family in names:
            config = made.config(family, families_test.FAMILIES[family])
            place.program("train", "--config", config, "--trainer.id", family, "--trainer.num_train_steps", "2", OSTRO_ISA="generic")
            run = pathlib.Path(top) / "runs" / family
            words = [f"w{rng.randrange(60):x}" for _ in range(30)]
            losses = trained(place, made, config, run)
            texts = list(dict.fromkeys([" ".join(words[:n]) for n in (1, 2, 3, 5, 8, 12, 17, 23)] + ["w1", "zz w2", "é"]))
            with serving(LoadServer(place, model=str(run))) as server:
                begin = server.post("/tokenize", {"prompt": "<|endoftext|>"})["tokens"]
                rows = []
                for text in texts:
                    ids = begin + server.post("/tokenize", {"prompt": text})["tokens"]
                    both = [server.complete(prompt=prompt, max_tokens=0, echo=True, logprobs=1)["choices"][0]["logprobs"]["token_logprobs"]
                            for prompt in (ids, "<|endoftext|>" + text)]
                    check(both[0] == both[1] and both[0][0] is None and len(both[0]) == len(ids), f"{family}: {text!r}: {both}")
                    check(all(is_f32(value) for value in both[0][1:]), f"{family}: {both[0]} are no f32")
                    rows.append(both[0][1:])
                for ids, expected in losses:
                    got = server.complete(prompt=ids, max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]["token_logprobs"]
                    wrong = [i for i, (a, b) in enumerate(zip(got[1:], expected, strict=True)) if a != b]
                    check(not wrong, f"{family}: {len(wrong)} of {len(expected)} log-probabilities of held-out text are not minus the loss; the first is at {wrong[:1]}")
                    by_loss += len(expected)
                check(losses[0][1] != losses[1][1], f"{family}: two rows of held-out text have the same losses")
                server.stop()
            said = score(place, run, [{"text": text} for text in texts], OSTRO_ISA="generic")
            for text, row, value in zip(texts, rows, said, strict=True):
                check(serial(row) == value, f"{family}: {text!r}: {serial(row)!r}, score says {value!r}")
            check(len({serial(row) for row in rows}) == len(texts), f"{family}: all scores are alike")
            compared += sum(map(len, rows))
    log.say(f"{len(names)} families ({', '.join(names)}): {compared} log-probabilities by text and by ids are those of `ostro score` on another instruction set; "
            f"{by_loss} of held-out text are minus the losses of training's program")


def sampled(server, place, rng, context):
    """A drawn continuation, and for `ostro score` those of its beginnings that are cut into the same ids as a text."""
    asked = {"prompt": context, "max_tokens": 12, "seed": rng.randint(0, 2**53), "temperature": rng.choice((0, 0.5, 1.0)), "logprobs": 1,
             "return_token_ids": True, "receipt": True, "logit_bias": {place.end: -100}}
    answer = server.complete(**asked)["choices"][0]
    prompt, ids, rows = answer["prompt_token_ids"], answer["token_ids"], answer["logprobs"]["token_logprobs"]
    requests = []
    for count in range(1, len(ids) + 1):
        text = server.post("/detokenize", {"tokens": prompt + ids[:count]})["prompt"]
        if not text.startswith(context) or server.post("/tokenize", {"prompt": text})["tokens"] != prompt + ids[:count]:
            break
        requests.append({"context": context, "continuation": text[len(context):]})
    return answer, requests, rows


def followed(place, log):
    wanted, rng = 50 if seed.full() else 3, random.Random(seed.seed())
    words = ["train", "--config", "configs/nano_test.yaml", "--trainer.id", "grow", "--trainer.num_train_steps", "4000", "--trainer.steps_per_eval", "0",
             "--trainer.checkpointer.keep", "[{every: 10}]"]
    checkpoints = place.folder / "runs/grow/checkpoints"
    trainer = subprocess.Popen([place.ostro, *words], cwd=place.folder, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    tokens, by_score, states = 0, 0, []

    def newest():
        return max((p.name for p in checkpoints.glob("step-????????") if p.is_dir()), default="") if checkpoints.exists() else ""

    def go_on(after):
        """Lets the run train until it has a later checkpoint."""
        trainer.send_signal(signal.SIGCONT)
        for _ in range(60_000):
            if newest() > after:
                break
            check(trainer.poll() is None, f"training ended with {trainer.returncode} after {after}")
            time.sleep(0.005)
        trainer.send_signal(signal.SIGSTOP)
        while pathlib.Path(f"/proc/{trainer.pid}/stat").read_text().rpartition(")")[2].split()[0] not in "TZ":
            time.sleep(0.001)  # until it stands it may write another checkpoint
        return newest()

    try:
        first = name = go_on("")
        with serving(LoadServer(place, "--follow", model="runs/grow")) as server:
            while len(states) < wanted:
                for _ in range(12_000):
                    state = json.loads(server.raw("GET", "/v1/models")[1])["data"][0]["state"]
                    if state not in states:
                        break
                    time.sleep(0.005)
                check(state not in states, f"{name} is not served")
                states.append(state)
                texts = ["the work", "copyright", "a licence of", "You may"]
                made, asked = [], []
                while not asked:  # a sampled continuation need not be cut into the same ids as a text
                    made = [sampled(server, place, rng, text) for text in texts]
                    asked = [r for _, requests, _ in made for r in requests]
                said = score(place, checkpoints / name, asked)
                if len(states) == 2:
                    check(score(place, checkpoints / first, asked) != said, f"{first} and {name} have the same log-probabilities")
                for answer, requests, rows in made:
                    for count in range(1, len(requests) + 1):
                        value = said.pop(0)
                        check(serial(rows[:count]) == value, f"{name}: {requests[count - 1]}: {serial(rows[:count])!r}, score says {value!r}")
                        by_score += 1
                    tokens += len(rows)
                    check(answer["receipt"]["receipt"]["state"] == state, f"{name}: the receipt is of another state than {state}")
                # The rest of the tokens: a receipt has the bits of all, and is computed again at this checkpoint.
                for answer, _, _ in made if seed.full() else made[:1]:
                    (place.folder / "r.json").write_text(json.dumps(answer["receipt"]))
                    text = place.program("verify", "--receipt", "r.json", "--checkpoint", str(checkpoints / name))
                    check(text.startswith(f"equal: {len(answer['token_ids'])} tokens"), f"{name}: {text}")
                if len(states) < wanted:
                    name = go_on(name)
            server.stop()
    finally:
        kill_all([trainer])
    check(by_score > len(states), f"{by_score} tokens were compared with ostro score")
    log.say(f"{len(states)} checkpoints of a run that trained: {tokens} sampled tokens; {by_score} log-probabilities compared with `ostro score` at their "
            f"checkpoint: difference 0; {'all' if seed.full() else 'a quarter'} by receipts computed again there")


if __name__ == "__main__":
    serve_load.run("Log-probabilities of a server and of training", __doc__, (families, followed))
