#!/usr/bin/env bash
# Checks a GPU with Ostro's own means: its bits, equal chains on CPU and GPU, faults, several workers, speed. It needs a GPU with its driver, and
# NVRTC; no network, nothing is built. It runs from the unpacked tar (share/ostro/scripts/gpu_check.sh) or from the sources.
#
#   scripts/gpu_check.sh                     the first GPU; rows go to ./gpu_check/rows.jsonl, under 8 minutes
#   scripts/gpu_check.sh --device cuda:1     another one
#   scripts/gpu_check.sh --program OSTRO     this program, with what its environment shows it: tests give it a fake driver
#   scripts/gpu_check.sh --out FOLDER        results go there
#   scripts/gpu_check.sh --fuzz FILE         runs random programs, too: FILE is tests/fuzz/fuzz_engines of a build
#   scripts/gpu_check.sh --one-chain FILE    trains a table of configurations, too: FILE is tests/matrix/one_chain.py of the sources
#   scripts/gpu_check.sh --quick             few cases and the smallest table, for tests of this script
#
# A row is a line of JSON: row, result ("equal", "differs", "done", "failed", "not run: REASON"), value, seconds, device, driver,
# cuda, nvrtc, commit. Exit code: 0 all that was run is equal; 1 something differs or failed; 77 nothing was run.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"

fail() { echo "error: $*" >&2; exit 2; }
device=cuda out=gpu_check program="" fuzz="" one_chain="" quick=false
while (( $# > 0 )); do
  case "$1" in
    --device) device="${2:?--device needs a name}"; shift 2 ;;
    --out) out="${2:?--out needs a folder}"; shift 2 ;;
    --program) program="${2:?--program needs a file}"; shift 2 ;;
    --fuzz) fuzz="$(realpath "${2:?--fuzz needs a file}")"; shift 2 ;;
    --one-chain) one_chain="$(realpath "${2:?--one-chain needs a file}")"; shift 2 ;;
    --quick) quick=true; shift ;;
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) fail "unknown word $1 (see $0 --help)" ;;
  esac
done
[[ $device =~ ^cuda(:[0-9]+)?$ ]] || fail "--device $device: name a GPU, cuda or cuda:N"
if [[ -z $program ]]; then
  for candidate in "$here/../../../bin/ostro" "$here/../build/release/ostro/cli/ostro"; do
    [[ -x $candidate ]] && program="$candidate" && break
  done
fi
[[ -n $program && -x $program ]] || fail "no program ostro beside this script; name it with --program"
program="$(cd "$(dirname "$program")" && pwd)/$(basename "$program")"
mkdir -p "$out"
out="$(cd "$out" && pwd)"
rows="$out/rows.jsonl"
: > "$rows"
work="$(mktemp -d "$out/work.XXXXXX")"  # the runs lie here
cd "$work"

# --- what there is
"$program" devices > devices.txt
cat devices.txt
[[ $device == cuda ]] && device=cuda:0
text() { sed 's/[\\"]/\\&/g' <<< "$1"; }
gpu="$(sed -n "s/^$device *\(.*\): .* of .* free, compute.*/\1/p" devices.txt)"
driver="$(sed -n 's/^driver  *\(.*, \)\{0,1\}CUDA .*/\1/p' devices.txt | sed 's/, $//')"
cuda="$(sed -n 's/^driver .*CUDA \([0-9.]*\),.*/\1/p' devices.txt)"
nvrtc="$(sed -n 's/^nvrtc  *\([0-9.]*\),.*/\1/p' devices.txt)"
commit="$("$program" --version | sed -n 's/^commit *//p')"
# Whether it can be used, and why not.
reason="$("$program" devices --check "$device" --cases 64 2>&1 >/dev/null | sed -n 's/^error: //p' | head -1)" || true
[[ -n $gpu ]] || reason="no device: $reason"

failed=0 ran=0
# row NAME RESULT [VALUE]
row() {
  local value="${3:-null}"
  printf '{"row": "%s", "result": "%s", "value": %s, "seconds": %d, "device": "%s", "driver": "%s", "cuda": "%s", "nvrtc": "%s", "commit": "%s"}\n' \
    "$(text "$1")" "$(text "$2")" "$value" "$SECONDS" "$(text "$gpu")" "$driver" "$cuda" "$nvrtc" "$commit" >> "$rows"
  printf '%4d s  %-44s %s\n' "$SECONDS" "$1" "$2"
  case "$2" in
    equal|done) ran=$((ran + 1)) ;;
    "not run"*) ;;
    *) ran=$((ran + 1)) failed=$((failed + 1)) ;;
  esac
}
# The first error line of a log, for a row.
error_of() { sed -n 's/^error: //p' "$1" | head -1 | tr -d '\000-\037' | cut -c1-300; }

# --- a text and configurations; the same bytes on every machine
if [[ -z $reason ]]; then
  mkdir -p corpus
  awk 'BEGIN { split("the a of to and in that is was he for it with as his on be at by had not are but from or have an they which one you were all her she there would their we him been has when who will no more if out so up said what its about than into them can only other time new some could these two may first then do any like my now over such our man me even most made after also did many off before must well back through years much where your way", w, " ");
    s = 12345; for (f = 0; f < 9; ++f) { name = sprintf("corpus/%02d.txt", f); line = "";
      for (i = 1; i <= 4000; ++i) { s = (s * 1103515245 + 12345) % 2147483648; line = line w[int(s / 65536) % 97 + 1] (i % 14 ? " " : ".\n") } print line > name } }'
  "$program" tokenizer train --input 'corpus/*.txt' --vocab_size 320 --out tokenizer.json > /dev/null 2> tokenizer.log
  cat > base.yaml <<'YAML'
data: {tokenizer: tokenizer.json, cache_dir: cache, train_urls: ["corpus/*.txt"], validation_fraction: 0.2}
model: {type: llama, seq_len: 64, hidden_dim: 64, intermediate_dim: 96, num_layers: 2, num_heads: 4, num_kv_heads: 2}
optimizer: {type: adam, learning_rate: 0.003}
trainer: {log_dir: runs, mp: f32, train_batch_size: 8, num_train_steps: 12, steps_per_eval: 6, max_eval_batches: 2,
          checkpointer: {keep: [{every: 6}]}}
numerics: {leaf_examples: 2, cells: {embed: 2}}
YAML
  if $quick; then
    sed -i 's/seq_len: 64/seq_len: 8/; s/hidden_dim: 64/hidden_dim: 16/; s/intermediate_dim: 96/intermediate_dim: 16/
            s/num_layers: 2/num_layers: 1/; s/batch_size: 8/batch_size: 2/; s/train_steps: 12/train_steps: 4/
            s/steps_per_eval: 6/steps_per_eval: 0/; s/max_eval_batches: 2/max_eval_batches: 1/; s/every: 6/every: 2/' base.yaml
  fi
fi
limit=()  # what keeps a run within a time
train() { # train NAME ON words...
  local name="$1" on="$2"; shift 2
  "${limit[@]}" "$program" train --config base.yaml --trainer.id "$name" --trainer.device "$on" "$@" > "$name.out" 2> "$name.log"
}
hash_of() { "$program" hash "runs/$1" 2> /dev/null || echo "no hash of $1"; }  # never equal to that of another

verified() { # verified ROW words...
  local name="$1"; shift
  if "$program" verify "$@" > verify.out 2>&1; then row "$name" equal
  else row "$name" "failed: $(head -1 verify.out)"; fi
}

# --- self-test, and the arithmetic case by case
check_bits() {
  if $quick; then row "self-test" "not run: --quick"
  elif "$program" selftest --device "$device" > selftest.out 2> selftest.log; then row "self-test" equal
  else row "self-test" "failed: $(error_of selftest.log)"; fi
  local cases=$((1 << 24))
  (( $(nproc) >= 12 )) && cases=$((1 << 26))
  $quick && cases=4096
  "$program" devices --check "$device" --cases "$cases" > bits.txt 2> bits.log || true
  cat bits.txt
  while read -r line; do
    [[ $line =~ ^(.*[^\ ])\ +([0-9]+)\ cases,\ ([0-9]+)\ differ ]] || continue
    local name="${BASH_REMATCH[1]}" cases_done="${BASH_REMATCH[2]}" differ="${BASH_REMATCH[3]}"
    if (( differ == 0 )); then row "bits: $name" equal "$cases_done"; else row "bits: $name" differs "$differ"; fi
  done < bits.txt
  [[ -s bits.txt ]] || row "bits" "failed: $(error_of bits.log)"
}

# --- one chain: NAME|words that make the configuration another, with semicolons between them
table=(
  "llama f32|"
  "llama bf16|--trainer.mp;bfloat16"
  "llama int8|--trainer.mp;int8"
  "llama bf16_tc16|--trainer.mp;bf16_tc16"
  "llama int8, attention too|--trainer.mp;c=int8,a=int8"
  "tied head|--model.tie_word_embeddings;true"
  "recompute values|--model.gradient_checkpointing;true"
  "recompute everything|--model.gradient_checkpointing;everything"
  "sequence of 37|--model.seq_len;37"
  "leaves of one|--numerics.leaf_examples;1"
  "leaves by axis|--numerics.leaves;{mlp: 2, kv_heads: 2, vocab: 2}"
  "sgd|--optimizer.type;sgd"
  "lion|--optimizer.type;lion"
  "muon|--optimizer.type;muon"
  "mistral|--model.type;mistral;--model.sliding_window;16"
  "qwen2|--model.type;qwen2"
  "qwen3|--model.type;qwen3"
  "gemma|--model.type;gemma"
  "gemma2|--model.type;gemma2;--model.sliding_window;16"
  "gemma3|--model.type;gemma3;--model.sliding_window;16"
  "olmo2|--model.type;olmo2"
  "phi3|--model.type;phi3"
  "granite|--model.type;granite"
  "helium|--model.type;helium"
  "mixtral|--model.type;mixtral"
  "qwen3_moe|--model.type;qwen3_moe"
  "LoRA|--adapter.type;lora"
)
$quick && table=("llama f32|" "llama bf16|--trainer.mp;bfloat16")
check_chains() {
  local number=0
  for entry in "${table[@]}"; do
    local name="${entry%%|*}" id="c$number"
    local -a words
    IFS=';' read -r -a words <<< "${entry#*|}"
    number=$((number + 1))
    if ! train "$id-cpu" cpu "${words[@]}"; then row "chain: $name" "not run: the CPU refuses it: $(error_of "$id-cpu.log")"; continue; fi
    if ! train "$id-gpu" "$device" "${words[@]}"; then row "chain: $name" "failed: $(error_of "$id-gpu.log")"; continue; fi
    if [[ "$(hash_of "$id-cpu")" == "$(hash_of "$id-gpu")" ]]; then row "chain: $name" equal
    else row "chain: $name" differs; fi
  done
  verified "a run of the GPU, verified on the CPU" runs/c0-gpu
  verified "a run of the CPU, verified on the GPU" runs/c0-cpu --device "$device"
}

# --- the other commands: what they print and write on the GPU is what they do on the CPU
same() { # same ROW FILE-OF-THE-CPU FILE-OF-THE-GPU
  if [[ ! -s $2 || ! -s $3 ]]; then row "$1" "failed: $(error_of command.log)"
  elif cmp -s "$2" "$3"; then row "$1" equal
  else row "$1" differs; fi
}
check_commands() {
  local on tokens=24
  $quick && tokens=4
  for on in cpu "$device"; do
    local to="${on%%:*}"
    { "$program" sample --checkpoint runs/c0-cpu --prompt "the " --max_new_tokens $tokens --temperature 1 --seed 7 --json --device "$on" > "sample-$to"
      "$program" eval --checkpoint runs/c0-cpu --config base.yaml --json --device "$on" > "eval-$to"
      printf '{"context": "the ", "continuation": "of a"}\n{"prompt": "in ", "max_tokens": %s, "temperature": 1, "seed": 3}\n' $tokens |
        "$program" score --checkpoint runs/c0-cpu --device "$on" > "score-$to"
      "$program" grad --checkpoint runs/c0-cpu --config base.yaml --step 3 --out "grad-$to" --device "$on" > grad.out; } 2>> command.log || true
  done
  for on in sample eval score grad; do same "ostro $on" "$on-cpu" "$on-cuda"; done
}

# --- servers: the same answers as on the CPU, log-probabilities of training there, receipts that the CPU finds true, and tokens a
# second beside vLLM where it is at hand; with more than one page of keys, a window, and attention on integers
servers=("|--model.seq_len;400" ", with a window, on integers|--model.type;mistral;--model.sliding_window;150;--trainer.mp;c=int8,a=int8;--model.seq_len;400")
$quick && servers=("|--model.seq_len;160")
check_serving() {
  local number=0 name result value
  local -a quickly=()
  $quick && quickly=(--requests 4 --tokens 4)
  if ! command -v python3 > /dev/null; then row "a server on the GPU" "not run: there is no python3"; return; fi
  for entry in "${servers[@]}"; do
    local id="s$number" status=0
    local -a words
    IFS=';' read -r -a words <<< "${entry#*|}"
    number=$((number + 1))
    local -a beside=()
    (( number == 1 )) && beside=(--beside_vllm)
    if ! train "$id" cpu --trainer.num_train_steps 1 "${words[@]}"; then row "a server${entry%%|*}" "not run: the CPU refuses it: $(error_of "$id.log")"; continue; fi
    if ! "$program" eval --config base.yaml --checkpoint "runs/$id" "${words[@]}" --trainer.max_eval_batches 1 --per_token "$id.tokens" > eval.out 2> "$id.log"; then
      row "a server${entry%%|*}" "failed: the losses of the run: $(error_of "$id.log")"
      continue
    fi
    timeout 300 python3 "$here/gpu_check_serving.py" --ostro "$program" --checkpoint "runs/$id" --per_token "$id.tokens" --device "$device" "${beside[@]}" "${quickly[@]}" \
      > serving.out 2> serving.log || status=$?
    while IFS=$'\t' read -r name result value; do row "$name${entry%%|*}" "$result" "${value:-null}"; done < serving.out
    (( status <= 1 )) || row "a server${entry%%|*}" "failed: exit status $status: $(tail -1 serving.log | cut -c1-200)"
  done
}

# --- killed in the middle, resumed on the other side
check_faults() {
  local wanted
  wanted="$(hash_of c0-cpu)"
  for way in "$device cpu" "cpu $device" "$device $device"; do
    local first="${way% *}" second="${way#* }" id="k-${way// /-}" status=0
    OSTRO_FAILPOINT="step:$($quick && echo 3 || echo 9)" train "$id" "$first" > /dev/null 2>&1 || status=$?
    if (( status != 137 )); then  # of SIGKILL
      row "killed on $first" "failed: it was not killed: $(error_of "$id.log")"
      continue
    fi
    if train "$id" "$second" && [[ "$(hash_of "$id")" == "$wanted" ]]; then row "killed on $first, resumed on $second" equal
    else row "killed on $first, resumed on $second" "failed: $(error_of "$id.log")"; fi
  done
  local id=k-saving status=0
  OSTRO_FAILPOINT=manifest train "$id" "$device" > /dev/null 2>&1 || status=$?
  if (( status != 137 )); then row "killed in a checkpoint" "failed: it was not killed: $(error_of "$id.log")"
  elif train "$id" cpu && [[ "$(hash_of "$id")" == "$wanted" ]]; then row "killed in a checkpoint, resumed on cpu" equal
  else row "killed in a checkpoint, resumed on cpu" "failed: $(error_of "$id.log")"; fi
  if train none cuda:999; then row "a GPU that is not there" "failed: it was accepted"
  elif grep -q '^error: there is no cuda:999' none.log; then row "a GPU that is not there" done
  else row "a GPU that is not there" "failed: $(error_of none.log)"; fi
  local free
  free="$("$program" devices --json | tr -d ' \n' | grep -o "\"device\":\"$device\"[^}]*\"free_bytes\":[0-9]*" | grep -o '[0-9]*$' || true)"
  if train large "$device" --model.hidden_dim 65536 --model.intermediate_dim 262144 --model.num_layers 80 --model.num_heads 64; then
    row "a model larger than the GPU" "failed: it was accepted"
  elif grep -q '^error: .*does not fit' large.log; then row "a model larger than the GPU" done "${free:-null}"
  else row "a model larger than the GPU" "failed: $(error_of large.log)"; fi
}

# --- several workers: ROW|the device of each|words
fleets=(
  "two workers on one GPU|GPU,GPU|"
  "two workers on one GPU, an exchange in every layer|GPU,GPU|--trainer.mesh.exchange;layer"
  "two workers on one GPU, tensors split|GPU,GPU|--trainer.mesh.axes;{data: -1, model: 2};--trainer.tensor_parallel_axes;[kv_heads, mlp, vocab];--numerics.leaves;{mlp: 2, kv_heads: 2, vocab: 2}"
  "a GPU worker beside CPU workers|GPU,cpu,cpu|"
  "a GPU worker beside a CPU worker, experts split|GPU,cpu|--model.type;mixtral;--trainer.mesh.axes;{data: -1, expert: 2};--trainer.axis_resources;{experts: expert}"
)
$quick && fleets=("${fleets[0]}" "${fleets[3]}")
several=false
[[ "$(grep -c '^cuda:' devices.txt)" -gt 1 ]] && several=true && fleets+=("several GPUs|cuda:0,cuda:1|")
check_fleets() {
  local number=0
  for entry in "${fleets[@]}"; do
    local name devices id="w$number" status=0
    local -a words names
    IFS='|' read -r name devices _ <<< "$entry"
    IFS=';' read -r -a words <<< "${entry##*|}"
    devices="${devices//GPU/$device}"
    IFS=',' read -r -a names <<< "$devices"
    number=$((number + 1))
    local wanted=c0-cpu
    if (( ${#words[@]} > 0 )); then
      wanted="$id-cpu"
      if ! train "$wanted" cpu "${words[@]}"; then row "$name" "not run: the CPU refuses it: $(error_of "$wanted.log")"; continue; fi
    fi
    "$program" launch local --workers "${#names[@]}" --devices "$devices" --config base.yaml --trainer.id "$id" "${words[@]}" \
      > "$id.out" 2> "$id.log" || status=$?
    if (( status != 0 )); then row "$name" "failed: $(error_of "$id.log")"
    elif [[ "$(hash_of "$id")" == "$(hash_of "$wanted")" ]]; then row "$name" equal
    else row "$name" differs; fi
  done
}

# --- published on the GPU, checked on the CPU: all of the record and the weights, drawn steps, one leaf
check_bundle() {
  local name="a run of the GPU, published"
  if ! train published "$device" --chain.leaf_gradients true; then
    row "$name" "failed: $(error_of published.log)"
    return
  fi
  if ! "$program" publish runs/published --out bundle --checkpoints 1 > publish.out 2>&1; then
    row "$name" "failed: $(error_of publish.out)"
    return
  fi
  row "$name" done
  verified "its bundle, verified on the CPU" bundle
  verified "two drawn steps of it, replayed on the CPU" bundle --sample 2 --challenge 3141592 --cache cache
  verified "a leaf of it, replayed on the CPU" bundle --leaf "$($quick && echo 2 || echo 7):0" --cache cache
}

# --- tokens a second, by the run's own metrics: the median of the last half of the steps
check_speed() {
  local -a sizes=("58 M|512 1408 8 8 2048 8" "374 M|1024 2816 24 16 2048 4")
  local vocab=32000  # that of the models that were measured with other programs
  $quick && sizes=("small|16 16 1 2 8 2") && vocab=null
  for entry in "${sizes[@]}"; do
    local name="${entry%%|*}" hidden inner layers heads length batch
    read -r hidden inner layers heads length batch <<< "${entry#*|}"
    for type in f32 bfloat16 int8; do
      local id="speed-${hidden}-$type" status=0
      if (( SECONDS > 420 )); then row "tokens/s, $name $type" "not run: 7 minutes are over"; continue; fi
      limit=(timeout $((475 - SECONDS)))
      train "$id" "$device" --trainer.mp "$type" --model.hidden_dim "$hidden" --model.intermediate_dim "$inner" \
          --model.num_layers "$layers" --model.num_heads "$heads" --model.num_kv_heads "$heads" --model.seq_len "$length" \
          --model.vocab_size "$vocab" --trainer.train_batch_size "$batch" --numerics.leaf_examples 1 --numerics.cells '{}' --trainer.num_train_steps 8 \
          --trainer.steps_per_eval 0 || status=$?
      limit=()
      if (( status == 124 )); then row "tokens/s, $name $type" "not run: 8 minutes are over"
      elif (( status == 0 )); then
        local speed
        speed="$(grep -o '"throughput/tokens_per_second": *[0-9.e+]*' "runs/$id/metrics.jsonl" | grep -o '[0-9.e+]*$' | tail -4 | sort -g | sed -n 2p || true)"
        row "tokens/s, $name $type" done "${speed:-null}"
      else row "tokens/s, $name $type" "failed: $(error_of "$id.log")"; fi
    done
  done
}

if [[ -n $reason ]]; then
  for name in "self-test" "bits" "one chain on CPU and GPU" "verified on the other side" "other commands" "a server on the GPU" "killed and resumed" "faults" "several workers" "bundle" "speed"; do
    row "$name" "not run: $reason"
  done
else
  check_bits
  check_chains
  check_commands
  check_serving
  check_faults
  check_fleets
  check_bundle
  check_speed
fi
if [[ -z $fuzz ]]; then row "fuzz on the device" "not run: it needs --fuzz, the program fuzz_engines of a build"
elif [[ -n $reason ]]; then row "fuzz on the device" "not run: $reason"
else
  count=300 complete=(--complete)
  $quick && count=5 complete=()
  if "$fuzz" --count "$count" "${complete[@]}" --engine "$device" --jobs "$(nproc)" > fuzz.out 2>&1; then row "fuzz on the device" equal "$count"
  else row "fuzz on the device" "differs: $(tail -1 fuzz.out)"; fi
fi
if [[ -z $one_chain ]]; then row "the table of configurations" "not run: it needs --one-chain, tests/matrix/one_chain.py of the sources"
elif [[ -n $reason ]]; then row "the table of configurations" "not run: $reason"
else
  part=()
  $quick && part=(--rows 0:1)
  if OSTRO_TEST_SIZE=full python3 "$one_chain" --ostro "$program" --device "$device" --jobs 2 "${part[@]}" > one_chain.out 2>&1
  then row "the table of configurations" equal "$(sed -n 's/^result: \([0-9]*\) .*/\1/p' one_chain.out)"
  else row "the table of configurations" "differs: $(grep -m1 '^FAILED' one_chain.out || tail -1 one_chain.out)"; fi
fi
$several || row "several GPUs" "not run: there is one"
echo "rows: $rows; $ran run, $failed of them differ or failed"
(( ran > 0 )) || exit 77
(( failed == 0 ))
