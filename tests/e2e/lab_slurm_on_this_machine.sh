#!/usr/bin/env bash
# tests/e2e/lab_slurm_on_this_machine.sh OSTRO: `ostro lab run --place slurm` with real daemons of Slurm: a controller and three nodes.
#
# By hand, since it needs root and Slurm (on Debian: apt-get install slurm-wlm munge). Of two trainings that wait at a gate one job is
# preempted, one lost with its node, one cancelled; the driver is killed and started again, and stopped by Ctrl-C. The lab comes to the
# hash of a lab whose steps were done without Slurm, each step is done once, and no job is left; the last lines say so. About three minutes.
set -euo pipefail
ostro="$(realpath "$1")"
source "$(dirname "$0")/slurm_daemons.sh"
driver=""
cleanup_more() {
  [[ -z "$driver" ]] || kill -KILL "$driver" 2>/dev/null || true
  scancel --quiet --user="$(id -un)" 2>/dev/null || true
}

cd "$top"
mkdir local placed
for lab in local placed; do
  mkdir $lab/texts $lab/held
  cp /usr/share/common-licenses/GPL-3 $lab/texts/gpl3.txt
  cp /usr/share/common-licenses/Apache-2.0 $lab/held/apache.txt
  cat > $lab/plan.yaml <<'YAML'
lab: small
question: Which rate is best?
steps:
  texts: {source: {files: [texts], licence: GPL-3.0-only}}
  held: {source: {files: ["held/*.txt"], licence: Apache-2.0}}
  words: {tokenizer: {from: $texts, vocab_size: 300}}
  rows: {tokens: {from: $texts, held_out: $held, tokenizer: $words}}
  base:
    sweep: {rate: [0.001, 0.01]}
    train: {data: $rows, config: tiny.yaml, set: {optimizer.learning_rate: $rate}}
  score: {eval: {of: $base}}
YAML
  cat > $lab/tiny.yaml <<'YAML'
model: {seq_len: 32, hidden_dim: 16, intermediate_dim: 32, num_layers: 1, num_heads: 2, num_kv_heads: 2}
trainer: {mp: f32, train_batch_size: 4, num_train_steps: 16, steps_per_eval: 8, checkpointer: {keep: [{every: 4}]}}
numerics: {leaf_examples: 2}
YAML
done
(cd local && OSTRO_THREADS=1 "$ostro" lab run plan.yaml > ../local.txt 2>&1)

tell() { echo; echo "== $1"; }
open_gate() { echo "$1" > gate.new; mv gate.new gate; }
jobs_run() { [[ $(squeue --noheader --states=R --partition=low --format=%i | wc -l) == "$1" ]]; }
saved() { [[ $(ls -d placed/small.lab/out/*/checkpoints/step-"$(printf %08d "$1")"/manifest.json 2>/dev/null | wc -l) == "$2" ]]; }
logs_say() { [[ $(grep -l "$1" placed/small.lab/logs/*.txt | wc -l) -ge "$2" ]]; }
drive() {
  (cd placed && OSTRO_FAULT="checkpoint:*:*:gate=$top/gate" AWS_SECRET_ACCESS_KEY=s3cr3t exec "$ostro" lab run plan.yaml --place slurm -j 2 \
    --sbatch "--partition=low --time=30" >> ../driver.txt 2>> ../err.txt) &
  driver=$!
}

tell "two trainings, of which each waits behind its first checkpoint"
open_gate 4
drive
wait_for 120 saved 4 2
wait_for 60 jobs_run 2
squeue --format='%i %j %T %N'
if grep -rl s3cr3t "$top/state" "$top"/spool.* placed | grep -v /environment; then echo "FAILED: a secret is kept there"; exit 1; fi

tell "preempted: a job of more priority takes two of the three nodes for 10 s"
sbatch --parsable --partition=high --nodes=2 --output=/dev/null --wrap 'sleep 10' > /dev/null
wait_for 120 logs_say PREEMPTED 1
wait_for 120 jobs_run 2
squeue --format='%i %j %T %N'

tell "node lost: its daemon and its processes are killed"
node="$(squeue --noheader --states=R --partition=low --format=%N | head -n 1)"
lost="$(processes_of "$node")"
kill -KILL "${daemon[$node]}" $(steps_daemons "$lost") $lost 2>/dev/null || true
wait "${daemon[$node]}" 2>/dev/null || true
wait_for 120 logs_say "NODE_FAIL\|FAILED" 1
wait_for 120 jobs_run 2
squeue --format='%i %j %T %N'
start_node "$node"

tell "the driver is killed, and started again: its jobs go on"
before="$(squeue --noheader --states=R --partition=low --format=%i | sort)"
kill -KILL $driver
wait $driver 2>/dev/null || true
drive
wait_for 60 logs_say "goes on with what an earlier" 2
[[ "$(squeue --noheader --states=R --partition=low --format=%i | sort)" == "$before" ]]

tell "stopped: SIGINT to the driver; the trainings save"
kill -INT $driver
sleep 3
open_gate 15
code=0; wait $driver || code=$?
echo "exit code $code; jobs in the queue: $(squeue --noheader | wc -l)"
[[ $code == 75 ]]

tell "cancelled: a person cancels a job; its step fails, and the next command does it"
drive
wait_for 120 jobs_run 2
scancel "$(squeue --noheader --states=R --partition=low --format=%i | tail -n 1)"
open_gate 1000
code=0; wait $driver || code=$?
echo "exit code $code"
[[ $code == 1 ]]

tell "to the end"
drive
code=0; wait $driver || code=$?
echo "exit code $code; jobs in the queue: $(squeue --noheader | wc -l)"
[[ $code == 0 ]]
echo; cat driver.txt; cat err.txt
fail() { echo "FAILED: $1"; exit 1; }
[[ $(grep -c '"kind":"done"' placed/small.lab/journal.jsonl) == 8 ]] || fail "some step is not done once"
echo "each step is done once"
[[ -z "$(ls placed/small.lab/jobs)" ]] || fail "the folder jobs has something left"
echo "nothing is left in the folder jobs"
[[ "$(tail -n 1 driver.txt)" == "$(tail -n 1 local.txt)" ]] || fail "another hash than that of a lab whose steps were done without Slurm"
echo "equal: the hash of a lab whose steps were done without Slurm"
