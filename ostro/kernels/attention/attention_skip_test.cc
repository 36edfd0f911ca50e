// Blocks of keys that the mask empties for a tile of query rows are never visited: NaN in their keys, values
// and queries does not show, where a visited block would add 0 * NaN.
#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "ostro/kernels/attention/attention.h"
#include "ostro/kernels/attention/attention_reference.h"
#include "ostro/numerics/threefry.h"

namespace ostro::kernels {
namespace {

// Three blocks of keys and six tiles of query rows, one head.
constexpr int64_t kTokens = 384, kDims = 8, kBlock = 128, kTile = 64;

struct SkipMasks {
  std::vector<int32_t> documents = std::vector<int32_t>(kTokens);  // of 50, 150 and 184 tokens
  int32_t prefix = 200, length = 140;
  std::vector<uint8_t> visible = std::vector<uint8_t>(kTokens * kTokens);

  SkipMasks() {
    for (int64_t j = 0; j < kTokens; ++j) documents[static_cast<size_t>(j)] = j < 50 ? 0 : j < 200 ? 1 : 2;
    // Tile t sees every other key of block t mod 3.
    for (int64_t i = 0; i < kTokens; ++i)
      for (int64_t j = 0; j < kTokens; ++j)
        visible[static_cast<size_t>(i * kTokens + j)] = i / kTile % 3 == j / kBlock && j % 2 == 1 ? 1 : 0;
  }

  std::vector<std::pair<std::string, AttentionMask>> all() const {
    const int32_t* ids = documents.data();
    return {{"causal", {.causal = true}},
            {"sliding window", {.causal = true, .window = 70}},
            {"window that sees ahead", {.window = 70}},
            {"prefix", {.causal = true, .prefix_length = &prefix}},
            {"key length", {.key_length = &length}},
            {"segments", {.query_segments = ids, .key_segments = ids}},
            {"causal segments", {.causal = true, .query_segments = ids, .key_segments = ids}},
            {"single keys", {.visible = visible.data()}}};
  }
};

// Rows of kDims elements.
struct Rows {
  machine::FloatType type = machine::FloatType::kF32;
  std::vector<uint8_t> bytes;

  Rows(machine::FloatType t, uint32_t seed)
      : type(t), bytes(static_cast<size_t>(kTokens * kDims * machine::float_size(t))) {
    const numerics::Key key = numerics::key_from_seed(seed);
    for (int64_t i = 0; i < kTokens * kDims; ++i)
      reference::set_element(
          bytes.data(), type, i,
          numerics::normal_from_bits(numerics::random_bits(key, static_cast<uint64_t>(i))));
  }
  size_t row_bytes() const { return static_cast<size_t>(kDims * machine::float_size(type)); }
  Rows with_nan(int64_t first, int64_t count) const {
    Rows r = *this;
    std::memset(r.bytes.data() + static_cast<size_t>(first) * row_bytes(), 0xff,
                static_cast<size_t>(count) * row_bytes());
    return r;
  }
  // Are rows [first, first + count) the same?
  bool same(const Rows& other, int64_t first, int64_t count) const {
    const size_t at = static_cast<size_t>(first) * row_bytes();
    return std::memcmp(bytes.data() + at, other.bytes.data() + at,
                       static_cast<size_t>(count) * row_bytes()) == 0;
  }
};

struct SkipInputs {
  Rows q, k, v, dout;
};
struct SkipForward {
  Rows out{machine::FloatType::kF32, 0};
  std::vector<float> m = std::vector<float>(kTokens), r = m;
};
struct SkipBackward {
  Rows dq{machine::FloatType::kF32, 0}, dk = dq, dv = dq;
};

AttentionShape skip_shape(machine::FloatType type, const AttentionMask& mask) {
  AttentionShape s;
  s.batch = s.kv_heads = s.group = 1;
  s.pos = s.key_pos = kTokens;
  s.head_dim = kDims;
  s.type = type;
  s.scale = 0.35f;
  s.mask = mask;
  return s;
}

SkipForward skip_forward(const AttentionShape& s, const SkipInputs& in, machine::Isa isa,
                         machine::ThreadPool& pool) {
  SkipForward f;
  AttentionForward a;
  a.shape = s;
  a.q = in.q.bytes.data(), a.k = in.k.bytes.data(), a.v = in.v.bytes.data();
  a.out = f.out.bytes.data(), a.m = f.m.data(), a.r = f.r.data();
  a.q_strides = a.out_strides = {0, kDims, 0, 0};
  a.k_strides = a.v_strides = {0, kDims, 0};
  attention_forward(a, isa, pool);
  return f;
}

SkipBackward skip_backward(const AttentionShape& s, const SkipInputs& in, const SkipForward& f,
                           machine::Isa isa, machine::ThreadPool& pool) {
  SkipBackward g;
  AttentionBackward a;
  a.shape = s;
  a.q = in.q.bytes.data(), a.k = in.k.bytes.data(), a.v = in.v.bytes.data();
  a.out = f.out.bytes.data(), a.dout = in.dout.bytes.data(), a.m = f.m.data(), a.r = f.r.data();
  a.dq = g.dq.bytes.data(), a.dk = g.dk.bytes.data(), a.dv = g.dv.bytes.data();
  a.q_strides = a.out_strides = a.dout_strides = a.dq_strides = {0, kDims, 0, 0};
  a.k_strides = a.v_strides = a.dk_strides = a.dv_strides = {0, kDims, 0};
  attention_backward(a, isa, pool);
  return g;
}

// Does any row of the tile attend to any key of the block?
bool meets(const AttentionShape& s, int64_t tile, int64_t block) {
  for (int64_t i = tile; i < tile + kTile; ++i)
    for (int64_t j = block; j < block + kBlock; ++j)
      if (reference::attends(s, 0, i, j)) return true;
  return false;
}

// Every pair of a tile and a block that do not meet, with NaN in one and then in the other.
void check_skipping(const AttentionShape& s, machine::Isa isa, machine::ThreadPool& pool) {
  const SkipInputs clean{Rows(s.type, 1), Rows(s.type, 2), Rows(s.type, 3), Rows(s.type, 4)};
  const SkipForward f = skip_forward(s, clean, isa, pool);
  const SkipBackward g = skip_backward(s, clean, f, isa, pool);
  int apart = 0;
  for (int64_t block = 0; block < kTokens; block += kBlock) {
    SkipInputs in = clean;
    in.k = clean.k.with_nan(block, kBlock), in.v = clean.v.with_nan(block, kBlock);
    const SkipForward pf = skip_forward(s, in, isa, pool);
    const SkipBackward pg = skip_backward(s, in, f, isa, pool);
    for (int64_t tile = 0; tile < kTokens; tile += kTile) {
      INFO("NaN in keys and values from ", block, ", query rows from ", tile);
      if (meets(s, tile, block)) {  // it shows where it may
        CHECK_FALSE(pf.out.same(f.out, tile, kTile));
        CHECK_FALSE(pg.dq.same(g.dq, tile, kTile));
        continue;
      }
      ++apart;
      CHECK(pf.out.same(f.out, tile, kTile));
      const auto at = static_cast<size_t>(tile);
      CHECK(std::memcmp(&pf.m[at], &f.m[at], kTile * sizeof(float)) == 0);
      CHECK(std::memcmp(&pf.r[at], &f.r[at], kTile * sizeof(float)) == 0);
      CHECK(pg.dq.same(g.dq, tile, kTile));
    }
  }
  for (int64_t tile = 0; tile < kTokens; tile += kTile) {
    SkipInputs in = clean;
    in.q = clean.q.with_nan(tile, kTile), in.dout = clean.dout.with_nan(tile, kTile);
    const SkipBackward pg = skip_backward(s, in, f, isa, pool);
    for (int64_t block = 0; block < kTokens; block += kBlock) {
      INFO("NaN in query rows from ", tile, ", keys from ", block);
      const bool same = !meets(s, tile, block);
      CHECK(pg.dk.same(g.dk, block, kBlock) == same);
      CHECK(pg.dv.same(g.dv, block, kBlock) == same);
    }
  }
  CHECK(apart > 0);
}

TEST_CASE("blocks that the mask empties are not visited") {
  const SkipMasks masks;
  // Few threads take all gradients in one pass, many take them apart.
  machine::ThreadPool one(1), two(2), five(5);
  machine::ThreadPool* pools[] = {&one, &two, &five};
  int turn = 0;
  for (const auto& [name, mask] : masks.all())
    for (machine::FloatType type : {machine::FloatType::kF32, machine::FloatType::kBf16})
      for (machine::Isa isa : machine::available_isas()) {
        machine::ThreadPool& pool = *pools[turn++ % 3];
        const std::string words =
            name + (type == machine::FloatType::kF32 ? ", f32, " : ", bf16, ") + machine::isa_name(isa);
        INFO(words, ", ", pool.threads(), " threads");
        check_skipping(skip_shape(type, mask), isa, pool);
      }
}

}  // namespace
}  // namespace ostro::kernels
