// Matrix product speed as a share of the machine's peak, measured in the same breath: before and after every
// timed product runs a burst of the kernel's own instruction on registers alone, and the figures are medians
// of the pairwise ratios, so that a busy neighbour disturbs both sides alike. One thread is timed by its own
// clock, which stops while another process has the core.
//
//   gemm_bench [--threads N] [--isa NAME] [--in f32|bf16] [--rounds N] [--filter TEXT] [--m M]
//
// W is stored [out, in]: fwd Y = X W^T, dgrad dX = dY W (both with W packed beforehand), wgrad dW = dY^T X
// (both operands packed inside the timed region). Y and dX have the operands' type, dW is f32.
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "ostro/cpu/calibrate.h"
#include "ostro/cpu/gemm.h"

namespace {

using namespace ostro;
using namespace ostro::cpu;

std::vector<int64_t> steps(int64_t count, int64_t stride) {
  std::vector<int64_t> offsets(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) offsets[static_cast<size_t>(i)] = i * stride;
  return offsets;
}

struct Case {
  std::string name;
  int64_t tokens, in, out;
};

struct Options {
  int threads = 1, rounds = 7;
  Isa isa = best_isa();
  GemmType type = GemmType::kF32;
  std::string filter;
  int64_t tokens = 2048;
};

AlignedBytes random_values(int64_t count, GemmType type) {
  AlignedBytes bytes = allocate_aligned(static_cast<size_t>(count) * 4);
  uint64_t state = 1;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const float x = static_cast<float>(static_cast<int64_t>(state >> 40)) * 0x1p-23f - 1.0f;
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    if (type == GemmType::kF32) {
      std::memcpy(bytes.get() + i * 4, &bits, 4);
    } else {
      const uint16_t high = static_cast<uint16_t>(bits >> 16);
      std::memcpy(bytes.get() + i * 2, &high, 2);
    }
  }
  return bytes;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void measure(const Options& o, ThreadPool& pool, const std::string& name, GemmSpec spec, int64_t a_count,
             int64_t b_count, int64_t c_count, bool prepack) {
  if (name.find(o.filter) == std::string::npos) return;
  spec.in = o.type;
  const Gemm gemm(std::move(spec), o.isa);
  const AlignedBytes a = random_values(a_count, o.type), b = random_values(b_count, o.type);
  const AlignedBytes c = allocate_aligned(static_cast<size_t>(c_count) * 4);
  PackedB packed;
  if (prepack) gemm.pack_b(pool, b.get(), packed);
  const double flops =
      2.0 * static_cast<double>(gemm.m()) * static_cast<double>(gemm.n()) * static_cast<double>(gemm.k());
  std::vector<double> shares;
  double best = 0;
  for (int round = -1; round < o.rounds; ++round) {
    const double before = cpu::burst_peak(pool, o.isa, o.type);
    const double start = cpu::clock_seconds(o.threads);
    if (prepack) {
      gemm.run(pool, a.get(), packed, c.get());
    } else {
      gemm.run(pool, a.get(), b.get(), c.get());
    }
    const double rate = flops / (cpu::clock_seconds(o.threads) - start);
    const double peak = std::max(before, cpu::burst_peak(pool, o.isa, o.type));
    if (round < 0) continue;  // warm-up
    shares.push_back(rate / peak);
    best = std::max(best, rate);
  }
  fmt::print("{:<28} {:>5.1f} % median {:>5.1f} % best   {:>7.1f} GFLOP/s best\n", name, 100 * median(shares),
             100 * *std::max_element(shares.begin(), shares.end()), best * 1e-9);
  std::fflush(stdout);
}

void run_case(const Options& o, ThreadPool& pool, const Case& c) {
  const int64_t x = c.tokens * c.in, w = c.in * c.out, y = c.tokens * c.out;
  const std::string size = fmt::format("{} {}x{}x{}", c.name, c.tokens, c.out, c.in);
  GemmSpec fwd;
  fwd.a_row = steps(c.tokens, c.in), fwd.a_col = steps(c.in, 1);
  fwd.b_row = steps(c.in, 1), fwd.b_col = steps(c.out, c.in);
  fwd.c_row = steps(c.tokens, c.out), fwd.c_col = steps(c.out, 1);
  fwd.out = o.type;
  measure(o, pool, size + " fwd", fwd, x, w, y, true);
  GemmSpec dgrad;
  dgrad.a_row = steps(c.tokens, c.out), dgrad.a_col = steps(c.out, 1);
  dgrad.b_row = steps(c.out, c.in), dgrad.b_col = steps(c.in, 1);
  dgrad.c_row = steps(c.tokens, c.in), dgrad.c_col = steps(c.in, 1);
  dgrad.out = o.type;
  measure(o, pool, size + " dgrad", dgrad, y, w, x, true);
  GemmSpec wgrad;
  wgrad.a_row = steps(c.out, 1), wgrad.a_col = steps(c.tokens, c.out);
  wgrad.b_row = steps(c.tokens, c.in), wgrad.b_col = steps(c.in, 1);
  wgrad.c_row = steps(c.out, c.in), wgrad.c_col = steps(c.in, 1);
  measure(o, pool, size + " wgrad", wgrad, y, x, w, false);
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i], value = argv[i + 1];
    if (key == "--threads") o.threads = std::stoi(value);
    if (key == "--rounds") o.rounds = std::stoi(value);
    if (key == "--m") o.tokens = std::stoll(value);
    if (key == "--filter") o.filter = value;
    if (key == "--in") o.type = value == "bf16" ? GemmType::kBf16 : GemmType::kF32;
    if (key == "--isa") {
      const Result<Isa> isa = choose_isa(value);
      if (!isa.ok()) {
        fmt::print(stderr, "{}\n", isa.error().message());
        return 2;
      }
      o.isa = isa.value();
    }
  }
  ThreadPool pool(o.threads);
  fmt::print("{} {}, {} threads; tokens x out x in\n", isa_name(o.isa),
             o.type == GemmType::kF32 ? "f32" : "bf16", o.threads);
  const Case cases[] = {{"nano.qkv", o.tokens, 256, 512},    {"nano.up", o.tokens, 256, 1376},
                        {"nano.down", o.tokens, 688, 256},   {"nano.head", o.tokens, 256, 4096},
                        {"small.qkv", o.tokens, 512, 1024},  {"small.o", o.tokens, 512, 512},
                        {"small.up", o.tokens, 512, 2816},   {"small.down", o.tokens, 1408, 512},
                        {"small.head", o.tokens, 512, 32000}};
  for (const Case& c : cases) run_case(o, pool, c);
}
