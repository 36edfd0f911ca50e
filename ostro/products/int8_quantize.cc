#include "ostro/products/int8_quantize.h"

#include <algorithm>
#include <array>

#include "ostro/ir/program/int8_limits.h"
#include "ostro/products/gemm_block.h"
#include "ostro/products/kernels/quantize8_kernel.h"

namespace ostro::kernels {
namespace {

// Elements of x that one range of rows has at least.
constexpr int64_t kQuantizeGrain = 1 << 14;

const Quantize8Kernel& choose_quantizer(machine::Isa isa) {
  OSTRO_CHECK(machine::has_isa(isa), "this machine cannot run {}", machine::isa_name(isa));
  if (isa == machine::Isa::kGeneric) return quantize8_generic();
  return isa == machine::Isa::kAvx2 ? quantize8_avx2() : quantize8_avx512();
}

uint64_t index_of(const Int8Dither& dither, int64_t row, int64_t column) {
  const int64_t first = dither.first != nullptr ? dither.first[row] : dither.first_of_all + row * dither.step;
  return static_cast<uint64_t>(first + column);
}

int64_t offset_of(const Int8Input& input, int64_t row) {
  return input.row_at != nullptr ? input.row_at[row] : row * input.stride;
}

const std::byte* element_at(const Int8Input& input, int64_t row, int64_t column) {
  return static_cast<const std::byte*>(input.x) +
         (offset_of(input, row) + column) * element_bytes(input.type);
}

}  // namespace

void quantize_rows(machine::ThreadPool& pool, machine::Isa isa, const Int8Input& input,
                   const Int8Blocks& blocks, const Int8Output& out) {
  OSTRO_CHECK(blocks.k() == input.columns, "blocks of {} numbers for rows of {}", blocks.k(), input.columns);
  const Quantize8Kernel& kernel = choose_quantizer(isa);
  const Int8Dither* dither = input.dither;
  const Int8Draws draws = dither != nullptr ? Int8Draws{dither->key.word0, dither->key.word1} : Int8Draws{};
  pool.parallel_for(
      input.rows,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row)
          for (int64_t i = 0; i < blocks.count(); ++i) {
            const Int8Blocks::Block& block = blocks.blocks()[static_cast<size_t>(i)];
            out.scales[row * out.scale_stride + i] =
                kernel.row({.x = element_at(input, row, block.begin),
                            .bf16 = input.type == GemmType::kBf16,
                            .count = block.count,
                            .draws = dither != nullptr ? &draws : nullptr,
                            .index = dither != nullptr ? index_of(*dither, row, block.begin) : 0,
                            .q = out.q + row * out.stride + block.begin});
          }
      },
      std::max<int64_t>(1, kQuantizeGrain / std::max<int64_t>(1, input.columns)));
}

void quantize_columns(machine::ThreadPool& pool, machine::Isa isa, const Int8Input& input,
                      const Int8Blocks& blocks, const Int8Output& out) {
  OSTRO_CHECK(blocks.k() == input.rows, "blocks of {} numbers for columns of {}", blocks.k(), input.rows);
  const Quantize8Kernel& kernel = choose_quantizer(isa);
  const Int8Dither* dither = input.dither;
  const Int8Draws draws = dither != nullptr ? Int8Draws{dither->key.word0, dither->key.word1} : Int8Draws{};
  const int64_t strips = ceil_div(input.columns, kInt8Columns);
  pool.run_tiles(blocks.count() * strips, [&](int64_t tile) {
    const int64_t i = tile / strips, first = tile % strips * kInt8Columns;
    const Int8Blocks::Block& block = blocks.blocks()[static_cast<size_t>(i)];
    std::array<uint64_t, ir::kMaxInt8Block> index;
    std::array<int64_t, ir::kMaxInt8Block> row_at;
    for (int64_t row = 0; row < block.count; ++row)
      row_at[static_cast<size_t>(row)] = offset_of(input, block.begin + row) + first;
    if (dither != nullptr)
      for (int64_t row = 0; row < block.count; ++row)
        index[static_cast<size_t>(row)] = index_of(*dither, block.begin + row, first);
    kernel.columns({.x = input.x,
                    .bf16 = input.type == GemmType::kBf16,
                    .row_at = row_at.data(),
                    .rows = block.count,
                    .columns = static_cast<int>(std::min<int64_t>(kInt8Columns, input.columns - first)),
                    .draws = dither != nullptr ? &draws : nullptr,
                    .index = index.data(),
                    .q = out.q + first * out.stride + block.begin,
                    .q_stride = out.stride,
                    .scales = out.scales + first * out.scale_stride + i,
                    .scale_stride = out.scale_stride});
  });
}

}  // namespace ostro::kernels
