#include "ostro/kernels/losses/embedding.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "ostro/numerics/fp_env.h"

namespace ostro::kernels {
namespace {

uint64_t next_draw(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

[[gnu::noinline]] void slow_scatter_add(const EmbeddingScatterAdd& a) {
  for (int64_t row = 0; row < a.vocab; ++row)
    for (int64_t i = 0; i < a.embed; ++i) {
      float sum = 0;
      for (int64_t t = 0; t < a.tokens; ++t)
        if (a.indices[t] - a.origin == row) sum = sum + a.update[t * a.update_stride + i];
      a.grad[row * a.grad_stride + i] = sum;
    }
}

}  // namespace

TEST_CASE("gather copies bits, and indices outside give zero") {
  for (machine::FloatType type : {machine::FloatType::kF32, machine::FloatType::kBf16})
    for (int threads : {1, 3}) {
      machine::ThreadPool pool(threads);
      const int64_t vocab = 13, embed = 37, tokens = 50, size = machine::float_size(type);
      std::vector<uint8_t> table(static_cast<size_t>(vocab * (embed + 3) * size));
      uint64_t s = 9;
      for (uint8_t& b : table) b = static_cast<uint8_t>(next_draw(s));  // NaN, denormals and -0 among them
      std::vector<int32_t> indices;
      for (int64_t t = 0; t < tokens; ++t) indices.push_back(static_cast<int32_t>(next_draw(s) % 20));
      std::vector<uint8_t> out(static_cast<size_t>(tokens * (embed + 1) * size), 0xaa);
      EmbeddingGather a;
      a.tokens = tokens, a.vocab = vocab, a.embed = embed;
      a.type = type;
      a.table = table.data(), a.table_stride = embed + 3;
      a.indices = indices.data(), a.origin = 4;
      a.out = out.data(), a.out_stride = embed + 1;
      embedding_gather(a, pool);
      for (int64_t t = 0; t < tokens; ++t)
        for (int64_t i = 0; i < embed * size; ++i) {
          const int64_t row = indices[static_cast<size_t>(t)] - 4;
          const uint8_t want =
              row >= 0 && row < vocab ? table[static_cast<size_t>(row * (embed + 3) * size + i)] : 0;
          CHECK(out[static_cast<size_t>(t * (embed + 1) * size + i)] == want);
        }
      CHECK(out[static_cast<size_t>(embed * size)] == 0xaa);
    }
}

TEST_CASE("scatter-add adds tokens in ascending order on any number of threads") {
  for (int threads : {1, 2, 3}) {
    machine::ThreadPool pool(threads);
    const int64_t vocab = 29, embed = 70, tokens = 400;
    uint64_t s = 3;
    std::vector<float> update(static_cast<size_t>(tokens * (embed + 2)));
    for (float& x : update) x = static_cast<float>(next_draw(s) % 2001) * 0.37f - 370.0f;
    std::vector<int32_t> indices;
    for (int64_t t = 0; t < tokens; ++t) indices.push_back(static_cast<int32_t>(next_draw(s) % 35));
    std::vector<float> got(static_cast<size_t>(vocab * embed), 7.0f), want(got);
    EmbeddingScatterAdd a;
    a.tokens = tokens, a.vocab = vocab, a.embed = embed;
    a.update = update.data(), a.update_stride = embed + 2;
    a.indices = indices.data(), a.origin = 3;
    a.grad = got.data(), a.grad_stride = embed;
    embedding_scatter_add(a, pool);
    a.grad = want.data();
    {
      numerics::HostArithmetic guard;
      slow_scatter_add(a);
    }
    CHECK(std::memcmp(got.data(), want.data(), got.size() * sizeof(float)) == 0);
  }
}

}  // namespace ostro::kernels
