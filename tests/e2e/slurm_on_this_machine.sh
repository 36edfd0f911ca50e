#!/usr/bin/env bash
# tests/e2e/slurm_on_this_machine.sh OSTRO: `ostro launch slurm` with real daemons of Slurm: a controller and three nodes on this machine.
#
# By hand, since it needs root and Slurm (on Debian: apt-get install slurm-wlm munge). One run is started, a job of it is preempted, a node
# is lost and comes back, a job is cancelled, the launcher is killed and started again, stopped by Ctrl-C, and resumed. It ends with the
# chain of `ostro train`. Another run has its directory in an object store, and shares no folder with the nodes. The last lines say that both
# are equal to the run of `ostro train`. It takes about seven minutes, two of them a job's wait after Slurm has requeued it.
set -euo pipefail
ostro="$(realpath "$1")"
source "$(dirname "$0")/slurm_daemons.sh"
here="$(realpath "$(dirname "$0")")"
launcher="" store=""
cleanup_more() {
  [[ -z "$store" ]] || kill "$store" 2>/dev/null || true
  rm -f /tmp/ostro-stored-*-*.??????
  [[ -z "$launcher" ]] || kill -KILL "$launcher" 2>/dev/null || true
  scancel --quiet --name="$(sed -n 's/^#SBATCH --job-name=//p' runs/cluster/slurm/job.sh 2>/dev/null)" 2>/dev/null || true
}

cd "$top"
for i in $(seq 200); do seq "$i" $((i + 300)) | tr '\n' ' '; done > text.txt
cat > c.yaml <<YAML
data: {train_urls: [text.txt], cache_dir: cache, vocab_size: 300}
model: {seq_len: 128, hidden_dim: 64, intermediate_dim: 128, num_layers: 2, num_heads: 4, num_kv_heads: 4}
trainer: {mp: f32, train_batch_size: 8, num_train_steps: 700, steps_per_eval: 0, checkpointer: {keep: [{every: 100}]}}
numerics: {leaf_examples: 1, cells: {embed: 16}}
YAML
OSTRO_THREADS=1 "$ostro" train --config c.yaml --trainer.id alone 2>/dev/null

steps() { if [[ -f runs/cluster/metrics.jsonl ]]; then wc -l < runs/cluster/metrics.jsonl; else echo 0; fi; }
steps_are() { (( $(steps) >= $1 )); }
jobs_run() { [[ $(squeue --noheader --states=R --partition=low --format=%i | wc -l) == "$1" ]]; }
workers_are() { [[ $("$ostro" status runs/cluster 2>/dev/null | grep -c '^ *[0-9][0-9]* ') == "$1" ]]; }
tell() { echo; echo "== $1 (after step $(steps))"; }
slow=""; for s in $(seq 10 690); do slow+="leaf:$s:*:delay=600,"; done  # so that there is time for what happens
launch() {
  OSTRO_THREADS=1 OSTRO_FAULT="${slow%,}" AWS_SECRET_ACCESS_KEY=s3cr3t "$ostro" launch slurm --nodes 1:3 --requeue --sbatch "--partition=low --time=30" \
    --config c.yaml --trainer.id cluster > out.txt 2>> err.txt &
  launcher=$!
}

tell "start: three jobs"
launch
wait_for 60 jobs_run 3
wait_for 60 steps_are 10
squeue --format='%i %T %N'
if grep -rl s3cr3t "$top/state" "$top"/spool.* runs | grep -v slurm/environment; then echo "FAILED: a secret is kept there"; exit 1; fi
[[ $(stat -c %a runs/cluster/slurm/environment) == 600 ]]

tell "preempted: a job of more priority takes a node for 10 s"
sbatch --parsable --partition=high --nodes=1 --output=/dev/null --wrap 'sleep 10' > /dev/null
wait_for 60 jobs_run 2
now=$(steps); wait_for 60 steps_are $((now + 20))
wait_for 240 jobs_run 3
squeue --format='%i %T %N'

tell "node lost: its daemon and its processes are killed"
lost="$(processes_of n2)"
kill -KILL "${daemon[n2]}" $(steps_daemons "$lost") $lost 2>/dev/null || true
wait "${daemon[n2]}" 2>/dev/null || true
now=$(steps); wait_for 60 steps_are $((now + 20))
wait_for 120 jobs_run 2
squeue --format='%i %T %N %r'

tell "grown: the node is back"
start_node n2
wait_for 240 jobs_run 3
squeue --format='%i %T %N'

tell "shrunk: a person cancels a job"
scancel "$(squeue --noheader --states=R --partition=low --format=%i | tail -n 1)"
wait_for 60 jobs_run 2
now=$(steps); wait_for 60 steps_are $((now + 20))

tell "the launcher is killed, and started again: its jobs go on"
kill -KILL $launcher
wait $launcher 2>/dev/null || true
launch
wait_for 60 jobs_run 3
now=$(steps); wait_for 60 steps_are $((now + 40))

tell "cancelled: SIGINT to the launcher"
kill -INT $launcher; code=0; wait $launcher || code=$?
echo "exit code $code; jobs in the queue: $(squeue --noheader | wc -l)"
[[ $code == 75 && ! -e runs/cluster/slurm/environment ]]

tell "resumed, to the end"
slow=leaf:1:9:delay=0
launch; code=0; wait $launcher || code=$?
echo "exit code $code; jobs in the queue: $(squeue --noheader | wc -l)"
[[ $code == 0 ]]
echo; cat err.txt | grep -v '^step' || true
echo; cat out.txt
cmp runs/alone/chain.jsonl runs/cluster/chain.jsonl && echo "equal: the chain of ostro train"

tell "nothing shared: the run in an object store, one script on sbatch's standard input"
: > store.env
python3 -c '
import shlex, sys, time
sys.path.insert(0, sys.argv[1])
from store_server import BUCKET, Store
for name, value in Store().environment().items(): print(f"export {name}={shlex.quote(value)}")
print(f"export BUCKET={BUCKET}", flush=True)
time.sleep(3600)' "$here/../s3" > store.env & store=$!
wait_for 20 grep -q BUCKET store.env
source ./store.env
HOME="$top" XDG_CACHE_HOME="" OSTRO_JOB_SECRET=0123456789abcdef0123 OSTRO_THREADS=1 OSTRO_FAULT=leaf:20:*:delay=15000 "$ostro" launch slurm --nodes 2 \
  --sbatch "--partition=low --time=30" --config c.yaml --trainer.id stored --trainer.log_dir "s3://$BUCKET/runs" > out2.txt 2>> err.txt &
launcher=$!
wait_for 60 jobs_run 2
job="$(squeue --noheader --states=R --partition=low --format=%i | head -n 1)"
[[ "$(scontrol write batch_script "$job" -)" == *OSTRO_JOB_SECRET=0123456789abcdef0123* ]]  # to its user, who is root here
if setpriv --reuid=65534 --regid=65534 --clear-groups scontrol write batch_script "$job" - 2>&1 | grep -q 0123456789abcdef; then
  echo "FAILED: another user sees the script"; exit 1
fi
if tr '\0' ' ' < <(cat /proc/[0-9]*/cmdline 2>/dev/null) | grep -q 0123456789abcde[f]; then echo "FAILED: a program has the secret in its arguments"; exit 1; fi
if find "$top/state" "$top"/spool.* -type f -perm /077 -exec grep -l 0123456789abcdef {} + | grep .; then echo "FAILED: others can read it there"; exit 1; fi
code=0; wait $launcher || code=$?
echo "exit code $code; jobs in the queue: $(squeue --noheader | wc -l); $(ls -l /tmp/ostro-stored-*)"
[[ $code == 0 && ! -e runs/stored && ! -e $(echo .cache/ostro/slurm/ostro-stored-*)/environment ]]
[[ "$("$ostro" hash "s3://$BUCKET/runs/stored")" == "$("$ostro" hash runs/alone)" ]] && echo "equal: the run hash of ostro train"
