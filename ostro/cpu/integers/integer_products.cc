// quantize and dot_int8 (docs/spec/numerics.md, N20). Values whose contracted axis lies at even distances go
// to the kernels of products/; others are cut in plain loops, rows shared among the threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ostro/cpu/products/int8_dot.h"
#include "ostro/cpu/products/int8_quantize.h"
#include "ostro/cpu/routines/contraction.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/threefry.h"

namespace ostro::cpu {
namespace {

float wide_element(float x) { return x; }
float wide_element(numerics::Bf16 x) { return numerics::to_f32(x); }

// Where the elements of a value are in the whole array: element i of a row has the index row + k_at[i].
struct Draws {
  bool any = false;
  numerics::Key key;
  std::vector<int64_t> row_at, k_at;
};

Draws draws_of(const OpCall& call, const std::vector<ir::Axis>& rows, const std::vector<ir::Axis>& over) {
  Draws d;
  if (call.attrs.str("rounding") != "dithered") return d;
  d.any = true;
  const std::vector<int64_t> words = offsets_over(call.in[1].shape().axes, *call.in[1].view);
  const auto* const key = call.in[1].as<uint32_t>();
  d.key = {key[words[0]], key[words[1]]};
  const ir::Shape& x = call.in[0].shape();
  const std::vector<int64_t>& sizes = call.attrs.ints("global_sizes");
  compile::View whole;
  whole.shape = x;
  whole.strides.resize(x.axes.size());
  int64_t stride = 1, first = 0;
  for (size_t i = x.axes.size(); i-- > 0;) {
    whole.strides[i] = stride;
    first += integer_of(call.in[i + 2]) * stride;
    stride *= sizes[i];
  }
  d.row_at = offsets_over(rows, whole);
  for (int64_t& at : d.row_at) at += first;
  d.k_at = offsets_over(over, whole);
  return d;
}

// The exponent of a block's scale is `power`; its numbers are x * 2^-power.
struct ScaleBits {
  float scale = 0;
  int power = 0;
  bool zero = true;  // all numbers are
};

// `largest`: the bits of the block's largest |x|.
ScaleBits scale_bits_of(uint32_t largest) {
  constexpr uint32_t kInfinity = 0x7f800000u, kMost = 127u << 17;  // the mantissa of 127 / 64
  if (largest >= kInfinity) return {std::numeric_limits<float>::quiet_NaN(), 0, true};
  if (largest < 0x00800000u) return {};
  int e = static_cast<int>(largest >> 23) - 127;
  if (e < -120)
    e = -120;
  else if ((largest & 0x007fffffu) > (kMost & 0x007fffffu))
    ++e;
  return {std::bit_cast<float>(static_cast<uint32_t>(e - 6 + 127) << 23), e - 6, false};
}

// The 16 bits of the element with this index of the whole array: a quarter of a block of threefry.
uint32_t bits_of_draw(const numerics::Key& key, uint64_t index) {
  const uint64_t number = index >> 2;
  const numerics::Key block =
      numerics::threefry2x32(key, static_cast<uint32_t>(number >> 32), static_cast<uint32_t>(number));
  const uint64_t quarters = uint64_t{block.word1} << 32 | block.word0;
  return static_cast<uint32_t>(quarters >> 16 * (index & 3)) & 0xffffu;
}

template <typename T>
void quantize_row(const T* x, const int64_t* k_at, int64_t size, int64_t block, const Draws& draws,
                  int64_t first, int8_t* q, float* scales) {
  for (int64_t begin = 0; begin < size; begin += block) {
    const int64_t end = std::min(begin + block, size);
    uint32_t largest = 0;
    for (int64_t k = begin; k < end; ++k)
      largest = std::max(largest, std::bit_cast<uint32_t>(wide_element(x[k_at[k]])) & 0x7fffffffu);
    const ScaleBits cut = scale_bits_of(largest);
    *scales++ = cut.scale;
    if (cut.zero) {
      std::fill(q + begin, q + end, int8_t{0});
      continue;
    }
    const float up = std::bit_cast<float>(static_cast<uint32_t>(127 - cut.power) << 23);
    for (int64_t k = begin; k < end; ++k) {
      const float t = wide_element(x[k_at[k]]) * up;
      if (!draws.any) {
        q[k] = static_cast<int8_t>(std::nearbyint(t));
        continue;
      }
      const uint32_t bits =
          bits_of_draw(draws.key, static_cast<uint64_t>(first + draws.k_at[static_cast<size_t>(k)]));
      const float u = static_cast<float>(bits * 2 + 1) * 0x1p-17f;
      q[k] = static_cast<int8_t>(std::floor(t + u));
    }
  }
}

bool is_contiguous(const std::vector<int64_t>& list) {
  for (size_t i = 1; i < list.size(); ++i)
    if (list[i] != list[i - 1] + 1) return false;
  return true;
}

// Runs the kernels if x is a matrix of which one side, and the draws along it, lie together. Otherwise
// returns false. The lists of places begin with 0, those of draws with the first index of a row.
bool quantize_matrix(const OpCall& call, const std::vector<int64_t>& row_at, const std::vector<int64_t>& k_at,
                     const Draws& draws) {
  const auto rows = static_cast<int64_t>(row_at.size()), size = static_cast<int64_t>(k_at.size());
  const Int8Blocks blocks(size, call.attrs.i64("block"));
  const Int8Output out{call.out[0].as<int8_t>(), size, call.out[1].as<float>(), blocks.count()};
  const GemmType type = call.in[0].dtype() == ir::DType::bf16 ? GemmType::kBf16 : GemmType::kF32;
  Int8Dither dither{draws.key};
  const Int8Dither* dithered = draws.any ? &dither : nullptr;
  if (is_contiguous(k_at) && is_contiguous(draws.k_at)) {
    dither.first = draws.row_at.data();
    quantize_rows(call.pool, call.isa, {call.in[0].data, type, rows, size, 0, dithered, row_at.data()},
                  blocks, out);
    return true;
  }
  if (is_contiguous(row_at) && is_contiguous(draws.row_at)) {
    std::vector<int64_t> first = draws.k_at;
    for (int64_t& f : first) f += draws.row_at[0];
    dither.first = first.data();
    quantize_columns(call.pool, call.isa, {call.in[0].data, type, size, rows, 0, dithered, k_at.data()},
                     blocks, out);
    return true;
  }
  return false;
}

template <typename T>
void quantize_rows_of(const OpCall& call) {
  const Array& x = call.in[0];
  const auto& names = call.attrs.strs("over");
  std::vector<ir::Axis> rows, over;
  for (const ir::Axis& a : x.shape().axes)
    if (std::find(names.begin(), names.end(), a.name) == names.end()) rows.push_back(a);
  for (const std::string& name : names) over.push_back({name, x.shape().size_of(name)});
  const std::vector<int64_t> row_at = offsets_over(rows, *x.view), k_at = offsets_over(over, *x.view);
  const Draws draws = draws_of(call, rows, over);
  const auto size = static_cast<int64_t>(k_at.size());
  const int64_t block = call.attrs.i64("block"), blocks = (size + block - 1) / block;
  if (size == 0 || row_at.empty() || quantize_matrix(call, row_at, k_at, draws)) return;
  call.pool.parallel_for(static_cast<int64_t>(row_at.size()), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const auto at = static_cast<size_t>(r);
      quantize_row(x.as<T>() + row_at[at], k_at.data(), size, block, draws, draws.any ? draws.row_at[at] : 0,
                   call.out[0].as<int8_t>() + r * size, call.out[1].as<float>() + r * blocks);
    }
  });
}

}  // namespace

Status run_quantize(const OpCall& call) {
  if (call.in[0].dtype() == ir::DType::bf16)
    quantize_rows_of<numerics::Bf16>(call);
  else
    quantize_rows_of<float>(call);
  return Status();
}

Status run_dot_int8(const OpCall& call) {
  const Array& out = call.out[0];
  if (out.count() == 0) return Status();
  int64_t size = 1, columns = 1;
  for (const std::string& name : call.attrs.strs("over")) size *= call.in[0].shape().size_of(name);
  for (const ir::Axis& a : call.in[2].shape().axes)
    if (out.shape().has(a.name)) columns *= a.size;
  Int8DotSpec spec{out.count() / columns, columns, Int8Blocks(size, call.attrs.i64("block"))};
  spec.out = out.dtype() == ir::DType::bf16 ? GemmType::kBf16 : GemmType::kF32;
  const int64_t blocks = spec.blocks.count();
  const auto operand = [&](size_t i) {
    return Int8Operand{call.in[i].as<int8_t>(), size, call.in[i + 1].as<float>(), blocks};
  };
  Int8Dot(std::move(spec), call.isa).run(call.pool, operand(0), operand(2), out.data);
  return Status();
}

}  // namespace ostro::cpu
