#include <cstring>

#include "ostro/kernels/losses/kernels/embedding_kernels.h"

namespace ostro::kernels {

// Zeros first, then the updates in the order of the tokens: one chain of additions per element.
void embedding_scatter_columns(const EmbeddingScatterAdd& a, int64_t begin, int64_t end) {
  const int64_t width = end - begin;
  for (int64_t row = 0; row < a.vocab; ++row)
    std::memset(a.grad + row * a.grad_stride + begin, 0, static_cast<size_t>(width) * sizeof(float));
  for (int64_t t = 0; t < a.tokens; ++t) {
    const int64_t row = a.indices[t] - a.origin;
    if (row < 0 || row >= a.vocab) continue;
    float* __restrict grad = a.grad + row * a.grad_stride + begin;
    const float* __restrict update = a.update + t * a.update_stride + begin;
    for (int64_t i = 0; i < width; ++i) grad[i] = grad[i] + update[i];
  }
}

}  // namespace ostro::kernels
