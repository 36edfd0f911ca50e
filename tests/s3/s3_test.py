#!/usr/bin/env python3
"""Builds and reads stores through s3:// from a server that fails in every way that passes, and in some that do not.

    s3_test.py --ostro BINARY
"""
import argparse
import gzip
import hashlib
import json
import pathlib
import random
import re
import socket
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fault"))
from harness import Workspace, check, in_order
from key_server import FOLDER, IDENTITY, ROLE, KeyServer
from s3_server import TOKEN, Server

PASSING = ["503", "reset", "cut", "short", "wrong_range", "no_range"]


def zstd_frames(*parts):
    """Zstandard frames of raw blocks: no library needed."""
    out = b""
    for part in parts:
        out += b"\x28\xb5\x2f\xfd" + b"\xa0" + len(part).to_bytes(4, "little")
        for at in range(0, len(part), 60000):
            block = part[at:at + 60000]
            out += (len(block) << 3 | (at + 60000 >= len(part))).to_bytes(3, "little") + block
    return out


def corpus(folder):
    """Files of every kind that is read without further libraries, some with names that need care in an URL."""
    rng = random.Random(3)
    words = [p.read_text() for p in sorted((folder.parent / "corpus").glob("*.txt"))]

    def lines(count):
        return "".join(json.dumps({"text": rng.choice(words)[:rng.randrange(20, 900)], "n": i}) + "\n"
                       for i in range(count)).encode()

    packed = lines(300)
    files = {f"text/{i:02}.txt": words[i % len(words)][:3000 + i].encode() for i in range(12)}
    files["lines/plain é+&=%41 ~.jsonl"] = lines(900)
    files["lines/deep/er/packed.jsonl.gz"] = gzip.compress(packed[:9000], mtime=0) + gzip.compress(packed[9000:], mtime=0)
    files["lines/packed.jsonl.zst"] = zstd_frames(packed[:9000], packed[9000:])
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return files


class Test:
    def __init__(self, ostro):
        self.w, self.server = Workspace(ostro), Server()
        self.files = corpus(self.w.root / "source")
        for name, content in self.files.items():
            self.server.put("bucket", f"data/{name}", content)
        self.urls = ["text", "lines/**/*.jsonl*"]

    def close(self):
        self.server.close()
        self.w.close()

    def config(self, name, root, **changes):
        return self.w.config(name, 6, 3, **({"data__train_urls": [f"{root}/{url}" for url in self.urls]} | changes))

    def good(self, *words, **env):
        return self.w.good(*words, env=self.server.environment() | env)

    def bad(self, *words, says, **env):
        status, out, err = self.w.run(*words, env=self.server.environment() | {"AWS_MAX_ATTEMPTS": "3"} | env)
        errors = [line for line in err.splitlines() if line.startswith("error: ")]
        check(status in (1, 2) and len(errors) == 1, f"{words}: status {status}\n{out}{err}")
        missing = [word for word in says if word not in errors[0]]
        check(not missing, f"{words}: no {missing} in: {errors[0]}")
        print(f"    {errors[0][:300]}")
        return errors[0]

    # A request for the n-th time of its kind meets the n-th fault, for the second time none.
    def every_first(self, what, count):
        if count > 0:
            return None
        kinds = PASSING if " bytes=" in what else ["503", "reset"]
        return kinds[len(self.server.seen) % len(kinds)]

    def builds_equal(self):
        local = self.good("data", "build", "--config", self.config("local", "source"))
        self.server.page = 5
        self.server.begin(self.every_first)
        remote = self.good("data", "build", "--config", self.config("remote", "s3://bucket/data"))
        hashes = [re.search(r"ledger hash (\w+)", text)[1] for text in (local, remote)]
        check(hashes[0] == hashes[1], f"ledger hashes differ: {hashes}")
        retried = sum(count > 1 for count in self.server.seen.values())
        check(retried == len(self.server.seen), f"{retried} of {len(self.server.seen)} requests met a fault")
        print(f"    {hashes[0][:16]}, {len(self.server.requests)} requests, {retried} of them repeated")

    def trains_equal(self):
        self.server.begin(self.every_first)
        for name, root in (("local", "source"), ("remote", "s3://bucket/data")):
            self.good("train", "--config", self.config(name, root))
        check(self.server.requests, "the sources were not looked at")
        check(self.w.chain("local") == self.w.chain("remote"), "the chains differ")

    def store_in_bucket(self):
        folder = self.w.root / "cache-local"
        for path in folder.rglob("*"):
            if path.is_file():
                self.server.put("bucket", f"stores/one/{path.relative_to(folder)}", path.read_bytes())
        self.server.begin(self.every_first)
        config = self.config("stored", "s3://bucket/data", data__cache_dir="s3://bucket/stores/one")
        words = ("data", "batch", "--step", "3", "--json", "--config")
        check(self.good(*words, config) == self.good(*words, self.config("local", "source")), "the batches differ")
        self.good("train", "--config", config)
        check(self.w.chain("stored") == self.w.chain("local"), "the chains differ")
        joined = self.config("joined", "source")
        self.good("data", "consolidate", "--in_place", "--from", "s3://bucket/stores/one", "--config", joined)
        check(not (self.w.root / "cache-joined/train").exists(), "arrays were copied")
        check(self.good(*words, joined) == self.good(*words, config), "the batches of the store joined in place differ")
        self.good("train", "--config", joined)
        check(self.w.chain("joined") == self.w.chain("local"), "the chain on the store joined in place differs")
        self.server.begin()
        self.bad("data", "build", "--config", self.config("new", "s3://bucket/data", data__cache_dir="s3://bucket/new"),
                 says=["s3://bucket/new", "can only be read", "local directory"])

    def store_kept_back(self):
        """A store whose ledger or chunks the server does not give is not called damaged, and left as it is."""
        place, before = "s3://bucket/stores/one", dict(self.server.buckets["bucket"])
        config = self.config("stored", "s3://bucket/data", data__cache_dir=place)
        batch = ("data", "batch", "--step", "3", "--config", config)
        for file, words in (("ledger.json", ["reading ledger.json of"]), ("chunks.table", ["reading chunks.table of"]),
                            ("train/input_ids/data/c/0", [f"reading {place}/train/input_ids/data of"])):
            path = f"GET /bucket/stores/one/{file}"
            for fault, text in (("503", ["status 503", "3 attempts"]), ("403", ["status 403", "AWS_ACCESS_KEY_ID"])):
                self.server.begin(lambda what, count: fault if what.startswith(path) else None)
                error = self.bad(*batch, says=words + [f"the token store in {place}", f"{place}/{file}"] + text)
                check(not re.search("delete|damage", error), f"{file}, {fault}: {error}")
        # Where the chunk is gone, it says so.
        key = "stores/one/train/input_ids/data/c/0"
        self.server.begin()
        del self.server.buckets["bucket"][key]
        self.bad(*batch, says=[f"damaged token store: {place}/train/input_ids/data: ", f"delete {place} and build it again"])
        self.server.buckets["bucket"][key] = before[key]
        check(self.server.buckets["bucket"] == before, "the store is as it was")
        self.good(*batch)

    def keys(self):
        self.server.begin()
        config = self.config("keys", "s3://bucket/data")
        self.bad("data", "build", "--config", config, AWS_SECRET_ACCESS_KEY="wrong",
                 says=["s3://bucket/data/text", "403", "AWS_SECRET_ACCESS_KEY"])
        self.bad("data", "build", "--config", config, AWS_REGION="elsewhere-1",
                 says=["status 400", "in region eu-test-7: set AWS_REGION"])
        self.bad("data", "build", "--config", config, AWS_ACCESS_KEY_ID="", says=["AWS_ACCESS_KEY_ID"])
        self.server.token = True
        self.bad("data", "build", "--config", config, says=["403"])
        self.good("data", "build", "--config", config, AWS_SESSION_TOKEN=TOKEN)
        self.server.token = False
        self.server.public.add("bucket")
        self.good("data", "build", "--config", self.config("public", "s3://bucket/data"), AWS_ACCESS_KEY_ID="",
                  AWS_SECRET_ACCESS_KEY="")
        self.server.public.clear()

    def key_sources(self):
        """Keys of a machine's role and of web identities. Where no place has any, the error names each; a place that does not answer is
        given a second."""
        build = ("data", "build", "--config", self.config("keys", "s3://bucket/data"))
        none = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": str(self.w.root), "AWS_EC2_METADATA_DISABLED": ""}
        token, aws = self.w.root / "identity", self.w.root / ".aws"
        token.write_text(IDENTITY + "\n")
        aws.mkdir()
        self.server.token = True
        with KeyServer() as keys:
            machine = none | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": keys.url}
            identity = none | {"AWS_ENDPOINT_URL_STS": keys.url}
            role = {"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": str(token)}
            for env, wanted in ((machine, ["PUT /latest/api/token 200", f"GET {FOLDER} 200", f"GET {FOLDER}{ROLE} 200"]),
                                (identity | role, ["POST / 200"]), (identity | {"AWS_PROFILE": "p"}, ["POST / 200"])):
                (aws / "config").write_text(f"[profile p]\nrole_arn = r\nweb_identity_token_file = {token}\n")
                self.server.begin()
                keys.asked.clear()
                self.good(*build, **env)
                check(self.server.requests, "the sources were not looked at")
                check(keys.asked == wanted, f"{env}: asked for {keys.asked}")
            token.write_text("another")
            self.bad(*build, says=["status 400 (InvalidIdentityToken: Another one.)", str(token)], **identity, **role)
        # What listens there and says nothing is no machine's metadata.
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            self.bad(*build, says=["status 403", "the request had no keys", "environment: AWS_ACCESS_KEY_ID is not set", "web identity: ",
                                   f"{aws}/credentials is not there", "no keys for s3:// in the profile default; it has the profiles p",
                                   "container: ", f"instance metadata: nothing answers at {url}"],
                     **none, AWS_EC2_METADATA_SERVICE_ENDPOINT=url)
        (aws / "config").unlink()
        self.server.token = False

    def lasting_faults(self):
        config = self.config("lasting", "s3://bucket/data")
        name = "/bucket/data/text/07.txt"
        says = {
            "503": ["status 503", "SlowDown", "3 attempts"], "reset": ["3 attempts"], "cut": ["3 attempts"],
            "short": ["the body has", "3 attempts"], "wrong_range": ["Content-Range", "3 attempts"],
            "403": ["status 403", "AWS_ACCESS_KEY_ID"], "404": ["status 404", "NoSuchKey"],
        }
        for fault, words in says.items():
            self.server.begin(lambda what, count: fault if what.startswith(f"GET {name}") else None)
            self.bad("data", "build", "--config", config, says=["s3://bucket/data/text/07.txt: bytes [0, "] + words)
            asked = [what for what in self.server.requests if what.startswith(f"GET {name}")]
            # The HTTP library asks again by itself when a connection that it kept is reset.
            times = {"403": [1], "404": [1], "reset": range(3, 7)}.get(fault, [3])
            check(len(asked) in times, f"{fault}: asked {len(asked)} times")
        # What was done before a fault is not lost: the build goes on.
        self.server.begin()
        self.good("data", "build", "--config", config)

    def slow_server(self):
        self.server.begin(lambda what, count: "trickle" if count == 0 and "03.txt bytes" in what else None)
        self.good("data", "build", "--config", self.config("slow", "s3://bucket/data"), OSTRO_S3_STALL_SECONDS="1")
        # More than twice where this server itself stood for a second.
        check(any(count >= 2 for what, count in self.server.seen.items() if "03.txt bytes" in what), "not repeated")

    def lab_source(self):
        """A source of a lab in the bucket: pinned like files, read by programs, too; another object of the same size is an error."""
        lines = b"".join(json.dumps({"text": f"row {n} of the bucket"}).encode() + b"\n" for n in range(40))
        self.server.put("bucket", "lab/rows.jsonl", lines)
        folder = self.w.root / "lab"
        (folder / "local").mkdir(parents=True)
        (folder / "local/rows.jsonl").write_bytes(lines)
        (folder / "held.txt").write_text("a row that is held out")
        for name, place in (("local", "local/*.jsonl"), ("remote", "s3://bucket/lab/*.jsonl")):
            inside = "local/rows.jsonl" if name == "local" else "bucket/lab/rows.jsonl"
            (folder / f"{name}.yaml").write_text(f"""
lab: {name}
question: Is it the same from a bucket?
steps:
  texts: {{source: {{files: ["{place}"], licence: MIT}}}}
  held: {{source: {{files: [held.txt], licence: MIT}}}}
  words: {{tokenizer: {{from: $texts, vocab_size: 260}}}}
  rows: {{tokens: {{from: $texts, held_out: $held, tokenizer: $words}}}}
  count: {{run: {{program: [sh, -c, "wc -c < in/t/{inside} > out/n"], inputs: {{t: $texts}}, outputs: [n]}}}}
""")
        self.server.begin(self.every_first)
        contents = []
        for name in ("local", "remote"):
            self.good("lab", "run", f"lab/{name}.yaml")
            entries = map(json.loads, (folder / f"{name}.lab/journal.jsonl").read_text().splitlines())
            contents.append({entry["step"]: entry["content"] for entry in entries if entry["kind"] == "done"})
        check({step: content for step, content in contents[0].items() if step != "texts"} ==
              {step: content for step, content in contents[1].items() if step != "texts"}, f"other contents from the bucket: {contents}")
        pins = json.loads((folder / "lab.lock").read_text())["remote/texts"]["files"]
        check(pins == [[hashlib.sha256(lines).hexdigest(), "s3://bucket/lab/rows.jsonl"]], pins)
        check(not list(folder.rglob("*.fetched")), "copies of objects were left")
        self.server.begin()
        again = self.good("lab", "run", "lab/remote.yaml")
        check("\nrun " not in again and not any(what.startswith("GET /bucket/lab/rows") for what in self.server.requests), f"it was read again: {again}")
        self.server.put("bucket", "lab/rows.jsonl", lines.replace(b"row 7 ", b"row 8 "))
        self.bad("lab", "run", "lab/remote.yaml", says=["s3://bucket/lab/rows.jsonl has changed: its SHA-256 is", "--pin texts"])

    def changing_sources(self):
        key = "data/text/05.txt"
        content = self.server.buckets["bucket"][key][0]
        config = self.config("changing", "s3://bucket/data")

        def change(what, _):
            if what.startswith("HEAD") and key in what:  # after it was listed, before its bytes are asked for
                self.server.seen["changed"] = self.server.seen.get("changed", 0) + 1
                self.server.put("bucket", key, content[:-1] + b"%d" % (self.server.seen["changed"] % 10))

        self.server.begin(change)
        self.bad("data", "build", "--config", config, says=[f"s3://bucket/{key}", "changed while it was read"])
        self.server.put("bucket", key, content)
        del self.server.buckets["bucket"]["data/text/06.txt"]
        self.server.begin()
        # A store that was not finished, of texts that are others now, is built again from the texts that are there.
        status, out, err = self.w.run("data", "build", "--config", config, env=self.server.environment())
        missing = [word for word in ("cache-changing", "source files", "06.txt") if word not in err]
        check(status == 0 and not missing, f"status {status}, no {missing} in:\n{err}")
        again = self.good("data", "build", "--config", self.config("again", "s3://bucket/data"))
        hashes = [re.search(r"ledger hash (\w+)", text)[1] for text in (out, again)]
        check(hashes[0] == hashes[1], f"ledger hashes differ: {hashes}")
        self.server.put("bucket", "data/text/06.txt", self.files["text/06.txt"])
        for url, words in (("s3://nowhere/x", ["nowhere", "NoSuchBucket"]), ("s3://bucket/none/*", ["names no file"]),
                           ("s3://*/x", ["bucket"]), ("gs://bucket/x", ["gs://", "s3://"]), ("s3:///x", ["bucket"])):
            self.bad("data", "build", "--config", self.w.config("none", 6, 3, data__train_urls=[url]),
                     says=["data.train_urls"] + words)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    return in_order(Test(parser.parse_args().ostro), ("builds_equal", "trains_equal", "store_in_bucket",
                                                      "store_kept_back", "keys", "key_sources", "lasting_faults", "slow_server", "lab_source", "changing_sources"))


if __name__ == "__main__":
    sys.exit(main())
