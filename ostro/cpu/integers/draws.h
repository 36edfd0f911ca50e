// Draws, draws_in_whole, quantize_row: what the routines of integer products (docs/spec/numerics.md, N20)
// share: the numbers of dithered elements, and the definition for layouts that no kernel takes. Pure
// functions of checked operands; there are no errors.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "ostro/cpu/routines/op_call.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/threefry.h"
#include "ostro/products/int8_reference.h"

namespace ostro::cpu {

// Where the elements of a value are in the whole array: element k of a row has the index row_at + k_at[k].
// Without draws (`any`) both are empty.
struct Draws {
  bool any = false;
  numerics::Key key;
  std::vector<int64_t> row_at, k_at;
};

// The draws of a value of shape x, of whose whole array `sizes` are the sizes and `origins` the indices where
// x begins. `rows` and `over` are x's axes.
Draws draws_in_whole(const ir::Shape& x, const Array& key, std::span<const Array> origins,
                     const std::vector<int64_t>& sizes, const std::vector<ir::Axis>& rows,
                     const std::vector<ir::Axis>& over);

// Cuts one row, number k of which is x[k_at[k]], block by block, by the definition. With draws, number k has
// the index first + draw_at[k].
template <typename T>
void quantize_row(const T* x, std::span<const int64_t> k_at, int64_t block, const Draws& draws, int64_t first,
                  std::span<const int64_t> draw_at, int8_t* q, float* scales) {
  std::vector<float> values;
  std::vector<uint32_t> bits;
  for (size_t begin = 0; begin < k_at.size(); begin += static_cast<size_t>(block)) {
    values.clear(), bits.clear();
    for (size_t k = begin; k < std::min(begin + static_cast<size_t>(block), k_at.size()); ++k) {
      values.push_back(numerics::widen(x[k_at[k]]));
      if (draws.any)
        bits.push_back(kernels::reference::dither_of(draws.key, static_cast<uint64_t>(first + draw_at[k])));
    }
    const kernels::reference::QuantizedBlock made = kernels::reference::quantize_block(values, bits);
    std::copy(made.q.begin(), made.q.end(), q + begin);
    *scales++ = made.scale;
  }
}

// Does every number follow the one before?
bool is_contiguous(const std::vector<int64_t>& list);

}  // namespace ostro::cpu
