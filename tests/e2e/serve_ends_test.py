#!/usr/bin/env python3
"""What remains when `ostro serve` ends, or its checkpoint changes, under load.

killed: kill -9 in the middle of answers with receipts, again and again: the receipts stay one chain, a torn last line is cut,
and whoever got a receipt finds it there. stopped: SIGTERM under load: every accepted answer is whole, with its bits. followed:
new checkpoints under load: each answer is wholly of one of them, and its receipt says of which. timed: a request that waits for
longer than --waiting_seconds gets an error, while what runs has the other time.

    serve_ends_test.py --ostro BINARY [--only PART] [--log FILE]
"""
import concurrent.futures
import hashlib
import http.client
import json
import random
import shutil
import signal
import threading
import time

import serve_load
from program import check
from serve_load import LoadServer, seed, serving


def receipt_hash(receipt):
    return hashlib.sha256(json.dumps(receipt, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()


def killed(place, log):
    rounds, path = 20 if seed.full() else 3, place.folder / "log/receipts.jsonl"
    rng, got, torn, cut = random.Random(seed.seed()), {}, 0, 0
    for number in range(rounds):
        if number % 3 == 1 and path.read_bytes().endswith(b"\n"):  # as a machine that loses power leaves it: a line of which a part was written
            whole = path.read_bytes()
            path.write_bytes(whole[:-rng.randint(1, 200)])
            last = json.loads(whole.splitlines()[-1])["receipt"]
            got.pop(last["number"], None)
            cut += 1
        with serving(LoadServer(place, "--receipts", "log")) as server:
            enough = threading.Semaphore(0)

            def ask(i):
                while True:
                    try:
                        fields = place.fields(random.Random(f"{seed.seed()} {number} {i} {len(got)}"), receipt=True)
                        receipt = server.complete(**fields)["choices"][0]["receipt"]["receipt"]
                    except (OSError, http.client.HTTPException):
                        return
                    got[receipt["number"]] = receipt_hash(receipt)
                    enough.release()

            with concurrent.futures.ThreadPoolExecutor(6) as pool:
                asking = [pool.submit(ask, i) for i in range(6)]
                for _ in range(rng.randint(3, 12)):
                    check(enough.acquire(timeout=300), "no answer comes")
                server.process.kill()
            for one in asking:
                one.result()
        torn += not path.read_bytes().endswith(b"\n")
    with serving(LoadServer(place, "--receipts", "log")) as server:
        receipt = server.complete(prompt=[3], max_tokens=1, receipt=True)["choices"][0]["receipt"]["receipt"]
        got[receipt["number"]] = receipt_hash(receipt)
        server.stop()
    lines = [json.loads(line)["receipt"] for line in path.read_text().splitlines()]
    said = place.program("verify", "--receipts", "log/receipts.jsonl")
    check(said.startswith(f"equal: {len(lines)} receipts are one chain"), said)
    lost = [n for n, found in got.items() if n >= len(lines) or receipt_hash(lines[n]) != found]
    check(not lost, f"receipts {lost} were given to clients, and the log has others")
    log.say(f"{rounds} times kill -9: {len(lines)} receipts are one chain, {len(got)} that clients have among them; {torn} lines torn by kills, {cut} by hand")


def stopped(place, log):
    rounds, rng = 10 if seed.full() else 2, random.Random(seed.seed())
    asked = [place.fields(rng, max_tokens=rng.randint(60, 200), receipt=True) for _ in range(20)]
    with serving(LoadServer(place)) as server:
        alone = [[c["token_ids"] for c in server.complete(**fields)["choices"]] for fields in asked]
        server.stop()
    whole = late = 0
    for _ in range(rounds):
        with serving(LoadServer(place, "--drain", "600")) as server:
            with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
                def ask(i):
                    try:
                        status, text, _ = server.raw("POST", "/v1/completions", json.dumps(asked[i]))
                    except (ConnectionError, http.client.HTTPException):
                        return None
                    return status, json.loads(text)

                answers = [pool.submit(ask, i) for i in range(len(asked))]
                for _ in range(6000):
                    if server.busy()["requests_running"] >= 8:
                        break
                    time.sleep(0.002)
                now = server.busy()
                taken = now["requests_running"] + now["requests_waiting"]
                server.process.send_signal(signal.SIGTERM)
                found = [answer.result() for answer in answers]
                check(server.process.wait(600) == 0, f"serve ended with {server.process.returncode}")
        good = 0
        for i, answer in enumerate(found):
            if answer is None or answer[0] == 503:
                late += 1
                continue
            check(answer[0] == 200 and [c["token_ids"] for c in answer[1]["choices"]] == alone[i], f"answer {i}: {str(answer)[:300]}")
            good += 1
        check(good >= taken, f"{taken} requests were taken, {good} answered")
        whole += good
    log.say(f"{rounds} times SIGTERM with 20 requests on their way: {whole} answered whole, with their bits; {late} came too late and got 503 or no connection")


def followed(place, log):
    """The checkpoints of a run of the same shape come one after the other while eight clients ask."""
    count = 10 if seed.full() else 3
    place.train("grow", count, "--trainer.checkpointer.keep", "[{every: 1}]")
    run, later = place.folder / "runs/grow", place.folder / "later"
    names = sorted(path.name for path in (run / "checkpoints").iterdir() if path.name.startswith("step-"))
    check(len(names) >= count, f"{names}")
    later.mkdir()
    for name in names[1:]:
        (run / "checkpoints" / name).rename(later / name)
    asked = [place.fields(random.Random(i), receipt=True, max_tokens=60) for i in range(8)]
    answers, over = [], threading.Event()
    with serving(LoadServer(place, "--follow", "--unchecked", model="runs/grow")) as server:
        def ask(i):
            while not over.is_set():
                answer = server.complete(**asked[i])
                choice = answer["choices"][0]
                state = choice["receipt"]["receipt"]["state"]
                check(answer["system_fingerprint"].endswith(state), f"{answer['system_fingerprint']}, the receipt says {state}")
                answers.append((i, state, choice["token_ids"], choice["logprobs"]["token_logprobs"], choice["receipt"]))

        def state():
            return json.loads(server.raw("GET", "/v1/models")[1])["data"][0]["state"]

        with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:
            asking = [pool.submit(ask, i) for i in range(len(asked))]
            try:
                states = [state()]
                for name in names[1:]:
                    (later / name).rename(run / "checkpoints" / name)
                    for _ in range(6000):
                        if (now := state()) != states[-1]:
                            break
                        time.sleep(0.01)
                    states.append(now)
            finally:
                over.set()
        for one in asking:
            one.result()
        check(len(set(states)) == len(names), f"of {names} not all were served: {states}")
        for i, fields in enumerate(asked):  # what each of them gets alone, of the last
            one = server.complete(**fields)["choices"][0]
            answers.append((i, states[-1], one["token_ids"], one["logprobs"]["token_logprobs"], one["receipt"]))
        server.stop()
    given = {}
    for i, of, ids, log_probs, receipt in answers:
        given.setdefault((i, of), (ids, log_probs, receipt))
        check(given[i, of][:2] == (ids, log_probs), f"request {i} has two answers of state {of}")
    check({of for _, of in given} <= set(states), "an answer is of a state that was never served")
    checked = list(given.items()) if seed.full() else random.Random(seed.seed()).sample(sorted(given.items(), key=str), 6)
    for (i, of), (_, _, receipt) in checked:
        (place.folder / "r.json").write_text(json.dumps(receipt))
        text = place.program("verify", "--receipt", "r.json", "--checkpoint", f"runs/grow/checkpoints/{names[states.index(of)]}")
        check(text.startswith("equal: "), f"request {i}: {text}")
        if of != states[0]:
            text = place.program("verify", "--receipt", "r.json", "--checkpoint", f"runs/grow/checkpoints/{names[0]}", code=1)
            check("the checkpoint's state is" in text, text)
    log.say(f"{len(names)} checkpoints under load: {len(answers)} answers, {len(given)} different ones, each wholly of one state; {len(checked)} receipts verified by it")
    shutil.rmtree(run)


def timed(place, log):
    """Twelve requests of sixteen answers each are far more than a second of work for a server that makes one at a time.

    Where they do not come together they wait too long themselves, and less work is left before the one that is looked at; so this
    is drawn until that one waits too long while another runs."""
    with serving(LoadServer(place, "--running", "1", "--waiting_seconds", "1", "--running_seconds", "3600")) as server:
        many, went_on = [], False
        for _ in range(100):
            if not server.busy()["requests_running"]:
                many += [server.send(place.fields(random.Random(i), prompt=[3], max_tokens=480, n=16)) for i in range(12)]
                for _ in range(6000):
                    if server.busy()["requests_running"]:
                        break
                    time.sleep(0.002)
            began = time.monotonic()
            status, text, _ = server.raw("POST", "/v1/completions", json.dumps({"prompt": [4], "max_tokens": 1}))
            waited = time.monotonic() - began
            went_on = status != 200 and server.busy()["requests_running"] > 0
            if went_on:
                break
        error = json.loads(text).get("error", {})
        # With the two times in each other's place it would wait for an hour, and what runs would end after a second.
        check(status == 503 and error["code"] == "wait_limit" and "waited for 1 seconds" in error["message"], f"{status} {text}")
        check(waited >= 1, f"it waited for {waited} s")
        check(went_on, "what ran ended, too")
        for one in many:
            one.close()
        server.until_quiet()
        server.stop()
    log.say(f"a request behind {len(many)} others got an error after {waited:.1f} s, and those that ran went on")


if __name__ == "__main__":
    serve_load.run("A server that ends, or whose checkpoint changes, under load", __doc__, (killed, stopped, followed, timed))
