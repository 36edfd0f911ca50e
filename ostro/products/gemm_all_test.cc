// Products that run as one job give the bits that each has by itself, whatever their sizes, on every
// instruction set and with any number of threads.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>

#include "ostro/numerics/threefry.h"
#include "ostro/products/gemm.h"

namespace ostro::kernels {
namespace {

struct Product {
  int64_t m, n, k, leaves;
  bool b_transposed;
};

// Rows of A and C are scattered, as those of an expert are.
GemmSpec scattered(const Product& p, GemmType in, GemmType out) {
  GemmSpec s;
  s.in = in, s.out = out;
  for (int64_t i = 0; i < p.m; ++i) s.a_row.push_back((i * 3 + i / 7) * (p.k + 5));
  for (int64_t i = 0; i < p.m; ++i) s.c_row.push_back((i * 2 + i / 5) * (p.n + 3));
  for (int64_t i = 0; i < p.k; ++i)
    s.a_col.push_back(i), s.b_row.push_back(p.b_transposed ? i : i * (p.n + 1));
  for (int64_t i = 0; i < p.n; ++i)
    s.c_col.push_back(i), s.b_col.push_back(p.b_transposed ? i * (p.k + 2) : i);
  for (int64_t l = 1; p.leaves > 1 && l <= p.leaves; ++l)
    s.segment_ends.push_back(p.k * l * l / (p.leaves * p.leaves));
  return s;
}

int64_t extent(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  return a.empty() || b.empty() ? 1 : *std::ranges::max_element(a) + *std::ranges::max_element(b) + 1;
}

AlignedBytes random_bytes(int64_t elements, bool bf16, uint64_t seed) {
  AlignedBytes bytes = allocate_aligned(static_cast<size_t>(elements) * (bf16 ? 2 : 4));
  const numerics::Key key = numerics::key_from_seed(seed);
  for (int64_t i = 0; i < elements; ++i) {
    const uint32_t bits = numerics::random_bits(key, static_cast<uint64_t>(i));
    const uint32_t x = (bits & 0x807fffffu) | (118 + bits % 9) << 23;
    if (bf16)
      reinterpret_cast<uint16_t*>(bytes.get())[i] = static_cast<uint16_t>(x >> 16);
    else
      reinterpret_cast<uint32_t*>(bytes.get())[i] = x;
  }
  return bytes;
}

void check_together(const std::vector<Product>& products, machine::Isa isa, GemmType in, GemmType out,
                    int threads) {
  machine::ThreadPool pool(threads);
  const bool bf16 = in == GemmType::kBf16;
  const int64_t c_bytes = out == GemmType::kBf16 ? 2 : 4;
  std::vector<Gemm> gemms;
  std::vector<AlignedBytes> a, b, together, alone;
  std::vector<int64_t> sizes;
  gemms.reserve(products.size());
  std::vector<GemmCall> calls;
  for (const Product& p : products) {
    const GemmSpec spec = scattered(p, in, out);
    a.push_back(random_bytes(extent(spec.a_row, spec.a_col), bf16, gemms.size()));
    b.push_back(random_bytes(extent(spec.b_row, spec.b_col), bf16, 100 + gemms.size()));
    sizes.push_back(extent(spec.c_row, spec.c_col) * c_bytes);
    for (auto* list : {&together, &alone}) {
      list->push_back(allocate_aligned(static_cast<size_t>(sizes.back())));
      std::memset(list->back().get(), 0x5a,
                  static_cast<size_t>(sizes.back()));  // nothing between rows changes
    }
    gemms.emplace_back(spec, isa);
    calls.push_back({&gemms.back(), a.back().get(), b.back().get(), together.back().get()});
  }
  Gemm::run_all(pool, calls);
  for (size_t i = 0; i < products.size(); ++i) {
    gemms[i].run(pool, a[i].get(), b[i].get(), alone[i].get());
    CHECK_MESSAGE(std::memcmp(alone[i].get(), together[i].get(), static_cast<size_t>(sizes[i])) == 0,
                  machine::isa_name(isa), " ", threads, " threads: ", products[i].m, " x ", products[i].n,
                  " x ", products[i].k, ", ", products[i].leaves, " leaves");
  }
}

TEST_CASE("products of different sizes as one job") {
  const std::vector<Product> few{{1, 70, 33, 1, false}, {37, 129, 65, 3, true}, {6, 32, 0, 1, false},
                                 {0, 40, 20, 1, false}, {90, 1, 300, 2, true},  {13, 200, 1, 1, false}};
  for (machine::Isa isa : machine::available_isas())
    for (int threads : {1, 2, 3}) {
      check_together(few, isa, GemmType::kF32, GemmType::kF32, threads);
      check_together(few, isa, GemmType::kBf16, GemmType::kF32, threads);
      check_together(few, isa, GemmType::kBf16, GemmType::kBf16, threads);
    }
  // One of several row blocks beside small ones, and so large a C that it is written past the caches.
  const std::vector<Product> large{
      {500, 1300, 900, 1, false}, {3, 1300, 900, 1, false}, {1100, 500, 80, 2, true}};
  for (GemmType type : {GemmType::kF32, GemmType::kBf16})
    check_together(large, machine::available_isas().back(), type, type, 2);
  check_together({}, machine::Isa::kGeneric, GemmType::kF32, GemmType::kF32, 2);
}

}  // namespace
}  // namespace ostro::kernels
