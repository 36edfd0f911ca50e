// bf16 products on AMX: 32 x 32 outputs in four tile registers.
#include "ostro/machine/vector/amx_tiles.inc.h"
#include "ostro/products/kernels/gemm_pack_avx512.inc.h"
#include "ostro/products/kernels/gemm_store_avx512bf16.inc.h"

namespace ostro::kernels {
namespace {

constexpr int kMr = 32, kNr = 32;
constexpr int kTileWords = 16 * 16;

void bf16_multiply(int64_t k, const void* a, const void* b, float* c, int64_t ldc, int rows, bool first) {
  const auto tile = rows <= 16 ? machine::amx_multiply_16 : machine::amx_multiply_32;
  tile(c, ldc, static_cast<const uint32_t*>(a), 16, 2 * kTileWords, static_cast<const uint32_t*>(b), kNr,
       k / kGroup, first);
}

}  // namespace

const GemmKernel& gemm_bf16_amx() {
  static constexpr GemmKernel kKernel = {kMr,
                                         kNr,
                                         kGroup,
                                         kMr * 2,
                                         kNr * 2,
                                         pack_groups<2 * kTileWords, pack_group_tiles_avx512<kMr>>,
                                         pack_groups<kGroup / 2 * kNr, pack_group_pairs_avx512<kNr>>,
                                         bf16_multiply,
                                         16,
                                         machine::round_row_avx512bf16,
                                         store_f32_avx512,
                                         store_bf16_avx512,
                                         machine::amx_enter,
                                         machine::amx_leave,
                                         256,
                                         256};
  return kKernel;
}

}  // namespace ostro::kernels
