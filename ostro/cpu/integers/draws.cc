#include "ostro/cpu/integers/draws.h"

#include "ostro/cpu/routines/contraction.h"

namespace ostro::cpu {

Draws draws_in_whole(const ir::Shape& x, const Array& key, std::span<const Array> origins,
                     const std::vector<int64_t>& sizes, const std::vector<ir::Axis>& rows,
                     const std::vector<ir::Axis>& over) {
  Draws d;
  d.any = true;
  const std::vector<int64_t> words = offsets_over(key.shape().axes, *key.view);
  d.key = {key.as<uint32_t>()[words[0]], key.as<uint32_t>()[words[1]]};
  compile::View whole;
  whole.shape = x;
  whole.strides.resize(x.axes.size());
  int64_t stride = 1, first = 0;
  for (size_t i = x.axes.size(); i-- > 0;) {
    whole.strides[i] = stride;
    first += integer_of(origins[i]) * stride;
    stride *= sizes[i];
  }
  d.row_at = offsets_over(rows, whole);
  for (int64_t& at : d.row_at) at += first;
  d.k_at = offsets_over(over, whole);
  return d;
}

bool is_contiguous(const std::vector<int64_t>& list) {
  for (size_t i = 1; i < list.size(); ++i)
    if (list[i] != list[i - 1] + 1) return false;
  return true;
}

}  // namespace ostro::cpu
