#!/usr/bin/env bash
# Fetches the newest sdist of llama-cpp-python from PyPI and builds the llama.cpp in it with -march=native, and its kernels
# once more for AVX2 alone. What is built already stays.
#
#   bench/peers/llama_cpp.sh FOLDER [JOBS]
#
# Makes FOLDER/native/bin/llama-server, and FOLDER/avx2/bin with the libraries of the kernels: with that folder as
# LD_LIBRARY_PATH the same server has those. FOLDER/version says which sdist it is.
set -euo pipefail
folder="$(realpath -m "${1:?llama_cpp.sh FOLDER [JOBS]}")"
jobs="${2:-$(nproc)}"
mkdir -p "$folder"
cd "$folder"
if ! compgen -G "llama_cpp_python-*.tar.gz" > /dev/null; then
  python3 -m pip download --no-deps --no-binary llama-cpp-python llama-cpp-python
fi
if [[ ! -d source ]]; then
  sdist="$(compgen -G "llama_cpp_python-*.tar.gz" | tail -1)"
  rm -rf unpacked && mkdir unpacked
  tar xzf "$sdist" -C unpacked
  mv unpacked/*/vendor/llama.cpp source
  rm -rf unpacked
  echo "${sdist%.tar.gz}" > version
fi
common=(-G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF
        -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF)
if [[ ! -x native/bin/llama-server ]]; then
  cmake -S source -B native "${common[@]}" -DGGML_NATIVE=ON
  cmake --build native -j "$jobs" --target llama-server
fi
if ! compgen -G "avx2/bin/libggml-cpu*" > /dev/null; then
  cmake -S source -B avx2 "${common[@]}" -DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON -DGGML_BMI2=ON \
        -DGGML_AVX512=OFF
  cmake --build avx2 -j "$jobs" --target ggml-cpu
fi
echo "$(cat version): $folder/native/bin/llama-server"
