// Speed of paged attention: paged_bench [--threads N] [--isa NAME] [--rounds N] [--group N]. First one token:
// the keys and values that it reads, in GB/s, beside the rate at which this machine reads memory in the same
// round; each call has another layer's pools, so that nothing is left in a cache. Then chunks of a prompt,
// beside attention over contiguous keys. 8 heads of keys, 4 (--group) of queries to each.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <vector>

#include "bench/arguments.h"
#include "ostro/base/aligned.h"
#include "ostro/kernels/attention/paged/paged.h"
#include "ostro/products/calibrate.h"
#include "ostro/products/choose_isa.h"

namespace {

using ostro::AlignedBytes;
using ostro::kernels::clock_seconds;
using ostro::machine::FloatType;
using ostro::machine::FunctionRef;
using ostro::machine::Isa;
using ostro::machine::ThreadPool;

constexpr int64_t kHeads = 8, kPage = 128;
int64_t group = 4;
constexpr int64_t kMemory = int64_t{384} << 20;  // bytes of all layers, beyond any cache

int64_t bytes_of(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

// Memory of small numbers of either type: every 16 bits are a bf16 between 0.5 and 1.
AlignedBytes numbers(int64_t bytes) {
  AlignedBytes memory = ostro::allocate_aligned(static_cast<size_t>(bytes));
  auto* words = reinterpret_cast<uint16_t*>(memory.get());
  for (int64_t i = 0; i < bytes / 2; ++i) words[i] = static_cast<uint16_t>(0x3f00 + i * 37 % 128);
  return memory;
}

double seconds(int threads, FunctionRef<void()> run) {
  const double start = clock_seconds(threads);
  run();
  return clock_seconds(threads) - start;
}

// Reads all of the memory, each thread a part in its order.
void read_memory(const std::byte* memory, int64_t bytes, ThreadPool& pool) {
  pool.parallel_for(bytes / 512, [&](int64_t begin, int64_t end) {
    std::array<uint64_t, 64> sum{};
    for (int64_t i = begin; i < end; ++i) {
      const auto* line = reinterpret_cast<const uint64_t*>(memory + i * 512);
      for (int64_t ahead = 0; ahead < 512; ahead += 64)  // as the kernels do
        if ((i + 8) * 512 < bytes) __builtin_prefetch(memory + (i + 8) * 512 + ahead, 0, 2);
      for (size_t j = 0; j < 64; ++j) sum[j] += line[j];
    }
    uint64_t all = 0;
    for (uint64_t x : sum) all += x;
    volatile uint64_t kept = all;
    (void)kept;
  });
}

struct PagedCase {
  AlignedBytes pools, q, out;
  std::vector<int32_t> table, position;
  ostro::kernels::PagedAttention args;
  int64_t layers = 0, layer_bytes = 0;  // of keys; values lie in the second half

  // `rows` rows that follow each other, the last of which sees `length` keys.
  PagedCase(FloatType type, int64_t dims, int64_t length, int64_t rows) {
    const int64_t size = bytes_of(type), pages = (length + kPage - 1) / kPage;
    layer_bytes = pages * kPage * kHeads * dims * size;
    layers = std::max<int64_t>(1, kMemory / (2 * layer_bytes));
    pools = numbers(2 * layers * layer_bytes);
    q = numbers(rows * kHeads * group * dims * size);
    out = numbers(rows * kHeads * group * dims * size);
    for (int64_t r = 0; r < rows; ++r) {
      table.resize(table.size() + static_cast<size_t>(pages));
      position.push_back(static_cast<int32_t>(length - rows + r));
    }
    std::vector<int32_t> order;  // every page once
    for (int32_t p = 0; p < pages; ++p) order.push_back(p);
    for (int64_t p = 0; p + 1 < pages; p += 2) std::swap(order[static_cast<size_t>(p)], order.back());
    for (size_t i = 0; i < table.size(); ++i) table[i] = order[i % order.size()];
    args.rows = rows;
    args.kv_heads = kHeads;
    args.group = group;
    args.key_dim = args.value_dim = dims;
    args.pages = args.entries = pages;
    args.type = type;
    args.scale = 0.125f;
    args.q = q.get();
    args.out = out.get();
    args.q_strides = args.out_strides = {0, kHeads * group * dims, group * dims, dims};
    args.key_strides = {kHeads * dims * kPage, 1, dims * kPage, kPage};
    args.value_strides = {kHeads * dims * kPage, dims, dims * kPage, 1};
    args.table = table.data();
    args.position = position.data();
  }
  void use_layer(int64_t i) {
    args.key_pool = pools.get() + i % layers * layer_bytes;
    args.value_pool = pools.get() + (layers + i % layers) * layer_bytes;
  }
};

void one_token(FloatType type, int64_t dims, int64_t length, int rounds, Isa isa, ThreadPool& pool) {
  PagedCase c(type, dims, length, 1);
  // Memory that is needed: the keys and values up to the position.
  const double bytes = 2.0 * static_cast<double>(length * kHeads * dims * bytes_of(type));
  const int64_t all = 2 * c.layers * c.layer_bytes;
  std::vector<double> micros, rates, reads, shares;
  for (int round = 0; round <= rounds; ++round) {
    const double t = seconds(pool.threads(), [&] {
      for (int64_t i = 0; i < c.layers; ++i) {
        c.use_layer(i);
        ostro::kernels::paged_attention(c.args, isa, pool);
      }
    });
    const double r = seconds(pool.threads(), [&] { read_memory(c.pools.get(), all, pool); });
    if (round == 0) continue;
    const double rate = bytes * static_cast<double>(c.layers) / t, read = static_cast<double>(all) / r;
    micros.push_back(1e6 * t / static_cast<double>(c.layers));
    rates.push_back(rate * 1e-9);
    reads.push_back(read * 1e-9);
    shares.push_back(rate / read);
  }
  fmt::print("{:5} {:5} {:6} {:10.1f} {:9.1f} {:9.1f} {:6.0f}%\n", type == FloatType::kF32 ? "f32" : "bf16",
             dims, length, ostro::bench::median(micros), ostro::bench::median(rates),
             ostro::bench::median(reads), 100 * ostro::bench::median(shares));
}

void chunk(FloatType type, int64_t dims, int64_t length, int64_t rows, int rounds, Isa isa,
           ThreadPool& pool) {
  PagedCase c(type, dims, length, rows);
  const int64_t size = bytes_of(type), keys = length * kHeads * dims * size;
  const AlignedBytes k = numbers(keys), v = numbers(keys);
  std::vector<float> statistics(static_cast<size_t>(2 * rows * kHeads * group));
  const int64_t origin = length - rows;
  ostro::kernels::AttentionForward f;
  f.shape = {.batch = 1,
             .pos = rows,
             .key_pos = length,
             .kv_heads = kHeads,
             .group = group,
             .head_dim = dims,
             .type = type,
             .scale = 0.125f,
             .query_origin = &origin,
             .mask = {.causal = true}};
  f.q = c.args.q, f.k = k.get(), f.v = v.get(), f.out = c.args.out, f.out_type = type;
  f.m = statistics.data(), f.r = f.m + rows * kHeads * group;
  f.q_strides = f.out_strides = c.args.q_strides;
  f.k_strides = f.v_strides = {keys / size, kHeads * dims, dims};
  std::vector<double> paged, contiguous, ratios;
  for (int round = 0; round <= rounds; ++round) {
    c.use_layer(round);
    const double a = seconds(pool.threads(), [&] { ostro::kernels::paged_attention(c.args, isa, pool); });
    const double b = seconds(pool.threads(), [&] { ostro::kernels::attention_forward(f, isa, pool); });
    if (round == 0) continue;
    paged.push_back(1e6 * a), contiguous.push_back(1e6 * b), ratios.push_back(a / b);
  }
  fmt::print("{:5} {:5} {:6} {:5} {:10.0f} {:10.0f} {:6.2f}\n", type == FloatType::kF32 ? "f32" : "bf16",
             dims, length, rows, ostro::bench::median(paged), ostro::bench::median(contiguous),
             ostro::bench::median(ratios));
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 1, rounds = 7;
  Isa isa = ostro::kernels::best_isa();
  const std::vector<ostro::bench::Option> options = {
      ostro::bench::count_option("--threads", threads), ostro::bench::count_option("--rounds", rounds),
      ostro::bench::count_option("--group", group), ostro::bench::isa_option("--isa", isa)};
  if (const ostro::Status status = ostro::bench::read_options(argc, argv, options); !status.ok()) {
    fmt::print(stderr, "paged_bench: {}\n", status.error().message());
    return 2;
  }
  ThreadPool pool(threads);
  fmt::print("{}, {} threads, median of {}\n", ostro::machine::isa_name(isa), threads, rounds);
  fmt::print("{:5} {:>5} {:>6} {:>10} {:>9} {:>9} {:>7}\n", "type", "D", "keys", "us a token", "GB/s",
             "read GB/s", "share");
  for (FloatType type : {FloatType::kF32, FloatType::kBf16})
    for (int64_t dims : {64, 128})
      for (int64_t length : {128, 1000, 4000}) one_token(type, dims, length, rounds, isa, pool);
  fmt::print("{:5} {:>5} {:>6} {:>5} {:>10} {:>10} {:>6}\n", "type", "D", "keys", "rows", "paged us",
             "plain us", "ratio");
  for (FloatType type : {FloatType::kF32, FloatType::kBf16})
    for (int64_t rows : {4, 8, 16, 32, 128, 512})
      for (int64_t length : {1024, 4096}) chunk(type, 64, length, rows, rounds, isa, pool);
  return 0;
}
