#!/usr/bin/env bash
# tests/e2e/my_model.sh BUILD_DIR: installs the package into a temporary prefix, builds examples/my_model out of
# tree against it, trains 20 steps and verifies them, also with another engine, threads and workers.
set -euo pipefail
root="$(cd "$(dirname "$0")/../.." && pwd)"
build="$(cd "$1" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/prefix" >/dev/null
# What bash completes is installed, too, and is that of the installed program.
cmp <("$work/prefix/bin/ostro" completion bash) "$work/prefix/share/bash-completion/completions/ostro"
cp -r "$root/examples/my_model" "$work/my_model"
cmake -S "$work/my_model" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
      -DCMAKE_PREFIX_PATH="$work/prefix" >/dev/null
cmake --build "$work/build"
program="$work/build/my_model"

cd "$work/my_model"
mkdir corpus
cp "$root"/docs/*/*.md "$root"/ostro/base/*.h corpus
"$program" tokenizer train --input corpus --vocab_size 320 --out tokenizer.json
"$program" train --config config.yaml
"$program" verify runs/my_model
OSTRO_EXECUTOR=interpreter "$program" verify runs/my_model --to_step 2
OSTRO_THREADS=1 OSTRO_SIM_WORKERS=3 OSTRO_ISA=generic "$program" verify runs/my_model --from_step 10 --to_step 13
# The program without this model cannot check the run, and accuses nobody of a forgery.
status=0
said="$("$work/prefix/bin/ostro" verify runs/my_model)" || status=$?
[[ $status == 4 && $said == "cannot check: "* && $said != *forged* ]] || { echo "error: exit $status: $said" >&2; exit 1; }
# A board replays it from its programs alone, and finds that this model sees both sides of a token.
"$program" publish runs/my_model --out entry --score --without_model >/dev/null
echo "seven and eight, and nine" >held.txt
"$work/prefix/bin/ostro" lab board track runs/my_model --name other --evaluation held.txt --flops 1e15 >track.yaml
status=0
said="$("$work/prefix/bin/ostro" lab board check entry --track track.yaml --cache cache --beacon 12 --cuts 20 --sums 1)" || status=$?
[[ $status == 1 && $said == "refused: looks ahead: "* && $said != *"bundle: "* ]] || { echo "error: exit $status: $said" >&2; exit 1; }
# What a model needs that generates is named.
said="$("$program" sample --checkpoint runs/my_model --prompt a --max_new_tokens 1 2>&1)" && { echo "error: a model without cache() generates" >&2; exit 1; }
[[ $said == *"needs cache(batch, length, dtype) and decode(tokens, cache, start)"* ]] || { echo "error: $said" >&2; exit 1; }
"$program" eval --checkpoint runs/my_model/checkpoints/step-00000020 --config config.yaml
