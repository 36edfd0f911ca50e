#!/usr/bin/env python3
"""Tests `ostro check cluster`: a program in the place of ssh runs the agents on this machine, at addresses of the loopback. Three good
machines; then one that is down, one without the program, one with another program, one that computes other bits, one whose folder is
another one, ones that cannot be connected to, a check that is stopped, strangers at the ports, and lists with mistakes; an object store that
works, that one machine has no keys for, that has no such bucket, and that ignores conditions. Nothing stays behind.

    check_cluster_test.py --ostro PROGRAM
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "s3"))
from program import Program, check
from store_server import BUCKET, Store
from workers_test import wait_for

# ssh's options, `--`, the host and the command. What is wrong with a machine follows from its name.
SSH = """#!/bin/bash
program=PROGRAM other=OTHER
while [ "$1" != -- ]; do shift; done
host=$2 command=$3 address=127.0.0.$((${#2} % 100 + 1))
case $host in
  down*) echo "ssh: connect to host $host port 22: Connection refused" >&2; exit 255;;
  empty*) command=${command//check cluster/no-such-verb};;
  silent*) exec sleep 2;;
  chatty*) command="echo Welcome to $host; $command";;
  unreachable*) address=203.0.113.7;;
  nowhere*) exec env -i PATH="$PATH" HOME="$HOME" OSTRO_THREADS=1 sh -c "$command";;
  other*) command=${command//"$program"/$other};;
  wrong*) command="sed -u 's/\\"AWS_SECRET_ACCESS_KEY\\":\\"/&x/' | { $command; }";;
  forged*) command="sed -u 's/\\"AWS_SECRET_ACCESS_KEY\\":\\"/&x/' | { $command; } | sed -u 's,^{\\"error\\":\\"s3:.*,{\\"seen\\":true},'";;
  slow*) command="{ $command; } | { head -n 2; cat > /dev/null; }";;

esac
exec env -i PATH="$PATH" HOME="$HOME" OSTRO_THREADS=1 SSH_CONNECTION="127.0.0.1 40000 $address 22" sh -c "$command"
"""
CONFIG = """
data: {train_urls: [texts], cache_dir: store}
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {log_dir: runs, train_batch_size: 4, num_train_steps: 4}
numerics: {leaf_examples: 2}
"""


PORTS = f"{20000 + os.getpid() % 8000}-{20003 + os.getpid() % 8000}"


class Cluster:
    def __init__(self, ostro, top):
        self.program, self.top = Program(ostro, top), top
        self.other = top / "other"
        ssh = top / "ssh"
        ssh.write_text(SSH.replace("PROGRAM", self.program.ostro).replace("OTHER", str(self.other)))
        ssh.chmod(0o755)
        (top / "c.yaml").write_text(CONFIG)
        (top / "texts").mkdir()

    def run(self, hosts, *words, code=0, **env):
        (self.top / "hosts.txt").write_text("".join(f"{host}\n" for host in hosts))
        return self.program.run("check", "cluster", "--hosts", "hosts.txt", "--ssh", str(self.top / "ssh"), *words, code=code,
                                **env)

    def problem(self, hosts, words, *more):
        out = self.run(hosts, "--no_selftest", "--link_mib", "0", *more, code=1)
        check(f"problem: {hosts[-1]}: " in out and words in out, f"{hosts}: expected {words!r} in\n{out}")
        return out


def check_good(cluster):
    out = cluster.run(["node1", "me@node2 slots=2", "node-three"], "--config", "c.yaml", "--link_mib", "1")
    for words in ("links: 6 of 6 connect", "node1 to me@node2: ", "self-test f055dd224933", "runs: shared, ", "store: shared, ",
                  "3 machines can train together"):
        check(words in out, f"{words!r} is not in\n{out}")
    check("problem" not in out, out)
    # Whether a link is slow beside the others depends on what else this machine does, so no rates are measured here.
    out = cluster.run(["node1", "me@node2 slots=2", "node-three"], "--config", "c.yaml", "--link_mib", "0", "--no_selftest")
    check("problem" not in out and "note" not in out, out)
    out = cluster.run(["node1", "me@node2"], "--config", "c.yaml", "--link_mib", "0", "--no_selftest", "--trainer.worker_ports", PORTS)
    check("links: 2 of 2 connect" in out and "problem" not in out, out)
    check(not list(cluster.top.rglob(".ostro-check-*")), "files of the check are still there")
    told = json.loads(cluster.run(["node1", "node-three"], "--json", "--no_selftest", "--link_mib", "1"))
    check(told["ok"] and [h["name"] for h in told["hosts"]] == ["node1", "node-three"], told)
    check(len(told["links"]) == 2 and told["links"][0]["bytes_per_second"] > 0, told)
    check(told["hosts"][0]["address"] != told["hosts"][1]["address"] and abs(told["hosts"][0]["clock_offset_seconds"]) < 5, told)


def check_stopped(cluster):
    """A check that is stopped while a machine does not answer leaves nothing behind, and says so."""
    (cluster.top / "hosts.txt").write_text("node1\nslow\n")
    process = subprocess.Popen([cluster.program.ostro, "check", "cluster", "--hosts", "hosts.txt", "--ssh", str(cluster.top / "ssh"), "--config",
                                "c.yaml", "--no_selftest"], cwd=cluster.top, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    wait_for(lambda: list(cluster.top.rglob(".ostro-check-*")) or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    out = process.communicate(timeout=300)[0]
    check(process.returncode == 75 and "nothing of the check stays behind" in out, f"{process.returncode}: {out}")
    check(not list(cluster.top.rglob(".ostro-check-*")), "files of the check are still there")


def check_bad(cluster):
    cluster.problem(["node1", "down"], "Connection refused")
    cluster.problem(["node1", "silent"], "has ended")
    cluster.problem(["node1", "empty"], "")
    cluster.problem(["node1", "chatty"], "Welcome to chatty")
    cluster.problem(["node1", "nowhere"], "SSH_CONNECTION is not set")
    cluster.problem(["node1", "unreachable"], "listens not at 203.0.113.7")
    # Nothing leads to this worker from the host that is advertised: a problem, unless the coordinator passes bytes on.
    hosts = ["node1", "node-far advertise=127.0.0.99:1"]
    words = ["--no_selftest", "--link_mib", "0", "--config", "c.yaml", "--trainer.worker_ports", PORTS.split("-", maxsplit=1)[0]]
    out = cluster.run(hosts, *words, code=1)
    check("problem: node1: to node-far: no connection to 127.0.0.99:1 in 10 s (no listener at 127.0.0.99:1: Connection refused); a firewall may"
          in out and "links: 1 of 2 connect" in out, out)
    out = cluster.run(hosts, *words, "--trainer.relay", "auto")
    check("note: node1: to node-far: no connection to 127.0.0.99:1" in out and "the coordinator will pass their bytes on" in out, out)
    check("firewall" not in out, out)
    # The cause is that of the name, and no firewall.
    out = cluster.run(["node1", "node-far advertise=nowhere.invalid:1"], *words, code=1)
    check("no connection to nowhere.invalid:1 in 10 s (" in out and "host 'nowhere.invalid': " in out and "firewall" not in out, out)
    # Without a configuration nothing says where the advertised ports lead; with always no worker listens.
    out = cluster.run(hosts, "--no_selftest", "--link_mib", "0")
    check("note: node-far: advertise=127.0.0.99:1 is not tried" in out and "links: 1 of 2 connect" in out, out)
    out = cluster.run(["node1", "unreachable"], "--no_selftest", "--config", "c.yaml", "--trainer.relay", "always")
    check("note: links between the machines are not tried" in out and "problem" not in out, out)
    out = cluster.run(hosts, "--no_selftest", "--config", "c.yaml", "--trainer.relay", "always", code=1)
    check("problem: node-far: advertise=127.0.0.99:1 has no use with trainer.relay: always" in out, out)
    out = cluster.run(["node1", "gpu devices=cuda:77"], "--no_selftest", "--link_mib", "0", code=1)
    check("problem: gpu: device cuda:77: " in out, out)
    # Another program is a note; a self-test with other hashes is a problem.
    def answers_with(change):
        cluster.other.write_text(f"#!/bin/sh\n{cluster.program.ostro} \"$@\" | sed -u '{change}'\n")
        cluster.other.chmod(0o755)

    answers_with('s/"binary_sha256":"[0-9a-f]*/"binary_sha256":"0123456789abcdef/')
    out = cluster.run(["node1", "other"], "--no_selftest", "--link_mib", "0")
    check("note: other: its program is another one than that of node1" in out, out)
    answers_with('s/f055dd224933/f055dd224934/')
    out = cluster.run(["node1", "other"], "--link_mib", "0", code=1)
    check("problem: other: its self-test gives f055dd224934" in out and "leave it out" in out, out)
    answers_with('s/"seen":true/"seen":false,"exists":true/')
    cluster.problem(["node1", "other"], "is another folder", "--config", "c.yaml")
    answers_with('s/"locked":true/"locked":false/')
    cluster.problem(["node1", "other"], "locks of other machines are not seen", "--config", "c.yaml")


def check_store(cluster):
    store = Store()
    env = store.environment() | {"HOME": str(cluster.top)}
    secret, url = env["AWS_SECRET_ACCESS_KEY"], env["AWS_ENDPOINT_URL"]

    def run(hosts, *words, bucket=BUCKET, code=1, **more):
        out = cluster.run(hosts, "--no_selftest", "--link_mib", "0", "--config", "c.yaml", "--trainer.log_dir", f"s3://{bucket}/all", *words,
                          code=code, **(env | more))
        check(secret not in out and not store.files("all/.ostro-check"), f"a secret, or objects of the check: {out}")
        return out

    try:
        out = run(["node1", "me@node2"], "--trainer.scratch_dir", "new/scratch", code=0)
        row = f"  s3://{BUCKET}/all: written and read at {url}, with the keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        check(out.count(row) == 2 and out.count(f"{cluster.top}/new/scratch: ") == 2 and "2 machines can train together" in out, out)
        check(not (cluster.top / "new").exists() and not list(cluster.top.rglob(".ostro-check*")), "files of the check are still there")
        # One machine has other keys. The control: it is its own answer that tells.
        out = run(["node1", "wrong"])
        check(f"problem: wrong: s3://{BUCKET}/all (trainer.log_dir): " in out and "SignatureDoesNotMatch" in out and "s3:PutObject" in out and
              "1 problem on 2 machines" in out, out)
        check("problem" not in run(["node1", "forged"], code=0), "the forged answer was not taken")
        out = run(["node1"], AWS_ACCESS_KEY_ID="", AWS_SECRET_ACCESS_KEY="")
        for words in ("problem: this machine (", "problem: node1: s3://", "the request had no keys", "web identity: ", "instance metadata: ",
                      "give this machine keys", "2 problems on 1 machines"):
            check(words in out, f"{words!r} is not in\n{out}")
        out = run(["node1"], bucket="nobucket")
        check("problem: node1: s3://nobucket/all (trainer.log_dir): " in out and "NoSuchBucket" in out and "aws s3 mb s3://nobucket" in out, out)
        store.ignores_conditions = True
        out = run(["node1"])
        check("problem: node1: " in out and f"the server {url} ignores If-None-Match" in out, out)
        store.ignores_conditions = False
        cluster.other.write_text(f"#!/bin/sh\n{cluster.program.ostro} \"$@\" | sed -u '/\"keys\"/s/\"seen\":true/\"seen\":false/'\n")
        cluster.other.chmod(0o755)
        check("is another store than at" in run(["node1", "other"]), "another store was not seen")
        # What machines read and write of their own.
        out = run(["node1"], "--trainer.scratch_dir", "c.yaml/scratch", "--data.tokenizer", "/none/tokenizer.json", "--trainer.initialize_from",
                  f"s3://{BUCKET}/none")
        for words in ("trainer.scratch_dir: ", "c.yaml is a file", "data.tokenizer: there is no /none/tokenizer.json at that machine",
                      f"trainer.initialize_from: there is no s3://{BUCKET}/none at that machine", "3 problems on 1 machines"):
            check(words in out, f"{words!r} is not in\n{out}")
        out = cluster.run(["node1"], "--no_selftest", "--link_mib", "0")
        check(f"  {cluster.top}: " in out and " GB free" in out, out)
    finally:
        store.close()


def check_slips(cluster):
    for hosts, words in ((["node1", "node1"], "stands in line 1 already"), ([], "has no host"), (["a gpus=2"], "gpus=2")):
        check(words in cluster.run(hosts, code=2), f"{hosts}: {words}")
    check("--link_mib -1" in cluster.run(["node1"], "--link_mib", "-1", code=2), "a negative size")
    check("--hosts" in cluster.program.run("check", "cluster", code=2), "no list")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ostro", required=True)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OSTRO_THREADS"] = "1"
        cluster = Cluster(args.ostro, pathlib.Path(folder))
        check_good(cluster)
        check_stopped(cluster)
        check_bad(cluster)
        check_store(cluster)
        check_slips(cluster)
    print("machines were checked; what was wrong with them was found")


if __name__ == "__main__":
    main()
