#include "ostro/kernels/attention/attention.h"
#include "ostro/products/choose_isa.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "ostro/base/test_size.h"
#include "ostro/kernels/attention/attention_reference.h"
#include "ostro/numerics/fp_env.h"

namespace ostro::kernels {
namespace {

struct Random {
  uint64_t state;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  int64_t range(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(next() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return range(1, 100) <= percent; }
  float uniform() { return static_cast<float>(next() >> 40) * 0x1p-23f - 1.0f; }
  // Mostly plain numbers, some zeros of both signs and some near the underflow threshold.
  float value(bool hostile) {
    const float x = 2 * uniform();
    if (!hostile) return x;
    switch (next() % 8) {
      case 0: return x < 0 ? -0.0f : 0.0f;
      case 1: return x * 0x1p-64f;
      case 2: return x * 0x1p-125f;
      default: return x;
    }
  }
};

// Bytes of an array with room between its rows; reads outside its elements find NaN.
struct Store {
  machine::FloatType type = machine::FloatType::kF32;
  std::vector<uint8_t> bytes;
  void* data() { return bytes.data(); }
};

Store make_store(machine::FloatType type, int64_t elements) {
  Store s{type, std::vector<uint8_t>(static_cast<size_t>(elements * machine::float_size(type)), 0xff)};
  return s;
}

// Row-major strides of `sizes` in a random order of axes with random gaps; returns the number of elements.
int64_t random_layout(Random& random, std::vector<std::pair<int64_t, int64_t*>> axes, int64_t head_dim) {
  for (size_t i = axes.size(); i > 1; --i)
    std::swap(axes[i - 1], axes[static_cast<size_t>(random.range(0, static_cast<int64_t>(i) - 1))]);
  int64_t stride = head_dim + random.range(0, 3);
  for (size_t i = axes.size(); i-- > 0;) {
    *axes[i].second = stride;
    stride = stride * axes[i].first + random.range(0, 5);
  }
  return stride + head_dim;
}

struct Case {
  AttentionForward f;
  AttentionBackward b;
  std::vector<float> sink, m, r, dsink;
  std::vector<int64_t> origin, leaf_ends;
  std::vector<int32_t> prefix, length, query_segments, key_segments;
  std::vector<uint8_t> visible;
  Store q, k, v, out, dout, dq, dk, dv;
  std::string words;

  explicit Case(uint64_t seed, bool edges = false);
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  void fill(Random& random, Store& store, const QueryStrides& st, bool hostile) {
    const AttentionShape& s = f.shape;
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t i = 0; i < s.pos; ++i)
        for (int64_t h = 0; h < s.kv_heads; ++h)
          for (int64_t g = 0; g < s.group; ++g)
            for (int64_t d = 0; d < s.head_dim; ++d)
              reference::set_element(store.data(), store.type, reference::at(st, b, i, h, g) + d,
                                     random.value(hostile));
  }
  void fill(Random& random, Store& store, const KeyStrides& st, bool hostile) {
    const AttentionShape& s = f.shape;
    for (int64_t b = 0; b < s.batch; ++b)
      for (int64_t j = 0; j < s.key_pos; ++j)
        for (int64_t h = 0; h < s.kv_heads; ++h)
          for (int64_t d = 0; d < s.head_dim; ++d)
            reference::set_element(store.data(), store.type, reference::at(st, b, j, h) + d,
                                   random.value(hostile));
  }
};

// edges: lengths around the kernels' tiles of 16, 32, 64 and 128 and every head_dim up to 256.
Case::Case(uint64_t seed, bool edges) {
  Random random{seed};
  AttentionShape& s = f.shape;
  s.type = random.chance(50) ? machine::FloatType::kF32 : machine::FloatType::kBf16;
  f.out_type = random.chance(50) ? machine::FloatType::kF32 : machine::FloatType::kBf16;
  s.batch = random.range(1, 2);
  s.kv_heads = random.range(1, 2);
  s.group = random.range(1, 3);
  s.head_dim = random.chance(50) ? 8 * random.range(1, 9) : random.range(1, 70);
  s.key_pos = random.range(1, 300);
  s.pos = random.chance(60) ? s.key_pos : random.range(1, 200);
  if (edges) {
    const auto near = [&](std::initializer_list<int64_t> sizes) {
      return std::max<int64_t>(1, sizes.begin()[random.next() % sizes.size()] + random.range(-1, 1));
    };
    s.type = random.chance(85) ? machine::FloatType::kBf16 : machine::FloatType::kF32;
    s.batch = 1;
    s.head_dim = near({1, 16, 32, 48, 64, 80, 96, 128, 160, 192, 256});
    s.key_pos = near({1, 16, 32, 64, 96, 128, 160, 256});
    s.pos = random.chance(50) ? s.key_pos : near({1, 16, 32, 64, 128});
    if (s.head_dim > 100) s.key_pos = std::min<int64_t>(s.key_pos, 140);
  }
  const bool cached = s.pos != s.key_pos || random.chance(10);
  s.scale = random.chance(50) ? 1.0f / std::sqrt(static_cast<float>(s.head_dim)) : 0.37f;
  if (random.chance(20)) s.soft_cap = 1.5f;
  if (random.chance(30)) {
    for (int64_t i = 0; i < s.kv_heads * s.group; ++i) sink.push_back(random.uniform() * 3);
    s.sink = sink.data();
  }
  if (cached) {
    for (int64_t b = 0; b < s.batch; ++b) origin.push_back(random.range(0, s.key_pos));
    s.query_origin = origin.data();
  }
  s.mask.causal = random.chance(75);
  if (random.chance(35)) s.mask.window = random.range(1, 200);
  if (random.chance(25)) {
    for (int64_t b = 0; b < s.batch; ++b) prefix.push_back(static_cast<int32_t>(random.range(0, s.key_pos)));
    s.mask.prefix_length = prefix.data();
  }
  if (random.chance(25)) {
    for (int64_t b = 0; b < s.batch; ++b) length.push_back(static_cast<int32_t>(random.range(0, s.key_pos)));
    s.mask.key_length = length.data();
  }
  if (random.chance(40)) {
    // Ascending documents as in packed rows, or any pattern.
    s.mask.query_segment_stride = s.pos + random.range(0, 3);
    s.mask.key_segment_stride = s.key_pos + random.range(0, 3);
    const bool packed = random.chance(70);
    const int64_t longest = random.range(2, 150);
    key_segments.resize(static_cast<size_t>(s.batch * s.mask.key_segment_stride));
    query_segments.resize(static_cast<size_t>(s.batch * s.mask.query_segment_stride));
    for (int64_t b = 0; b < s.batch; ++b) {
      int32_t id = 0;
      for (int64_t j = 0; j < s.key_pos; ++j) {
        if (packed ? random.range(1, longest) == 1 : true)
          id = packed ? id + 1 : static_cast<int32_t>(random.range(0, 3));
        key_segments[static_cast<size_t>(b * s.mask.key_segment_stride + j)] = id;
      }
      for (int64_t i = 0; i < s.pos; ++i) {
        const int64_t p = std::min(s.key_pos - 1, (cached ? origin[static_cast<size_t>(b)] : 0) + i);
        query_segments[static_cast<size_t>(b * s.mask.query_segment_stride + i)] =
            key_segments[static_cast<size_t>(b * s.mask.key_segment_stride + p)];
      }
    }
    s.mask.query_segments = query_segments.data();
    s.mask.key_segments = key_segments.data();
  }
  if (random.chance(20)) {
    const int64_t shown = random.chance(50) ? 90 : random.range(1, 60);  // per cent
    for (int64_t i = 0; i < s.batch * s.pos * s.key_pos; ++i)
      visible.push_back(random.range(1, 100) <= shown ? 1 : 0);
    s.mask.visible = visible.data();
  }
  const auto query_layout = [&](QueryStrides& st) {
    return random_layout(
        random, {{s.batch, &st.batch}, {s.pos, &st.pos}, {s.kv_heads, &st.kv_head}, {s.group, &st.group}},
        s.head_dim);
  };
  const auto key_layout = [&](KeyStrides& st) {
    return random_layout(random, {{s.batch, &st.batch}, {s.key_pos, &st.pos}, {s.kv_heads, &st.kv_head}},
                         s.head_dim);
  };
  b.grad_type = random.chance(80) ? machine::FloatType::kF32 : machine::FloatType::kBf16;
  q = make_store(s.type, query_layout(f.q_strides));
  k = make_store(s.type, key_layout(f.k_strides));
  v = make_store(s.type, key_layout(f.v_strides));
  out = make_store(f.out_type, query_layout(f.out_strides));
  dout = make_store(s.type, query_layout(b.dout_strides));
  dq = make_store(b.grad_type, query_layout(b.dq_strides));
  dk = make_store(b.grad_type, key_layout(b.dk_strides));
  dv = make_store(b.grad_type, key_layout(b.dv_strides));
  const bool hostile = random.chance(40);
  fill(random, q, f.q_strides, hostile);
  fill(random, k, f.k_strides, hostile);
  fill(random, v, f.v_strides, hostile);
  fill(random, dout, b.dout_strides, hostile);
  const auto rows = static_cast<size_t>(s.batch * s.pos * s.kv_heads * s.group);
  m.assign(rows, NAN);
  r.assign(rows, NAN);
  dsink.assign(static_cast<size_t>(s.kv_heads * s.group), NAN);
  if (random.chance(40)) {
    const int64_t leaves = random.range(1, 6), size = random.range(1, 2) == 1 ? 128 : 32;
    for (int64_t i = 1; i <= leaves; ++i)
      leaf_ends.push_back(i == leaves ? s.pos : std::min(s.pos, i * size));
  }
  f.q = q.data(), f.k = k.data(), f.v = v.data(), f.out = out.data();
  f.m = m.data(), f.r = r.data();
  b.shape = s;
  b.q = q.data(), b.k = k.data(), b.v = v.data(), b.out = out.data(), b.dout = dout.data();
  b.out_type = f.out_type;
  b.m = m.data(), b.r = r.data();
  b.dq = dq.data(), b.dk = dk.data(), b.dv = dv.data(), b.dsink = dsink.data();
  b.q_strides = f.q_strides, b.k_strides = f.k_strides, b.v_strides = f.v_strides,
  b.out_strides = f.out_strides;
  b.query_leaf_ends = leaf_ends;
  words = fmt::format(
      "seed {} {} batch {} pos {} key_pos {} kv_heads {} group {} head_dim {} causal {} window {} prefix {} "
      "length {} "
      "segments {} visible {} sink {} cap {} leaves {}",
      seed, s.type == machine::FloatType::kF32 ? "f32" : "bf16", s.batch, s.pos, s.key_pos, s.kv_heads,
      s.group, s.head_dim, s.mask.causal, s.mask.window, prefix.size(), length.size(), key_segments.size(),
      visible.size(), sink.size(), s.soft_cap, leaf_ends.size());
}

struct Outcome {
  std::vector<uint8_t> out, m, r, dq, dk, dv, dsink;
};

std::vector<uint8_t> bytes_of(const std::vector<float>& x) {
  std::vector<uint8_t> b(x.size() * sizeof(float));
  std::memcpy(b.data(), x.data(), b.size());
  return b;
}

Outcome outcome_of(const Case& c) {
  return {c.out.bytes, bytes_of(c.m), bytes_of(c.r), c.dq.bytes, c.dk.bytes, c.dv.bytes, bytes_of(c.dsink)};
}

[[gnu::noinline]] void run_reference(Case& c) {
  reference::forward(c.f);
  reference::backward(c.b);
}

void run_fast(Case& c, machine::Isa isa, machine::ThreadPool& pool) {
  attention_forward(c.f, isa, pool);
  attention_backward(c.b, isa, pool);
}

bool all_finite(const Case& c) {
  const AttentionShape& s = c.f.shape;
  for (float x : c.m)
    if (!std::isfinite(x)) return false;
  for (int64_t d = 0; d < s.head_dim; ++d) {
    if (!std::isfinite(reference::element(c.b.out, c.b.out_type, d))) return false;
    if (!std::isfinite(reference::element(c.b.dk, c.b.grad_type, d))) return false;
  }
  return true;
}

void compare(uint64_t first, int cases, bool edges = false) {
  machine::ThreadPool one(1), two(2), three(3);
  machine::ThreadPool* pools[] = {&one, &two, &three};
  int64_t isa_index = 0;
  for (uint64_t seed = first; seed < first + static_cast<uint64_t>(cases); ++seed) {
    Case expected(seed, edges);
    {
      numerics::HostArithmetic guard;
      run_reference(expected);
    }
    const Outcome want = outcome_of(expected);
    CHECK_MESSAGE(all_finite(expected), expected.words);
    for (machine::Isa isa : machine::available_isas()) {
      Case c(seed, edges);
      run_fast(c, isa, *pools[isa_index++ % 3]);
      const Outcome got = outcome_of(c);
      const std::string what = fmt::format("{} on {}", c.words, machine::isa_name(isa));
      REQUIRE_MESSAGE(got.out == want.out, "out: " << what);
      REQUIRE_MESSAGE(got.m == want.m, "m: " << what);
      REQUIRE_MESSAGE(got.r == want.r, "r: " << what);
      REQUIRE_MESSAGE(got.dq == want.dq, "dq: " << what);
      REQUIRE_MESSAGE(got.dk == want.dk, "dk: " << what);
      REQUIRE_MESSAGE(got.dv == want.dv, "dv: " << what);
      if (c.f.shape.sink != nullptr) REQUIRE_MESSAGE(got.dsink == want.dsink, "dsink: " << what);
    }
  }
}

}  // namespace

TEST_CASE("attention equals the reference on every instruction set, mask, layout and thread count") {
  compare(1, 60);
}

TEST_CASE("attention equals the reference where lengths and head_dim meet the edges of tiles") {
  compare(5000, 40, true);
}

TEST_CASE("slow: attention equals the reference in many more cases") {
  const uint64_t drawn = sized<uint64_t>(test_seed() % 9000, 0, 0);
  MESSAGE("seeds from ", 1000 + drawn, " and ", 6000 + drawn, " on");
  compare(1000 + drawn, sized(60, 300, 15000));
  compare(6000 + drawn, sized(40, 200, 10000), true);
}

TEST_CASE("a query row gives the same bits alone, with a cache and inside a batch") {
  // Row 150 of a causal prefill of 200 against the same row as one cached decode step.
  for (machine::FloatType type : {machine::FloatType::kF32, machine::FloatType::kBf16}) {
    Random random{7};
    const int64_t keys = 200, dims = 64, row = 150;
    Store q = make_store(type, keys * dims), k = make_store(type, keys * dims),
          v = make_store(type, keys * dims);
    for (Store* s : {&q, &k, &v})
      for (int64_t i = 0; i < keys * dims; ++i)
        reference::set_element(s->data(), type, i, random.value(false));
    std::vector<float> all(static_cast<size_t>(keys * dims)), one(static_cast<size_t>(dims)), m(keys),
        r(keys);
    AttentionForward f;
    f.shape.batch = f.shape.kv_heads = f.shape.group = 1;
    f.shape.pos = f.shape.key_pos = keys;
    f.shape.head_dim = dims;
    f.shape.type = type;
    f.shape.scale = 0.125f;
    f.shape.mask.causal = true;
    f.q = q.data(), f.k = k.data(), f.v = v.data(), f.out = all.data(), f.m = m.data(), f.r = r.data();
    f.q_strides = f.out_strides = {0, dims, 0, 0};
    f.k_strides = f.v_strides = {0, dims, 0};
    machine::ThreadPool pool(2);
    for (machine::Isa isa : machine::available_isas()) {
      attention_forward(f, isa, pool);
      AttentionForward d = f;
      const int64_t origin = row;
      const int32_t length = static_cast<int32_t>(row) + 1;
      d.shape.pos = 1;
      d.shape.query_origin = &origin;
      d.shape.mask.key_length = &length;
      d.q = q.bytes.data() + row * dims * machine::float_size(type);
      d.out = one.data();
      attention_forward(d, isa, pool);
      CHECK(std::memcmp(one.data(), all.data() + row * dims, sizeof(float) * dims) == 0);
      CHECK(one[0] != 0);
    }
  }
}

TEST_CASE("the order of keys and the leaves of queries show in the bits") {
  // Negative control: without a mask, reversed keys and values give the same attention mathematically.
  for (machine::FloatType type : {machine::FloatType::kF32, machine::FloatType::kBf16}) {
    Random random{11};
    const int64_t length = 256, dims = 32;
    Store q = make_store(type, length * dims), k = q, v = q, dout = q;
    for (Store* s : {&q, &k, &v, &dout})
      for (int64_t i = 0; i < length * dims; ++i)
        reference::set_element(s->data(), type, i, random.value(false));
    std::vector<float> forward(static_cast<size_t>(length * dims)), reversed(forward), dq(forward),
        dk(forward), dv(forward), dk_leaves(forward), dv_leaves(forward), m(static_cast<size_t>(length)),
        r(m);
    AttentionForward f;
    f.shape.batch = f.shape.kv_heads = f.shape.group = 1;
    f.shape.pos = f.shape.key_pos = length;
    f.shape.head_dim = dims;
    f.shape.type = type;
    f.q = q.data(), f.k = k.data(), f.v = v.data(), f.m = m.data(), f.r = r.data();
    f.q_strides = f.out_strides = {0, dims, 0, 0};
    f.k_strides = f.v_strides = {0, dims, 0};
    f.out = reversed.data();
    AttentionForward backwards = f;
    const int64_t last = (length - 1) * dims * machine::float_size(type);
    backwards.k = k.bytes.data() + last, backwards.v = v.bytes.data() + last;
    backwards.k_strides = backwards.v_strides = {0, -dims, 0};
    f.out = forward.data();
    AttentionBackward b;
    b.shape = f.shape;
    b.q = f.q, b.k = f.k, b.v = f.v, b.out = f.out, b.dout = dout.data(), b.m = f.m, b.r = f.r;
    b.q_strides = b.out_strides = b.dout_strides = b.dq_strides = f.q_strides;
    b.k_strides = b.v_strides = b.dk_strides = b.dv_strides = f.k_strides;
    const int64_t ends[] = {128, 256};
    machine::ThreadPool pool(1);
    attention_forward(backwards, best_isa(), pool);
    attention_forward(f, best_isa(), pool);
    CHECK(forward != reversed);
    float largest = 0;
    for (size_t i = 0; i < forward.size(); ++i)
      largest = std::max(largest, std::abs(forward[i] - reversed[i]));
    CHECK(largest < (type == machine::FloatType::kF32 ? 1e-4f : 5e-2f));
    b.dq = dq.data(), b.dk = dk.data(), b.dv = dv.data();
    attention_backward(b, best_isa(), pool);
    b.dk = dk_leaves.data(), b.dv = dv_leaves.data();
    b.query_leaf_ends = ends;
    attention_backward(b, best_isa(), pool);
    CHECK(dk != dk_leaves);
    CHECK(dv != dv_leaves);
    CHECK(std::abs(dv[5] - dv_leaves[5]) < 1e-4f);
  }
}

}  // namespace ostro::kernels
