#include "ostro/kernels/losses/embedding.h"

#include <cstring>

#include "ostro/kernels/losses/kernels/embedding_kernels.h"

namespace ostro::kernels {
namespace {

constexpr int64_t kColumnGrain = 16;  // one cache line: threads share none

}  // namespace

void embedding_gather(const EmbeddingGather& a, machine::ThreadPool& pool) {
  const int64_t size = machine::float_size(a.type);
  const auto* table = static_cast<const std::byte*>(a.table);
  auto* out = static_cast<std::byte*>(a.out);
  pool.parallel_for(a.tokens, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = a.indices[t] - a.origin;
      std::byte* target = out + t * a.out_stride * size;
      if (row >= 0 && row < a.vocab)
        std::memcpy(target, table + row * a.table_stride * size, static_cast<size_t>(a.embed * size));
      else
        std::memset(target, 0, static_cast<size_t>(a.embed * size));
    }
  });
}

void embedding_scatter_add(const EmbeddingScatterAdd& a, machine::ThreadPool& pool) {
  pool.parallel_for(
      a.embed, [&](int64_t begin, int64_t end) { embedding_scatter_columns(a, begin, end); }, kColumnGrain);
}

}  // namespace ostro::kernels
