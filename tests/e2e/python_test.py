#!/usr/bin/env python3
"""Tests the Python package ostro: losses, run hash, scores, texts and logits have the bits of the program's; views outlive
models and nothing grows; stubs; errors, Ctrl-C and other threads; servers.

    python_test.py --ostro BINARY --package build/release/python

The Python that runs it needs numpy.
"""
import argparse
import ast
import ctypes
import functools
import gc
import hashlib
import json
import operator
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from program import check

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/suite"))
import seed  # noqa: E402

STEPS = 12
# CPU time, far above the 0.1 to 0.3 s that it takes: a busy machine may not fail a test.
MOST_IMPORT_SECONDS = 2
TEXTS = ["The licensor grants a licence.", "the ", "", "Work shall mean the work\n\nof authorship. " * 20]
CHAT = "{% for m in messages %}<{{ m['role'] }}>{{ m['content'] }}\n{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
# A training that tells when it has done its first step, so that Ctrl-C comes between steps.
INTERRUPTED = """
import pathlib, signal, sys, threading, time, os
import ostro
def press():
    while not any("\\"step\\":2" in p.read_text() for p in pathlib.Path("runs/stopped").glob("chain.jsonl")):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    ostro.train("nano.yaml", {"trainer.id": "stopped", "trainer.num_train_steps": 200000})
except KeyboardInterrupt:
    print("KeyboardInterrupt", len(ostro.Run("runs/stopped")))
"""

# Loads, views and answers that are dropped: prints by how much resident memory has grown.
GROWS = """
import ctypes, pathlib, sys
import ostro
libc, count = ctypes.CDLL(None), int(sys.argv[1])
def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096
def some(number):
    for _ in range(number):
        model = ostro.load("runs/nano")
        for name in model.arrays:
            view = model.arrays[name]
        del model
    return view
some(count // 5)
libc.malloc_trim(0)
before = resident_bytes()
some(count)
libc.malloc_trim(0)
print(resident_bytes() - before)
"""


class Program:
    """The program of the command line, in the test's folder."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, *words, stdin="", code=0, **env):
        done = subprocess.run([self.path, *map(str, words)], input=stdin, env=os.environ | env, capture_output=True, text=True,
                              check=False)
        check(done.returncode == code, f"ostro {words}: {done.returncode}: {done.stderr}")
        return done


def python(*words, **env):
    done = subprocess.run([sys.executable, *words], env=os.environ | env, capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"python {words[:1]}: {done.stdout}{done.stderr}")
    return done.stdout


def error_of(ostro, call):
    try:
        call()
    except ostro.Error as error:
        return str(error)
    sys.exit("FAILED: no ostro.Error was raised")


def prepare(program):
    pathlib.Path("corpus").mkdir()
    subprocess.run(["split", "-d", "-l", "6", "--additional-suffix=.txt", ROOT / "LICENSE", "corpus/"], check=True)
    shutil.copy(ROOT / "configs/nano_test.yaml", "nano.yaml")
    program("tokenizer", "train", "--input", "corpus/*.txt", "--vocab_size", 512, "--out", "tokenizer.json")


def training(ostro, program):
    """The same run by the program and by the module."""
    told = program("train", "--config", "nano.yaml", "--trainer.num_train_steps", STEPS).stdout
    theirs = re.search(r"run hash: (\w+)", told).group(1)
    run = ostro.train("nano.yaml", {"trainer.id": "here", "trainer.log_dir": "runs", "trainer.num_train_steps": STEPS})
    again = ostro.Run("runs/nano")
    # trainer.id is in no hash.
    check(run.hash == theirs == again.hash, f"run hash {run.hash}, the program's {theirs}")
    check([s.loss for s in run] == [s.loss for s in again] and len(run) == STEPS == run[-1].step, "other losses")
    check(run[0].loss > run[-1].loss and run[0].tokens > 0, "the losses do not fall")
    other = ostro.train("nano.yaml", {"trainer.id": "other", "trainer.num_train_steps": STEPS, "trainer.seed": 7})
    check(other.hash != run.hash, "another seed gives the same run hash")
    check("ostro.Run runs/here, 12 steps" in repr(run), repr(run))


def verifying(ostro, program):
    verdict = ostro.verify(ostro.Run("runs/nano"), from_step=2, to_step=5)
    check(verdict and verdict.verdict == "equal", verdict.text)
    check(verdict.text == program("verify", "runs/nano", "--from_step", 2, "--to_step", 5).stdout, "another text")
    check(not ostro.verify("runs/nano", replay=False, run_hash="0" * 64), "another run hash is no difference")
    chain = pathlib.Path("runs/other/chain.jsonl")
    chain.write_text(chain.read_text().replace('"tokens":', '"tokens":1', 1))
    verdict = ostro.verify("runs/other", replay=False)
    check(verdict.verdict == "differs" and not verdict, f"a changed chain: {verdict}")


def answers(ostro, program):
    model = ostro.load("runs/nano")
    lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
    theirs = [json.loads(line) for line in program("score", "--checkpoint", "runs/nano", stdin=lines).stdout.splitlines()]
    ours = model.score(TEXTS)
    check([(s.log_prob, s.tokens, s.bytes) for s in ours] == [(t["log_prob"], t["tokens"], t["bytes"]) for t in theirs],
          "other scores than ostro score's")
    check(model.score(TEXTS[0]).log_prob == ours[0].log_prob, "a score depends on the texts beside it")
    for words in ({"temperature": 0.8, "seed": 1}, {"temperature": 0.0, "seed": 0}, {"temperature": 1.2, "seed": 5}):
        told = program("sample", "--checkpoint", "runs/nano", "--prompt", "the ", "--max_new_tokens", 20, "--json",
                       *(str(w) for k, v in words.items() for w in (f"--{k}", v))).stdout
        answer = model.generate("the ", max_tokens=20, **words)
        text = "".join(answer)
        check(answer.ids == json.loads(told)["ids"] and text == json.loads(told)["text"], f"{words}: another text than ostro sample's: {text!r} {told}")
        check(answer.finish in ("length", "stop_token"), answer.finish)
    one, two = (model.generate("the ", max_tokens=15, temperature=0.9, seed=s) for s in (1, 2))
    turns = [next(one, ""), next(two, ""), next(one, ""), next(one, ""), next(two, "")]
    check(turns[0] + turns[2] + turns[3] + "".join(one) == model.generate_text("the ", max_tokens=15, temperature=0.9, seed=1) !=
          turns[1] + turns[4] + "".join(two), "two texts that take turns are others than one after the other")
    whole = model.generate_text("the ", max_tokens=20)
    check(model.generate_text("the ", max_tokens=20, stop=whole[5:8]) == whole[:whole.index(whole[5:8])], "a stop string stays")
    prompt = model.tokenizer.encode("the ")
    check(model.generate_text(prompt, max_tokens=20) == whole and model.tokenizer.decode(prompt) == "the ", "ids as a prompt")
    return model


def chatting(ostro, program):
    config = pathlib.Path("runs/nano/tokenizer_config.json")
    config.write_text(json.dumps(json.loads(config.read_text() if config.exists() else "{}") | {"chat_template": CHAT}))
    told = program("sample", "--checkpoint", "runs/nano", "--chat", "--prompt", "a licence", "--max_new_tokens", 9, "--json").stdout
    model = ostro.load("runs/nano")
    check(model.chat([{"role": "user", "content": "a licence"}], max_tokens=9) == json.loads(told)["text"] ==
          model.chat("a licence", max_tokens=9), "another answer than ostro sample --chat's")


def logits(numpy, model):
    """Of the compiled engine and of the interpreter, which is the specification; and what ostro score makes of them."""
    text = TEXTS[0]
    ids = model.tokenizer.encode(text)
    rows = model.logits(ids)
    check(rows.dtype == numpy.float32 and rows.shape[0] == len(ids) and rows.shape[1] >= model.tokenizer.vocab_size,
          f"{rows.dtype} {rows.shape}")
    numpy.save("ours.npy", rows)
    python("-c", "import ostro, numpy; m = ostro.load('runs/nano'); "
           f"numpy.save('theirs.npy', m.logits({ids}))", OSTRO_EXECUTOR="interpreter")
    check(numpy.load("theirs.npy").tobytes() == rows.tobytes(), "other logits than the interpreter's")
    check(rows.tobytes() == numpy.concatenate([model.logits(ids[:i + 1])[-1:] for i in range(len(ids))]).tobytes(),
          "a row depends on the tokens behind it")
    whole = model.log_probs(ids)
    check(whole.shape == (len(ids) - 1,) and numpy.isfinite(whole).all() and (whole < 0).all(), f"{whole}")
    score = model.score(text)
    prefix = next(i for i in range(model.tokenizer.vocab_size)
                  if float(sum(float(p) for p in model.log_probs([i, *ids]))) == score.log_prob)
    check(prefix >= 0 and score.tokens == len(ids), "no first token gives the score of the log-probabilities")


def views(numpy, ostro):
    model = ostro.load("runs/nano")
    names = list(model.arrays)
    weight = model.arrays["model/norm/weight"]
    check("model/norm/weight" in names and weight.dtype == numpy.float32 and weight.shape == (32,), f"{names} {weight.shape}")
    check(not weight.flags.writeable, "a view can be written")
    try:
        weight[0] = 1
        sys.exit("FAILED: a view was written")
    except ValueError:
        pass
    address = weight.ctypes.data
    check(model.arrays["model/norm/weight"].ctypes.data == address, "a view is a copy")
    check(numpy.from_dlpack(weight).ctypes.data == address, "DLPack is a copy")
    check(not numpy.from_dlpack(weight).flags.writeable, "a view can be written by DLPack")
    rows = model.logits([1, 2, 3])
    other = numpy.from_dlpack(rows)
    other[0, 0] = 7
    rows[1, 1] = 9
    check(rows[0, 0] == 7 and other[1, 1] == 9, "logits are not shared by DLPack")
    if seed.full():
        views_of_torch(weight, model.logits([1, 2, 3]))
    else:
        print("not run: torch.from_dlpack (OSTRO_TEST_SIZE=full; to import torch costs more than this test)")
    before = weight.copy()
    del model
    gc.collect()
    kept = [numpy.ones(32, numpy.float32) for _ in range(1000)]
    check((weight == before).all() and len(kept) == 1000, "a view changed when its model was gone")
    try:
        ostro.load("runs/nano").arrays["model/norm"]
        sys.exit("FAILED: an array that is not there was found")
    except KeyError:
        pass


def views_of_torch(weight, rows):
    try:
        import torch
    except ImportError:
        print("NOT RUN: torch.from_dlpack: this Python has no torch")
        return
    seen = torch.from_dlpack(weight)
    check(seen.data_ptr() == weight.ctypes.data and seen.dtype == torch.float32 and tuple(seen.shape) == weight.shape, "torch has a copy of a view")
    first = float(weight[0])
    seen[0] = first + 1  # what the guide warns of: torch writes
    check(weight[0] == first + 1 != torch.tensor(weight)[1], "what torch wrote is not seen")
    seen[0] = first
    shared = torch.from_dlpack(rows)
    shared[0, 0] = 7
    rows[1, 1] = 9
    check(shared.data_ptr() == rows.ctypes.data and rows[0, 0] == 7 and float(shared[1, 1]) == 9, "torch does not share logits")
    clone = shared.clone()
    clone[0, 0] = 8
    check(rows[0, 0] == 7, "a clone of torch is seen, so the comparison finds nothing")
    print(f"torch {torch.__version__} shares views and logits")


def growth():
    """Loads, views and answers that are dropped leave nothing behind. The allocator has a heap for each thread, and which thread
    needs memory is up to the scheduler; so the sampled form has one heap for all threads, and the full form has both."""
    full = seed.size() != "sample"
    count = 10_000 if full else 100
    for heaps in ({"MALLOC_ARENA_MAX": "1"}, {})[:2 if full else 1]:
        grown = int(python("-c", GROWS, str(count), **heaps))
        print(f"{count} loads with {heaps or 'a heap for each thread'}: {grown / count:.0f} bytes each")
        check(grown < 400 * count + (1 << 20), f"{heaps}: {grown} bytes more after {count} loads of a model")


def errors(ostro, program):
    serve = ("serve", "runs/nano", "--listen", "127.0.0.1:0")
    for call, words in ((lambda: ostro.load("nowhere"), ("sample", "--checkpoint", "nowhere", "--prompt", "a", "--max_new_tokens", 1)),
                        (lambda: ostro.train("nano.yaml", {"trainer.num_train_stepps": 1}),
                         ("train", "--config", "nano.yaml", "--trainer.num_train_stepps", 1)),
                        (lambda: ostro.serve("runs/nano", running=0), (*serve, "--running", 0)), (lambda: ostro.serve("runs/nano", waiting=0), (*serve, "--waiting", 0)),
                        (lambda: ostro.serve("runs/nano", cache_pages=-1), (*serve, "--cache_pages", -1)),
                        (lambda: ostro.serve("runs/nano", api_keys="none.txt"), (*serve, "--api_keys", "none.txt")),
                        (lambda: ostro.serve("runs/nano", adapters={"a": "runs/nano"}), (*serve, "--adapter", "a=runs/nano")),
                        (lambda: ostro.serve("runs/nano", adapters={"a b": "runs/nano"}), (*serve, "--adapter", "a b=runs/nano")),
                        (lambda: ostro.verify("nowhere"), ("verify", "nowhere")),
                        (lambda: ostro.Run("nowhere"), ("hash", "nowhere"))):
        told = subprocess.run([program.path, *map(str, words)], capture_output=True, text=True, check=False)
        lines = [line.removeprefix("error: ") for line in told.stderr.splitlines() if line.startswith("error: ")]
        if not lines:  # verify tells it as a verdict
            continue
        check(error_of(ostro, call).splitlines() == lines, f"{words}: {error_of(ostro, call)!r}, the program says {lines}")
    model = ostro.load("runs/nano")
    for call, word in ((lambda: model.logits([]), "no token"), (lambda: model.logits([100_000]), "id 100000"),
                       (lambda: model.logits([1] * 65), "65 tokens"), (lambda: model.generate("a", max_tokens=-1), "max_tokens -1"),
                       (lambda: model.generate("a", temperature=-1.0), "temperature -1"),
                       (lambda: model.generate("a", temperature=float("nan")), "temperature"),
                       (lambda: model.generate("a", top_p=0.0), "top_p 0"), (lambda: model.generate("a", stop=""), "stop string"),
                       (lambda: model.chat("a"), "chat template"), (lambda: ostro.load("runs/nano", mp="f16"), "f16"),
                       (lambda: ostro.load("runs/nano", device="tpu"), "tpu"),
                       (lambda: ostro.serve(model, listen="nowhere"), "nowhere")):
        check(word in error_of(ostro, call), f"{word}: {error_of(ostro, call)}")


def pressed(*calls):
    """Calls without a line of Python between them, and Ctrl-C before the last. Returns what they gave before KeyboardInterrupt came,
    which is nothing of a call that was stopped, and all of one that ended first."""
    press = functools.partial(getattr(ctypes.PyDLL(None), "raise"), signal.SIGINT)
    given = []
    try:
        given.extend(map(operator.call, [*calls[:-1], press, calls[-1]]))
    except KeyboardInterrupt:
        return given[:len(calls) - 1] + given[len(calls):]
    sys.exit("FAILED: Ctrl-C raised nothing")


def interrupting(ostro):
    """Ctrl-C in a training of another process; while an answer, scores and a verification are made; the control is a call that does not ask."""
    model = ostro.load("runs/nano")
    whole = model.generate_text("the ", max_tokens=20, temperature=0.9, seed=4)
    answer = model.generate("the ", max_tokens=20, temperature=0.9, seed=4)
    piece = functools.partial(next, answer)
    pieces = pressed(piece, piece, piece)
    check(len(pieces) == 2 and 2 <= len(answer.ids) < 20 and not answer.finish, f"Ctrl-C in an answer: {pieces}, {answer.ids}")
    check("".join([*pieces, *answer]) == whole, "an answer that Ctrl-C stopped goes on with another text")
    scores = model.score(TEXTS)
    check(pressed(functools.partial(model._native.score, TEXTS, 0)) == [], "Ctrl-C does not stop scores")
    check([s.log_prob for s in model.score(TEXTS)] == [s.log_prob for s in scores], "other scores after Ctrl-C")
    check(len(pressed(functools.partial(model._native.encode, "the "))) == 1, "a call that does not ask is stopped, so these comparisons find nothing")
    options = sys.modules["ostro.run"]._native.VerifyOptions()
    check(pressed(functools.partial(sys.modules["ostro.run"]._native.verify, "runs/nano", options)) == [], "Ctrl-C does not stop a verification")
    check(bool(ostro.verify("runs/nano", from_step=2, to_step=4)), "no verification after Ctrl-C")
    told = python("-c", INTERRUPTED)
    steps = re.search(r"KeyboardInterrupt (\d+)", told)
    check(steps and 2 <= int(steps.group(1)) < 200000, f"Ctrl-C in a training: {told}")
    check(any(pathlib.Path("runs/stopped/checkpoints").iterdir()), "Ctrl-C saved nothing")


def threads(ostro):
    """Another thread of Python runs while a program does."""
    count, over = 0, threading.Event()

    def tick():
        nonlocal count
        while not over.wait(0.002):
            count += 1
    ticking = threading.Thread(target=tick)
    ticking.start()
    ostro.train("nano.yaml", {"trainer.id": "beside", "trainer.num_train_steps": 40})
    over.set()
    ticking.join()
    check(count > 10, f"another thread ran {count} times while a model was trained")


def serving(ostro, program):
    model = ostro.load("runs/nano")
    with ostro.serve(model) as url:
        fields = {"prompt": "the ", "max_tokens": 12, "temperature": 0.8, "seed": 3}
        request = urllib.request.Request(url + "/completions", json.dumps(fields).encode())
        text = json.loads(urllib.request.urlopen(request, timeout=120).read())["choices"][0]["text"]
        check(text == model.generate_text("the ", max_tokens=12, temperature=0.8, seed=3), f"the server says {text!r}")
    try:
        urllib.request.urlopen(request, timeout=20)
        sys.exit("FAILED: a server answers after its end")
    except urllib.error.URLError:
        pass
    # In another context: its receipts name it, and are checked in it.
    with ostro.serve(ostro.load("runs/nano", seq_len=48)) as url:
        request = urllib.request.Request(url + "/completions", json.dumps(fields | {"receipt": True}).encode())
        receipt = json.loads(urllib.request.urlopen(request, timeout=120).read())["choices"][0]["receipt"]
    check(receipt["receipt"]["context"] == 48, f"the receipt says {receipt['receipt']}")
    for context, said in ((48, "equal: "), (64, "cannot check: ")):
        receipt["receipt"]["context"] = context
        pathlib.Path("r.json").write_text(json.dumps(receipt))
        told = program("verify", "--receipt", "r.json", "--checkpoint", "runs/nano", code=0 if context == 48 else 4).stdout
        check(told.startswith(said), f"context {context}: {told}")
    with ostro.serve("runs/nano") as url:
        check(json.loads(urllib.request.urlopen(url + "/models", timeout=60).read())["data"][0]["id"] == "nano", "no model")


def answer_of(url, key="", path="/completions", **fields):
    """What the server answers, as JSON, or as the text of its metrics; a GET where there are no fields."""
    request = urllib.request.Request(url + path, json.dumps(fields).encode() if fields else None, {"Authorization": f"Bearer {key}"} if key else {})
    text = urllib.request.urlopen(request, timeout=120).read().decode()
    return json.loads(text) if text.startswith("{") else text


def pages_of(url, key=""):
    return int(re.search(r'^ostro_cache_pages{state="all"} (\d+)$', answer_of(url.removesuffix("/v1"), key, "/metrics"), re.MULTILINE)[1])


def adapting(numpy, ostro, program):
    """A model with an adapter is the run that trained it, however it is loaded, and what a server answers for MODEL:NAME."""
    ostro.train("nano.yaml", {"trainer.id": "tuned", "trainer.initialize_from": "runs/nano", "trainer.num_train_steps": 4, "adapter.type": "lora",
                              "adapter.rank": 4, "optimizer.learning_rate": 0.02})
    program("export", "--checkpoint", "runs/tuned", "--to", "peft", "--base", "nano", "--out", "peft")
    base, run = ostro.load("runs/nano"), ostro.load("runs/tuned")
    models = {"nano": base, "nano:a": ostro.load("runs/nano", adapter="runs/tuned"), "nano:c": ostro.load("runs/nano", adapter=pathlib.Path("peft"))}
    ids = base.tokenizer.encode(TEXTS[0])
    for name in ("nano:a", "nano:c"):
        model = models[name]
        check(model.logits(ids).tobytes() == run.logits(ids).tobytes() != base.logits(ids).tobytes(), f"{name}: other logits than the run's, or the base's")
        check(model.log_probs(ids).tobytes() == run.log_probs(ids).tobytes(), f"{name}: other log-probabilities than the run's")
        check([s.log_prob for s in model.score(TEXTS)] == [s.log_prob for s in run.score(TEXTS)] != [s.log_prob for s in base.score(TEXTS)], f"{name}: other scores")
        check((model.path, model.state, model.step) == (base.path, base.state, base.step) != (run.path, run.state, run.step), f"{name}: {model}")
    check(models["nano:a"].adapter == models["nano:c"].adapter != base.adapter == run.adapter == "", "other hashes of adapters")
    words = {"max_tokens": 12, "temperature": 0.8, "seed": 3}
    with ostro.serve(base, adapters={"a": "runs/tuned", "c": "peft"}, cache_pages=7) as url:
        served = {one["id"]: one for one in answer_of(url, path="/models")["data"]}
        check({name: one.get("adapter", "") for name, one in served.items()} == {name: model.adapter for name, model in models.items()}, f"{served}")
        check(pages_of(url) == 7, "other pages than cache_pages")
        for name, model in models.items():
            choice = answer_of(url, model=name, prompt="the ", return_token_ids=True, **words)["choices"][0]
            answer = model.generate("the ", **words)
            check(choice["text"] == "".join(answer) and choice["token_ids"] == answer.ids, f"{name}: the server says {choice}, the model {answer.ids}")
            rated = answer_of(url, model=name, prompt=TEXTS[0], max_tokens=0, echo=True, logprobs=0)["choices"][0]["logprobs"]["token_logprobs"]
            ours = model.log_probs(base.tokenizer.encode(TEXTS[0]))
            check(numpy.array(rated[1:], numpy.float32).tobytes() == ours.tobytes(), f"{name}: other log-probabilities than the server's")
    for call, word in ((lambda: ostro.serve(models["nano:c"]), "loaded with an adapter"), (lambda: ostro.serve(run, adapters={"a": "peft"}), "has an adapter itself"),
                       (lambda: ostro.load("runs/tuned", adapter="peft"), "has an adapter itself"),
                       (lambda: ostro.load("runs/nano", adapter="runs/nano"), "--adapter runs/nano: this model has no adapter"),
                       (lambda: ostro.serve(base, adapters={"a=b": "peft"}), "--adapter a=b=peft: write NAME=DIR")):
        check(word in error_of(ostro, call), f"{word}: {error_of(ostro, call)}")


def keys(ostro):
    """api_keys and running; what a server takes without a key is the control."""
    pathlib.Path("keys.txt").write_text("".join(f"{hashlib.sha256(key.encode()).hexdigest()}  {name}\n" for key, name in (("one", "anna"), ("two", "metrics"))))
    with ostro.serve("runs/nano", api_keys="keys.txt", running=3) as url:
        for key, status in (("", 401), ("other", 401), ("one", 200)):
            try:
                answer_of(url, key, prompt="the ", max_tokens=1)
                got = 200
            except urllib.error.HTTPError as refused:
                got = refused.code
            check(got == status, f"the key {key!r} gets {got}")
        check(pages_of(url, "two") == 3, "a context of one page, and other pages than running")


def importing(program):
    python("-c", "import ostro; ostro.load; import hashlib, ssl; hashlib.sha256(b'').hexdigest(); hashlib.new('sha3_256')")
    fastest = min(float(python("-c", "import time; t = time.process_time(); import ostro; ostro.load; "
                               "print(time.process_time() - t)")) for _ in range(3))
    print(f"import of ostro with its module and numpy: {fastest:.3f} s")
    check(fastest <= MOST_IMPORT_SECONDS, f"the import takes {fastest} s")
    check(python("-c", "import ostro, sys; print('numpy' in sys.modules, 'ostro._native' in sys.modules)") == "False False\n",
          "import ostro alone loads the module")
    check(python("-m", "ostro", "--version") == program("--version").stdout, "python -m ostro is another program")
    cpu = "flags\t\t: pni ssse3 cx16 sse4_1 sse4_2 popcnt avx {} fma f16c movbe bmi1 bmi2 abm\n"
    told = python("-c", f"import ostro.module as m; print(m.missing_instructions({cpu.format('avx2')!r}), "
                  f"m.missing_instructions({cpu.format('')!r}))")
    check(told == "None AVX2\n", told)


def signature(function):
    """A function of a stub or of nanobind as (its parameters with their types, what it returns)."""
    def plain(node):
        return re.sub(r"\w+\.", "", ast.unparse(node))  # Sequence for collections.abc.Sequence
    named = [(one.arg, plain(one.annotation)) for one in function.args.args if one.arg != "self"]
    unnamed = [(None, plain(one.annotation)) for one in function.args.posonlyargs if one.annotation]
    return unnamed + named, plain(function.returns)


def stub_of(text):
    """Names of a stub: {name: signature of a function, or {name: "attribute" or signature} of a class}."""
    def entry(node):
        if isinstance(node, ast.AnnAssign):
            return node.target.id, "attribute"
        if isinstance(node, ast.ClassDef):
            return node.name, dict(entry(one) for one in node.body if not isinstance(one, ast.Expr))
        return node.name, "attribute" if node.decorator_list else signature(node)
    return dict(entry(node) for node in ast.parse(text).body if not isinstance(node, (ast.Import, ast.ImportFrom)))


def members(what):
    """The same of the module or of one of its classes, by what nanobind knows of them."""
    out = {}
    for name, value in vars(what).items():
        if hasattr(value, "__nb_signature__") and (not name.startswith("_") or name == "__init__"):
            # arrays and tuples come as objects that the stub alone describes
            out[name] = signature(ast.parse(value.__nb_signature__[0][0] + ": ...").body[0])
        elif isinstance(value, property):
            out[name] = "attribute"
        elif isinstance(value, type) and not name.startswith("_"):
            out[name] = members(value)
    return out


def differences(stub, module, where=""):
    if isinstance(stub, dict) and isinstance(module, dict):
        return [line for name in sorted({*stub, *module}) for line in differences(stub.get(name), module.get(name), f"{where}.{name}")]
    if isinstance(stub, tuple) and isinstance(module, tuple) and module[1] in ("object", "tuple"):
        stub, module = stub[0], module[0]
    return [] if stub == module else [f"{where[1:]}: the stub has {stub}, the module {module}"]


def stubs(package):
    """The stubs declare what the module has: each name and signature. Controls: a name, a parameter and a type that are another."""
    import ostro
    ostro.version()
    text = (pathlib.Path(package) / "ostro/_native.pyi").read_text()
    module = members(sys.modules["ostro._native"])
    found = differences(stub_of(text), module)
    check(len(module) > 10 and not found, "\n".join(found))
    for old, new in (("def names(", "def name("), ("stride: int", "strides: int"), ("seed: int", "seed: str"), ("def url", "def uri"), ("-> bool", "-> int")):
        check(old in text and differences(stub_of(text.replace(old, new, 1)), module), f"a stub with {new} for {old} is not found")
    *imports, listed = ast.parse((pathlib.Path(package) / "ostro/__init__.pyi").read_text()).body
    declared = {alias.asname: node.module for node in imports for alias in node.names}
    check(declared == {name: f"ostro.{place}" for name, place in ostro._PLACES.items()} and ast.literal_eval(listed.value) == ostro.__all__,
          f"__init__.pyi declares {sorted(declared)}, the package has {ostro.__all__}")


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--ostro", required=True)
    arguments.add_argument("--package", required=True)
    given = arguments.parse_args()
    package = str(pathlib.Path(given.package).resolve())
    program = Program(pathlib.Path(given.ostro).resolve())
    for name in [name for name in os.environ if name.startswith("OSTRO_") and not name.startswith("OSTRO_TEST")]:
        del os.environ[name]
    os.environ["PYTHONPATH"] = package
    sys.path.insert(0, package)
    import numpy
    import ostro
    begun = time.time()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        prepare(program)
        for part in (lambda: importing(program), lambda: stubs(package), lambda: training(ostro, program), lambda: logits(numpy, answers(ostro, program)),
                     lambda: verifying(ostro, program), lambda: views(numpy, ostro),
                     growth, lambda: errors(ostro, program),
                     lambda: threads(ostro), lambda: interrupting(ostro), lambda: serving(ostro, program),
                     lambda: adapting(numpy, ostro, program), lambda: keys(ostro), lambda: chatting(ostro, program)):
            part()
            print(f"{time.time() - begun:.1f} s", flush=True)
        os.chdir("/")
    print("passed")


if __name__ == "__main__":
    main()
