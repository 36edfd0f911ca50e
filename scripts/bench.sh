#!/usr/bin/env bash
# Builds the benchmarks, runs them beside their peers turn by turn, and writes bench/RESULTS.md: training beside PyTorch
# (eager and compiled), JAX and Levanter, products and attention beside PyTorch, what our own choices cost, every family
# beside Llama and LoRA beside PEFT, several processes beside PyTorch's and Gloo's ring, token stores beside Hugging Face's
# datasets, encoding beside its tokenizers, and the goodput of a run whose machines are taken away.
# A section that is measured again takes the place of the old one, the others stay (--quick replaces only what was quick); what is kept is the .json beside the page.
# Exit 1 when a peer's losses are not ours or a peer did not run; goals that are missed are rows of the table.
#
#   scripts/bench.sh                          everything (an idle machine of 2 cores: about an hour and three quarters)
#   scripts/bench.sh --quick                  fewer turns
#   scripts/bench.sh --out FILE               another file
#   scripts/bench.sh --sizes nano small58     these training sizes only (micro nano small58 base125 drawn)
#   scripts/bench.sh --dtypes f32             only in these precisions (f32 bf16; int8 of the part training)
#   scripts/bench.sh --parts training prices  these parts only (training prices families ablation mixtures workers audits
#                                             kernels int8 growth pages decode choices generation serving data tokenizers lab
#                                             goodput; of prices, decode and serving one section as prices:optimizers)
#   scripts/bench.sh --seed N                 draws the same three sizes again
#   scripts/bench.sh --before OSTRO           with decode:base125: the program of the commit that bench/decode.py names
set -euo pipefail
called_from=$PWD
cd "$(dirname "$0")/.."
out=bench/RESULTS.md
words=()
while (( $# > 0 )); do
  case "$1" in
    --quick) words+=(--quick); shift ;;
    --out) out="${2:?--out needs a file}"; shift 2 ;;
    --before) words+=(--before "$(cd "$called_from" && realpath "${2:?--before needs a program}")"); shift 2 ;;
    --seed) words+=(--seed "${2:?--seed needs a number}"); shift 2 ;;
    --sizes|--dtypes|--parts) words+=("$1"); shift; while (( $# > 0 )) && [[ $1 != --* ]]; do words+=("$1"); shift; done ;;
    -h|--help) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "error: unknown option $1 (see $0 --help)" >&2; exit 2 ;;
  esac
done
scripts/setup.sh --python --bench
[[ ! -x .venv-levanter/bin/python ]] || words+=(--levanter "$PWD/.venv-levanter/bin/python")
scripts/build.sh benches ostro
# llama.cpp takes long to compile, so it is fetched only for those who ask for it.
for word in "${words[@]}"; do
  if [[ $word == serving* ]]; then bench/peers/llama_cpp.sh build/llama.cpp; fi
done
[[ ! -x build/llama.cpp/native/bin/llama-server ]] || words+=(--llama "$PWD/build/llama.cpp")
scripts/venv_python.sh bench/compare.py --benches build/release/bench --out "$out" "${words[@]}"
