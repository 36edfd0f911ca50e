#include "ostro/cpu/routines/parts.h"

#include <algorithm>
#include <cstring>

#include "ostro/cpu/routines/order.h"
#include "ostro/numerics/tree.h"

namespace ostro::cpu {
namespace {

using ir::OpKind;

// Elements that are joined at a time: small enough for those of all workers to stay in the cache.
constexpr int64_t kBlock = 2048;

template <typename T>
void add_block(T* out, const T* a, const T* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

// The tree over slices[first] .. of a block of `n` elements at `at`. Returns where the sum is: in `out`, or
// in the slice if it is the only one. `spare` has room for a block a level of the tree.
template <typename T>
const T* tree_block(std::span<const char* const> slices, int64_t first, int64_t count, int64_t at, int64_t n,
                    T* out, T* spare) {
  if (count == 1) return reinterpret_cast<const T*>(slices[static_cast<size_t>(first)]) + at;
  const int64_t left = numerics::tree_split(count);
  const T* a = tree_block(slices, first, left, at, n, out, spare);
  const T* b = tree_block(slices, first + left, count - left, at, n, spare, spare + kBlock);
  add_block(out, a, b, n);
  return out;
}

template <typename T>
void join_tree(std::span<const char* const> slices, int64_t n, T* out, machine::ThreadPool& pool) {
  const auto count = static_cast<int64_t>(slices.size());
  size_t levels = 1;
  while ((int64_t{1} << levels) < count) ++levels;
  pool.parallel_for(
      n,
      [&](int64_t begin, int64_t end) {
        std::vector<T> spare(levels * kBlock);
        for (int64_t at = begin; at < end; at += kBlock) {
          const int64_t length = std::min(kBlock, end - at);
          const T* sum = tree_block(slices, 0, count, at, length, out + at, spare.data());
          if (sum != out + at) std::memcpy(out + at, sum, static_cast<size_t>(length) * sizeof(T));
        }
      },
      kBlock);
}

// out = f(f(slice 0, slice 1), slice 2) ...
template <typename T, typename F>
void join_in_order(std::span<const char* const> slices, int64_t n, T* out, machine::ThreadPool& pool, F f) {
  pool.parallel_for(
      n,
      [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kBlock) {
          const int64_t length = std::min(kBlock, end - at);
          std::memcpy(out + at, reinterpret_cast<const T*>(slices[0]) + at,
                      static_cast<size_t>(length) * sizeof(T));
          for (size_t s = 1; s < slices.size(); ++s) {
            const T* other = reinterpret_cast<const T*>(slices[s]) + at;
            for (int64_t i = 0; i < length; ++i) out[at + i] = f(out[at + i], other[i]);
          }
        }
      },
      kBlock);
}

// What joins two elements: all_reduce_int's sum, which wraps around, or all_reduce_max's larger one.
template <typename T>
struct SumOrMax {
  bool sums;
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;
      if (sums) return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
    }
    return larger(a, b);
  }
};

}  // namespace

void pack_parts(const char* x, const Cut& cut, int64_t size, char* packed, machine::ThreadPool& pool) {
  const int64_t row = cut.bounds.back() * cut.inner * size;
  pool.parallel_for(cut.before, [&](int64_t begin, int64_t end) {
    for (size_t c = 0; c + 1 < cut.bounds.size(); ++c) {
      const int64_t width = cut.count(c) / cut.before * size, from = cut.bounds[c] * cut.inner * size;
      for (int64_t b = begin; b < end && width > 0; ++b)
        std::memcpy(packed + cut.start(c) * size + b * width, x + b * row + from, static_cast<size_t>(width));
    }
  });
}

void place_part(const char* from, const Cut& cut, size_t part, int64_t size, char* x,
                machine::ThreadPool& pool) {
  const int64_t row = cut.bounds.back() * cut.inner * size;
  const int64_t width = cut.count(part) / cut.before * size, to = cut.bounds[part] * cut.inner * size;
  if (width == 0) return;
  pool.parallel_for(cut.before, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      std::memcpy(x + b * row + to, from + b * width, static_cast<size_t>(width));
  });
}

Status join_slices(OpKind kind, ir::DType dtype, std::span<const char* const> slices, int64_t n, char* out,
                   machine::ThreadPool& pool) {
  RETURN_IF_ERROR(compile::check_join(kind, {dtype, {{"n", n}}}));
  if (kind == OpKind::all_reduce_bits) {
    join_in_order(slices, n * ir::dtype_size(dtype), reinterpret_cast<uint8_t*>(out), pool,
                  [](uint8_t a, uint8_t b) { return static_cast<uint8_t>(a | b); });
  } else if (kind == OpKind::all_reduce_tree || kind == OpKind::reduce_scatter_tree) {
    if (dtype == ir::DType::f32)
      join_tree(slices, n, reinterpret_cast<float*>(out), pool);
    else
      join_tree(slices, n, reinterpret_cast<double*>(out), pool);
  } else {
    with_element_type(dtype, [&](auto tag) {
      using T = decltype(tag);
      join_in_order(slices, n, reinterpret_cast<T*>(out), pool, SumOrMax<T>{kind == OpKind::all_reduce_int});
    });
  }
  return Status();
}

}  // namespace ostro::cpu
