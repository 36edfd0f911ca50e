#!/usr/bin/env python3
"""Sources and a token store in buckets of moto, an S3 server that is not ours: it checks signatures and permissions and
pages its lists, and between it and us requests fail once: those of lists, long files and the store, and every sixteenth
of those of many small files. One ledger hash and one chain as from local files.
Usage: check_s3.py --ostro build/.../ostro

tests/s3 has the server of our own, which fails in more ways.
"""
import argparse
import json
import logging
import os
import pathlib
import random
import re
import subprocess
import tempfile
import threading
import urllib.request
import zlib

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

from checks import check, summary

REGION = "eu-west-3"


class FailsOnce:
    """A WSGI application that answers a request of its kind with a fault the first time, in three ways by turns."""

    def __init__(self, app):
        self.app, self.active, self.seen, self.faults = app, False, set(), 0

    def __call__(self, environ, start_response):
        what = (environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"], environ.get("HTTP_RANGE"))
        spared = "/many/" in what[1] and zlib.crc32(what[1].encode()) % 16 != 0
        if not self.active or what in self.seen or spared:
            return self.app(environ, start_response)
        self.seen.add(what)
        self.faults += 1
        kind = self.faults % 3 if environ["REQUEST_METHOD"] == "GET" else 0
        if kind == 0:
            start_response("503 Slow Down", [("Content-Length", "0")])
            return []
        body = b"".join(self.app(environ, start_response))
        return [body[:len(body) // 2]] if kind == 1 else []  # fewer bytes than Content-Length says


class Server:
    def __init__(self):
        self.app = FailsOnce(DomainDispatcherApplication(create_backend_app))
        self.server = make_server("127.0.0.1", 0, self.app, threaded=True)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def client(self, service, key="any", secret="any"):
        return boto3.client(service, endpoint_url=self.url, region_name=REGION, aws_access_key_id=key,
                            aws_secret_access_key=secret)

    def user(self, name, *actions):
        """(key, secret) of a new user who may do these things."""
        iam = self.client("iam")
        iam.create_user(UserName=name)
        allow = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), "Resource": "*"}]}
        iam.put_user_policy(UserName=name, PolicyName="only", PolicyDocument=json.dumps(allow))
        made = iam.create_access_key(UserName=name)["AccessKey"]
        return made["AccessKeyId"], made["SecretAccessKey"]

    def require_keys(self):
        request = urllib.request.Request(f"{self.url}/moto-api/reset-auth", data=b"0", headers={"Content-Type": "text/plain"})
        urllib.request.urlopen(request, timeout=30)


class Test:
    def __init__(self, ostro, root):
        self.ostro, self.root, self.server = ostro, root, Server()
        self.reader = self.server.user("reader", "s3:GetObject", "s3:ListBucket")
        self.stranger = self.server.user("stranger", "sqs:ListQueues")
        self.owner = self.server.user("owner", "s3:*")
        s3 = self.server.client("s3")
        s3.create_bucket(Bucket="texts", CreateBucketConfiguration={"LocationConstraint": REGION})
        rng = random.Random(7)
        words = ["".join(rng.choices("etaoinshrdlu\u00e9\u4e2d", k=rng.randrange(1, 9))) for _ in range(300)]
        for i in range(1010):  # more than a page of a list
            self.put(s3, f"many/{i:04}.txt", " ".join(rng.choices(words, k=30)))
        for name in ("rows", "a b+c&d=%41/\u00e9"):
            self.put(s3, f"lines/{name}.jsonl",
                     "".join(json.dumps({"text": " ".join(rng.choices(words, k=40))}) + "\n" for _ in range(400)))
        self.s3 = s3
        (root / "corpus.txt").write_text(" ".join(rng.choices(words, k=20000)))
        self.run("tokenizer", "train", "--input", "corpus.txt", "--vocab_size", "400", "--out", "tokenizer.json")

    def put(self, s3, name, text):
        path = self.root / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        s3.put_object(Bucket="texts", Key=name, Body=text.encode())

    def run(self, *words, keys=None, says=()):
        key, secret = keys or self.reader
        env = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")} | {
            "AWS_ENDPOINT_URL_S3": self.server.url, "AWS_REGION": REGION, "AWS_ACCESS_KEY_ID": key,
            "AWS_SECRET_ACCESS_KEY": secret}
        done = subprocess.run([self.ostro, *words], capture_output=True, text=True, cwd=self.root, env=env, timeout=240)
        check((done.returncode != 0) == bool(says) and all(word in done.stderr for word in says),
              f"{words}: exit {done.returncode}, wanted {says}: {done.stdout}{done.stderr}")
        return done.stdout

    def config(self, name, texts, **data):
        values = {"data": {"tokenizer": "tokenizer.json", "cache_dir": f"cache-{name}",
                           "train_urls": [f"{texts}/many/*.txt", f"{texts}/lines/**/*.jsonl"], "validation_fraction": 0.1} | data,
                  "model": {"seq_len": 32, "hidden_dim": 16, "intermediate_dim": 24, "num_layers": 1, "num_heads": 2,
                            "num_kv_heads": 1},
                  "trainer": {"id": name, "log_dir": "runs", "num_train_steps": 4, "train_batch_size": 4, "steps_per_eval": 0}}
        (self.root / f"{name}.yaml").write_text(json.dumps(values))
        return f"{name}.yaml"

    def chain(self, name):
        return (self.root / "runs" / name / "chain.jsonl").read_bytes()

    def all(self):
        hashes = {}
        local, remote = self.config("local", "texts"), self.config("remote", "s3://texts")
        self.server.require_keys()
        hashes["local"] = self.run("data", "build", "--config", local)
        self.server.app.active = True
        hashes["remote"] = self.run("data", "build", "--config", remote)
        check(len({re.search(r"ledger hash (\w+)", out)[1] for out in hashes.values()}) == 1, f"ledger hashes differ: {hashes}")
        check(self.server.app.faults > 50, f"only {self.server.app.faults} faults")
        for name in ("local", "remote"):
            self.run("train", "--config", f"{name}.yaml")
        check(self.chain("local") == self.chain("remote"), "the chains differ")

        # A store in a bucket, read in place.
        self.server.app.active = False
        owner = self.server.client("s3", *self.owner)
        for path in (self.root / "cache-local").rglob("*"):
            if path.is_file():
                name = path.relative_to(self.root / "cache-local")
                owner.put_object(Bucket="texts", Key=f"store/{name}", Body=path.read_bytes())
        self.server.app.active = True
        stored = self.config("stored", "s3://texts", cache_dir="s3://texts/store")
        words = ("data", "batch", "--step", "3", "--json", "--config")
        check(self.run(*words, stored) == self.run(*words, local), "the batches differ")
        self.run("train", "--config", stored)
        check(self.chain("stored") == self.chain("local"), "the chains differ")

        self.server.app.active = False
        for keys, says in (((self.reader[0], "wrong"), ["403"]), (self.stranger, ["403"]), (("AKIAnobody", "x"), ["403"])):
            self.run("data", "build", "--config", self.config("refused", "s3://texts"), keys=keys, says=says)
        self.run("data", "build", "--config", self.config("nowhere", "s3://no-such-bucket"), says=["no-such-bucket"])


def main():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    ostro = str(pathlib.Path(parser.parse_args().ostro).resolve())
    with tempfile.TemporaryDirectory(prefix="ostro-s3-") as folder:
        Test(ostro, pathlib.Path(folder)).all()
    summary()


main()
