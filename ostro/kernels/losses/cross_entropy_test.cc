#include "ostro/kernels/losses/cross_entropy.h"
#include "ostro/products/choose_isa.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "ostro/numerics/bf16.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/sums.h"

namespace ostro::kernels {
namespace {

uint64_t next(uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

struct LossCase {
  int64_t rows, vocab, stride;
  std::vector<float> logits, w;
  std::vector<int32_t> targets;
  std::vector<int64_t> leaf_ends;
  float z;
  machine::FloatType out_type;
};

LossCase make_case(uint64_t seed) {
  uint64_t s = seed * 77 + 5;
  LossCase c;
  c.rows = 1 + static_cast<int64_t>(next(s) % 9);
  c.vocab = 1 + static_cast<int64_t>(next(s) % (seed % 3 == 0 ? 3000 : 200));
  c.stride = c.vocab + static_cast<int64_t>(next(s) % 4);
  c.z = seed % 2 == 0 ? 0.0f : 1e-2f;
  c.out_type = seed % 4 < 2 ? machine::FloatType::kF32 : machine::FloatType::kBf16;
  const float spread = seed % 5 == 0 ? 300.0f : 8.0f;  // the large spread underflows most exponentials
  for (int64_t i = 0; i < c.rows * c.stride; ++i)
    c.logits.push_back((static_cast<float>(next(s) & 0xffffff) * 0x1p-23f - 1.0f) * spread);
  if (seed % 7 == 0)  // zeros of both signs and denormals
    for (size_t i = 0; i < c.logits.size(); i += 3) {
      const uint32_t bits = static_cast<uint32_t>(next(s) & 1) << 31 | (i % 2 == 0 ? 0 : 77);
      std::memcpy(&c.logits[i], &bits, 4);
    }
  for (int64_t i = 0; i < c.rows; ++i) {
    c.w.push_back(static_cast<float>(next(s) % 3));
    c.targets.push_back(next(s) % 8 == 0 ? -1
                                         : static_cast<int32_t>(next(s) % static_cast<uint64_t>(c.vocab)));
  }
  if (seed % 3 == 1) {
    const int64_t leaves = 1 + static_cast<int64_t>(next(s) % 7),
                  size = ((c.vocab + leaves - 1) / leaves + 7) / 8 * 8;
    for (int64_t i = 1; i <= leaves; ++i) c.leaf_ends.push_back(std::min(c.vocab, i * size));
  }
  return c;
}

struct LossOutcome {
  std::vector<float> loss, m, r, lse;
  std::vector<uint8_t> dlogits;
  explicit LossOutcome(const LossCase& c)
      : loss(static_cast<size_t>(c.rows)),
        m(loss),
        r(loss),
        lse(loss),
        dlogits(static_cast<size_t>(c.rows * c.stride * machine::float_size(c.out_type))) {}
  bool operator==(const LossOutcome& o) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
    };
    return same(loss, o.loss) && same(m, o.m) && same(r, o.r) && same(lse, o.lse) && dlogits == o.dlogits;
  }
};

// N11 as written.
[[gnu::noinline]] void run_reference(const LossCase& c, LossOutcome& o) {
  std::vector<int64_t> ends = c.leaf_ends;
  if (ends.empty()) ends.push_back(c.vocab);
  for (int64_t i = 0; i < c.rows; ++i) {
    const float* x = c.logits.data() + i * c.stride;
    float m = x[0];
    for (int64_t j = 1; j < c.vocab; ++j) m = x[j] > m ? x[j] : m;
    std::vector<float> partials;
    int64_t begin = 0;
    for (int64_t end : ends) {
      partials.push_back(numerics::striped_sum<float>(
          end - begin, [&](int64_t j) { return numerics::exp2_block(x[begin + j], m, numerics::kLog2e); }));
      begin = end;
    }
    const float l = numerics::tree_sum<float>(partials), lse = m + numerics::log_f32(l), r = 1.0f / l;
    const int32_t target = c.targets[static_cast<size_t>(i)];
    const float w = c.w[static_cast<size_t>(i)];
    float loss = lse - (target >= 0 ? x[target] : 0.0f);
    if (c.z != 0) loss = loss + (c.z * lse) * lse;
    o.loss[static_cast<size_t>(i)] = loss;
    o.m[static_cast<size_t>(i)] = m + 0.0f;
    o.r[static_cast<size_t>(i)] = r;
    o.lse[static_cast<size_t>(i)] = lse;
    for (int64_t j = 0; j < c.vocab; ++j) {
      const float p = numerics::exp2_block(x[j], m, numerics::kLog2e) * r;
      const float slope = c.z != 0 ? w + ((2.0f * c.z) * w) * lse : w;
      const float y = p * slope - w * (j == target ? 1.0f : 0.0f);
      const int64_t at = i * c.stride + j;
      const numerics::Bf16 narrow = numerics::to_bf16(y);
      if (c.out_type == machine::FloatType::kF32)
        std::memcpy(o.dlogits.data() + at * 4, &y, 4);
      else
        std::memcpy(o.dlogits.data() + at * 2, &narrow.bits, 2);
    }
  }
}

enum class How { kApart, kTogether, kInPlace };

void run_fast(const LossCase& c, LossOutcome& o, machine::Isa isa, machine::ThreadPool& pool,
              How how = How::kApart) {
  std::vector<float> memory = c.logits;
  CrossEntropyForward f;
  f.rows = c.rows, f.vocab = c.vocab, f.row_stride = c.stride;
  f.logits = memory.data();
  f.targets = c.targets.data();
  f.z = c.z;
  f.vocab_leaf_ends = c.leaf_ends;
  f.loss = o.loss.data(), f.m = o.m.data(), f.r = o.r.data(), f.lse = o.lse.data();
  CrossEntropyBackward b;
  b.rows = c.rows, b.vocab = c.vocab, b.row_stride = c.stride;
  b.logits = memory.data();
  b.targets = c.targets.data();
  b.z = c.z;
  b.m = f.m, b.r = f.r, b.lse = f.lse, b.w = c.w.data();
  b.dlogits = o.dlogits.data();
  b.dlogits_type = c.out_type;
  b.dlogits_stride = c.stride;
  if (how == How::kApart) {
    cross_entropy_forward(f, isa, pool);
    // The sums for given maxima are those of the forward pass.
    std::vector<float> sums(static_cast<size_t>(c.rows));
    cross_entropy_sum(f, f.m, sums.data(), isa, pool);
    for (size_t i = 0; i < sums.size(); ++i) CHECK(1.0f / sums[i] == f.r[i]);
    cross_entropy_backward(b, isa, pool);
    return;
  }
  if (how == How::kTogether) {
    cross_entropy_both(f, b, isa, pool);
    return;
  }
  const int64_t bytes = machine::float_size(c.out_type), row = c.stride * static_cast<int64_t>(sizeof(float));
  b.dlogits = memory.data();
  b.dlogits_stride = row / bytes;
  cross_entropy_both(f, b, isa, pool);
  for (int64_t i = 0; i < c.rows; ++i)
    std::memcpy(o.dlogits.data() + i * c.stride * bytes,
                reinterpret_cast<const char*>(memory.data()) + i * row, static_cast<size_t>(c.vocab * bytes));
}

}  // namespace

TEST_CASE("cross-entropy equals N11 on every instruction set and thread count") {
  machine::ThreadPool one(1), three(3);
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const LossCase c = make_case(seed);
    LossOutcome want(c);
    {
      numerics::HostArithmetic guard;
      run_reference(c, want);
    }
    CHECK(std::isfinite(want.loss[0]));
    for (machine::Isa isa : machine::available_isas()) {
      for (How how : {How::kApart, How::kTogether, How::kInPlace}) {
        LossOutcome got(c);
        run_fast(c, got, isa, seed % 2 == 0 ? one : three, how);
        REQUIRE_MESSAGE(got == want, "seed " << seed << " on " << machine::isa_name(isa));
      }
    }
  }
}

TEST_CASE("cross-entropy gradient may overwrite the logits") {
  machine::ThreadPool pool(2);
  LossCase c = make_case(4);
  c.out_type = machine::FloatType::kF32;
  c.leaf_ends.clear();
  for (machine::Isa isa : machine::available_isas()) {
    LossOutcome want(c), got(c);
    run_fast(c, want, isa, pool);
    std::vector<float> x = c.logits;
    CrossEntropyBackward b;
    b.rows = c.rows, b.vocab = c.vocab, b.row_stride = b.dlogits_stride = c.stride;
    b.logits = x.data();
    b.dlogits = x.data();
    b.targets = c.targets.data();
    b.z = c.z;
    b.m = want.m.data(), b.r = want.r.data(), b.lse = want.lse.data(), b.w = c.w.data();
    cross_entropy_backward(b, isa, pool);
    for (int64_t i = 0; i < c.rows; ++i)
      CHECK(std::memcmp(x.data() + i * c.stride, want.dlogits.data() + i * c.stride * 4,
                        static_cast<size_t>(c.vocab) * 4) == 0);
  }
}

TEST_CASE("the loss of equal logits is the log of the vocabulary") {
  machine::ThreadPool pool(1);
  std::vector<float> logits(1000, 0.0f);
  const int32_t target = 3;
  float loss, m, r, lse;
  CrossEntropyForward f;
  f.rows = 1, f.vocab = f.row_stride = 1000;
  f.logits = logits.data(), f.targets = &target;
  f.loss = &loss, f.m = &m, f.r = &r, f.lse = &lse;
  cross_entropy_forward(f, best_isa(), pool);
  CHECK(loss == static_cast<float>(std::log(1000.0)));
}

}  // namespace ostro::kernels
