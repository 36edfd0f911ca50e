#!/usr/bin/env bash
# Installs what building and testing need, from the distribution's packages and PyPI. Does nothing, quickly,
# when everything is there.
#
#   scripts/setup.sh             compiler and libraries
#   scripts/setup.sh --dev       also clang, clang-format, clang-tidy and a browser for the test of a run's page
#   scripts/setup.sh --python    also .venv with the packages that interoperability tests compare with, and .venv-lm-eval
#   scripts/setup.sh --pyarrow   of these, only what the build uses, into .venv: pyarrow; nanobind and numpy for the Python module
#   scripts/setup.sh --cuda      also NVIDIA's compiler of device text and its headers into .venv: wheels of 46 MB, no GPU is needed
#   scripts/setup.sh --bench     also the peers of scripts/bench.sh: JAX's optimizers, datasets, and Levanter in .venv-levanter
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ "$(uname -s) $(uname -m)" != "Linux x86_64" ]]; then
  echo "error: this machine is $(uname -s) on $(uname -m); Ostro needs Linux on x86-64-v3, which has AVX2 and FMA" >&2
  exit 1
fi
if ! command -v dpkg-query >/dev/null; then
  echo "error: this is no Debian (no dpkg-query); install the wheel or the tar (README.md), or build in Debian 12" >&2
  exit 1
fi

packages=(g++ cmake ninja-build pkg-config git libzstd-dev zlib1g-dev liblz4-dev libblosc-dev libssl-dev
          libcurl4-openssl-dev libpugixml-dev libpcre2-dev libgloo-dev libmicrohttpd-dev libsqlite3-dev bubblewrap nlohmann-json3-dev libsimdjson-dev libcli11-dev libyaml-cpp-dev libfmt-dev doctest-dev python3 python3-dev python3-venv)
with_python=false
with_pyarrow=false
with_bench=false
with_cuda=false
for option in "$@"; do
  case "$option" in
    --dev) packages+=(clang-19 clang-format-19 clang-tidy-19 chromium openssl curl) ;;
    --python) with_python=true ;;
    --pyarrow) with_pyarrow=true ;;
    --cuda) with_cuda=true ;;
    --bench) with_python=true with_bench=true ;;
    *) echo "error: unknown option $option; known: --dev --python --pyarrow --cuda --bench" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  if [[ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" != installed ]]; then
    missing+=("$package")
  fi
done
if (( ${#missing[@]} > 0 )); then
  as_root=()
  if (( EUID != 0 )); then
    command -v sudo >/dev/null || { echo "error: run as root, or install: ${missing[*]}" >&2; exit 1; }
    as_root=(sudo)
  fi
  echo "installing: ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
fi

# Python compiles what it imports when it first does: all of it beforehand takes half a minute.
install=(.venv/bin/python -m pip install -q --disable-pip-version-check --no-compile)
if $with_pyarrow && ! .venv/bin/python -c "import pyarrow, nanobind, numpy" 2>/dev/null; then
  [[ -x .venv/bin/python ]] || python3 -m venv .venv
  mapfile -t wanted < <(grep -E '^(pyarrow|nanobind|numpy)==' python/requirements-test.txt)
  "${install[@]}" "${wanted[@]}"
fi
if $with_python; then
  # The stamp is written last, so an interrupted installation is taken up again.
  stamp=.venv/installed.sha256
  wanted="$(cat python/requirements-*.txt scripts/install_torch_cpu.sh | sha256sum)"
  if [[ ! -f $stamp || "$(cat $stamp)" != "$wanted" ]]; then
    echo "installing Python packages into .venv"
    [[ -x .venv/bin/python ]] || python3 -m venv .venv
    # Without dependencies: the files name all, and those of PyTorch, which several packages need, are 4 GB of CUDA.
    "${install[@]}" --no-deps -r python/requirements-test.txt -r python/requirements-ray.txt
    scripts/install_torch_cpu.sh .venv
    # lm-evaluation-harness, 200 MB that only its own test sees.
    rm -rf .venv-lm-eval
    "${install[@]}" --no-deps --target .venv-lm-eval -r python/requirements-lm-eval.txt
    echo "$wanted" > $stamp
  fi
fi

if $with_cuda; then
  [[ -x .venv/bin/python ]] || python3 -m venv .venv
  "${install[@]}" --no-deps nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96
fi

if $with_bench; then
  stamp=.venv/bench.sha256
  wanted="$(sha256sum < python/requirements-levanter.txt)"
  if [[ ! -f $stamp || "$(cat $stamp)" != "$wanted" ]]; then
    echo "installing the benchmarks' peers into .venv-levanter"
    [[ -x .venv-levanter/bin/python ]] || python3 -m venv .venv-levanter
    .venv-levanter/bin/python -m pip install -q --disable-pip-version-check -r python/requirements-levanter.txt
    echo "$wanted" > $stamp
  fi
fi
