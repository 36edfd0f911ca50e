// bf16 attention on AMX tiles: one TDPBF16PS per 16 x 16 outputs and group of 32 k, which is N7 itself.
#include "ostro/kernels/attention/kernels/attention_packed_table.inc.h"
#include "ostro/kernels/attention/paged/kernels/paged_packed.inc.h"
#include "ostro/machine/vector/amx_tiles.inc.h"

namespace ostro::kernels {
namespace {

struct AmxProduct {
  static constexpr bool kNatural = true;
  static constexpr int kLeastQueries = 4;
  static constexpr int64_t kStep = 16;  // a row of A has its groups side by side
  static constexpr int kOrder[4] = {0, 1, 2, 3};
  static constexpr int first(int q) { return 2 * q; }
  static constexpr int second(int q) { return 2 * q + 1; }

  static void enter() { machine::amx_enter(); }
  static void leave() { machine::amx_leave(); }

  static void multiply(float* c, int64_t ldc, int64_t rows, const uint32_t* a, int64_t lda, const uint32_t* b,
                       int64_t ldb, int64_t groups, bool from_zero) {
    if (groups == 2) {
      multiply_two(c, ldc, rows, a, lda, b, ldb, from_zero);
      return;
    }
    for (; rows >= 32; rows -= 32, c += 32 * ldc, a += 32 * lda)
      machine::amx_multiply_32(c, ldc, a, lda, kStep, b, ldb, groups, from_zero);
    if (rows > 0) machine::amx_multiply_16(c, ldc, a, lda, kStep, b, ldb, groups, from_zero);
  }

  // Two groups: all of B stays in tiles.
  static void multiply_two(float* c, int64_t ldc, int64_t rows, const uint32_t* a, int64_t lda,
                           const uint32_t* b, int64_t ldb, bool from_zero) {
    machine::amx_before_loads();
    _tile_loadd(4, b, ldb * 4);
    _tile_loadd(5, b + 16, ldb * 4);
    _tile_loadd(6, b + 16 * ldb, ldb * 4);
    _tile_loadd(7, b + 16 * ldb + 16, ldb * 4);
    for (; rows > 0; rows -= 16, c += 16 * ldc, a += 16 * lda) {
      if (from_zero) {
        _tile_zero(0);
        _tile_zero(1);
      } else {
        _tile_loadd(0, c, ldc * 4);
        _tile_loadd(1, c + 16, ldc * 4);
      }
      _tile_loadd(2, a, lda * 4);
      _tile_dpbf16ps(0, 2, 4);
      _tile_dpbf16ps(1, 2, 5);
      _tile_loadd(3, a + 16, lda * 4);
      _tile_dpbf16ps(0, 3, 6);
      _tile_dpbf16ps(1, 3, 7);
      _tile_stored(0, c, ldc * 4);
      _tile_stored(1, c + 16, ldc * 4);
    }
  }
};

}  // namespace

const AttentionKernels& attention_amx() {
  static const AttentionKernels table = attention_packed_table<AmxProduct>();
  return table;
}

const PagedKernels& paged_amx() {
  static const PagedKernels table = paged_packed_table<AmxProduct>();
  return table;
}

}  // namespace ostro::kernels
