#!/usr/bin/env bash
# scripts/install_torch_cpu.sh VENV: PyTorch for the CPU, from PyPI alone.
#
# PyPI's Linux wheel needs gigabytes of CUDA libraries only to be imported, although tests on the CPU never
# call them. Instead of these, empty libraries of the same names are put beside it. Functions that are never
# called need not exist as long as symbols are bound when first used, which the .pth file asks for.
set -euo pipefail
cd "$(dirname "$0")/.."
venv="$1"

"$venv/bin/python" -m pip install -q --disable-pip-version-check --no-compile --no-deps -r python/requirements-torch.txt
site="$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')"
for name in libcublas.so.13 libcublasLt.so.13 libcudnn.so.9 libcufft.so.12 libcufile.so.0 libcusolver.so.12 \
            libcusparse.so.12 libcusparseLt.so.0 libnccl.so.2 libnvrtc.so.13; do
  echo | cc -shared -fPIC -x c -Wl,-soname,"$name" -o "$site/torch/lib/$name" -
done
# The one symbol that is data, and so must exist.
map="$(mktemp)"
echo 'NVSHMEM { global: *; };' > "$map"
echo 'int nvshmem_selected_device_transport;' |
  cc -shared -fPIC -x c -Wl,-soname,libnvshmem_host.so.3 -Wl,--version-script="$map" \
     -o "$site/torch/lib/libnvshmem_host.so.3" -
rm -f "$map"
echo 'import sys, os; sys.setdlopenflags(os.RTLD_LAZY)' > "$site/ostro_lazy_binding.pth"
"$venv/bin/python" -c 'import torch; assert float(torch.ones(3, 3).matmul(torch.ones(3)).sum()) == 9'
