#!/usr/bin/env bash
# From nothing to a trained Llama and its hash: installs what is missing, builds, makes a tokenizer and a token
# store from text, trains configs/quickstart.yaml, shows what the model learned, and verifies its own run.
#
#   scripts/quickstart.sh                    text: the Python standard library and the C and C++ headers
#   scripts/quickstart.sh DIR                text: the files below DIR
#   scripts/quickstart.sh --steps 40         fewer steps than the config's
#   scripts/quickstart.sh --out FOLDER       results go there instead of ./quickstart
#
# The run hash is a function of the text and the number of steps: the same in every folder, on every machine.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"

fail() { echo "error: $*" >&2; exit 2; }
text="" steps="" out="quickstart"
while (( $# > 0 )); do
  case "$1" in
    --steps) steps="${2:?--steps needs a number}"; shift 2 ;;
    --out) out="${2:?--out needs a folder}"; shift 2 ;;
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) fail "unknown option $1 (see $0 --help)" ;;
    *) [[ -z $text ]] || fail "more than one folder of text: $text and $1"; text="$1"; shift ;;
  esac
done
[[ -z $text || -d $text ]] || fail "$text is not a folder"
[[ -z $steps || $steps =~ ^[0-9]+$ ]] || fail "--steps $steps: not a number"
[[ -z $text ]] || text="$(cd "$text" && pwd)"
mkdir -p "$out"
out="$(cd "$out" && pwd)"

say() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

say "set-up"
"$root/scripts/setup.sh"
say "build"
"$root/scripts/build.sh" ostro
ostro="$root/build/release/ostro/cli/ostro"

# What this script adds to the config: where things lie, and what was asked for.
config=(--config "$root/configs/quickstart.yaml" --data.tokenizer "$out/tokenizer.json"
        --data.cache_dir "$out/cache" --trainer.log_dir "$out/runs")
if [[ -n $text ]]; then
  config+=(--data.train_urls "[\"$text/**\"]")
  inputs=("$text/**")
else
  mapfile -t inputs < <(sed -n '/train_urls:/,/validation_urls:/s/^ *- *//p' "$root/configs/quickstart.yaml")
fi
if [[ -n $steps ]]; then config+=(--trainer.num_train_steps "$steps"); fi

say "tokenizer"
"$ostro" tokenizer train --input "${inputs[@]}" --vocab_size 4096 --out "$out/tokenizer.json"
say "token store"
"$ostro" data build "${config[@]}"
say "training"
"$ostro" train "${config[@]}" | tee "$out/train.out"
run="$out/runs/quickstart"

say "what it learned"
"$ostro" data baseline "${config[@]}" --json --held_out_text "$out/held_out.txt" > "$out/baseline.json"
python3 "$root/scripts/quickstart_summary.py" "$run/metrics.jsonl" "$out/baseline.json" \
        "$(xz -9 -c "$out/held_out.txt" | wc -c)"

say "a continuation"
mapfile -t checkpoints < <(find "$run/checkpoints" -maxdepth 1 -name 'step-*' | sort)
"$ostro" sample --checkpoint "${checkpoints[-1]}" --prompt "def main(" --max_new_tokens 64 \
         --temperature 0.7 --seed 0

# The first ten steps after the last checkpoint but one (after the beginning when there is only one).
say "verifying a stretch of its own run"
from=0
if (( ${#checkpoints[@]} > 1 )); then from=$((10#${checkpoints[-2]##*step-})); fi
last=$((10#${checkpoints[-1]##*step-}))
"$ostro" verify "$run" --from_step "$from" --to_step $(( from + 10 < last ? from + 10 : last ))
say "self-test"
"$ostro" selftest

say "done"
tail -n 1 "$out/train.out"
