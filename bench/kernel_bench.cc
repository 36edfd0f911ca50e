// One kernel at a time on request, for bench/kernel_compare.py, which runs peers in turn with it. Reads
// lines:
//   linear f32|bf16 fwd|dgrad|wgrad TOKENS OUT IN THREADS     prepares that case
//   attention f32|bf16 forward|backward HEADS HEAD_DIM LENGTH THREADS
//   run N                                                     runs it N times
// and answers each with a line: `ready FLOPS`, or `SECONDS PEAK SUM`: of the N runs (CPU time with one
// thread, which stops while another process has the core), the FMA peak in flop/s just before or behind, and
// the sum of the first result's magnitudes, which both sides of a comparison must share. FLOPs of causal
// attention count the lower triangle.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "bench/kernel_cases.h"
#include "ostro/machine/isa.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/choose_isa.h"

namespace {

using namespace ostro;

// What is prepared now.
struct Work {
  std::unique_ptr<machine::ThreadPool> pool;
  kernels::GemmType type = kernels::GemmType::kF32;
  std::optional<kernels::Gemm> gemm;
  kernels::PackedB packed;
  AlignedBytes a, b, c;
  std::unique_ptr<bench::AttentionCase> attention;
  bool prepacked = false, backward = false;
  const void* result = nullptr;
  int64_t results = 0;
  bool result_bf16 = false;

  void run() {
    const machine::Isa isa = kernels::best_isa();
    if (attention != nullptr) {
      if (backward)
        kernels::attention_backward(attention->backward, isa, *pool);
      else
        kernels::attention_forward(attention->forward, isa, *pool);
    } else if (prepacked) {
      gemm->run(*pool, a.get(), packed, c.get());
    } else {
      gemm->run(*pool, a.get(), b.get(), c.get());
    }
  }

  double magnitude() const {
    double sum = 0;
    for (int64_t i = 0; i < results; ++i) {
      uint32_t bits;
      if (result_bf16)
        bits = static_cast<uint32_t>(static_cast<const uint16_t*>(result)[i]) << 16;
      else
        std::memcpy(&bits, static_cast<const float*>(result) + i, 4);
      float x;
      std::memcpy(&x, &bits, 4);
      sum += std::fabs(x);
    }
    return sum;
  }
};

double prepare_linear(std::istream& in, Work& w) {
  std::string layout;
  int64_t tokens, out, inner;
  in >> layout >> tokens >> out >> inner;
  bench::LinearCase c = bench::linear_case(layout, tokens, out, inner, w.type);
  const bool bf16 = w.type == kernels::GemmType::kBf16;
  w.a = bench::fixed_values(c.a, bf16, 0);
  w.b = bench::fixed_values(c.b, bf16, 1);
  w.c = bench::fixed_values(c.c, false, 2);
  w.result = w.c.get(), w.results = c.c, w.result_bf16 = c.spec.out == kernels::GemmType::kBf16;
  w.prepacked = c.prepacked;
  w.gemm.emplace(std::move(c.spec), kernels::best_isa());
  return 2.0 * static_cast<double>(tokens) * static_cast<double>(out) * static_cast<double>(inner);
}

double prepare_attention(std::istream& in, Work& w) {
  std::string pass;
  int64_t heads, dims, length;
  in >> pass >> heads >> dims >> length;
  const bool bf16 = w.type == kernels::GemmType::kBf16;
  w.attention = std::make_unique<bench::AttentionCase>(
      heads, dims, length, bf16 ? machine::FloatType::kBf16 : machine::FloatType::kF32);
  w.backward = pass == "backward";
  w.result = w.backward ? w.attention->backward.dq : w.attention->forward.out;
  w.results = w.attention->count(), w.result_bf16 = bf16;
  return (w.backward ? 5.0 : 2.0) * static_cast<double>(length * length) * static_cast<double>(dims * heads);
}

}  // namespace

int main() {
  std::unique_ptr<Work> w;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    std::string what, type;
    in >> what;
    if (what == "run") {
      int times = 1;
      in >> times;
      // Bursts last less than a millisecond: the first may find a thread that is still waking up.
      double peak = 0;
      const auto burst = [&] {
        peak = std::max(peak, kernels::burst_peak(*w->pool, kernels::best_isa(), w->type));
      };
      for (int i = 0; i < 4; ++i) burst();
      const double start = kernels::clock_seconds(w->pool->threads());
      for (int i = 0; i < times; ++i) w->run();
      const double seconds = kernels::clock_seconds(w->pool->threads()) - start;
      for (int i = 0; i < 4; ++i) burst();
      fmt::print("{} {} {}\n", seconds, peak, w->magnitude());
    } else {
      w = std::make_unique<Work>();
      in >> type;
      w->type = type == "bf16" ? kernels::GemmType::kBf16 : kernels::GemmType::kF32;
      const double flops = what == "linear" ? prepare_linear(in, *w) : prepare_attention(in, *w);
      int threads = 1;
      in >> threads;
      w->pool = std::make_unique<machine::ThreadPool>(threads);
      if (w->prepacked) w->gemm->pack_b(*w->pool, w->b.get(), w->packed);
      // The backward pass reads what the forward one stores; both touch all memory once here.
      if (w->backward) kernels::attention_forward(w->attention->forward, kernels::best_isa(), *w->pool);
      w->run();
      fmt::print("ready {}\n", flops);
    }
    std::fflush(stdout);
  }
}
