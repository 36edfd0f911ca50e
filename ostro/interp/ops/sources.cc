// Values from attributes, indices and keys alone.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/numerics/threefry.h"

namespace ostro::interp {
namespace {

uint8_t hex_digit(char c) { return static_cast<uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); }

numerics::Key key_of(const Buffer& buffer) {
  const auto words = buffer.as<uint32_t>();
  return {words[0], words[1]};
}

}  // namespace

Result<Buffers> run_constant(const Call& call) {
  if (call.op.attrs.has("data")) {
    const std::string& hex = call.op.attrs.str("data");
    Buffer out = Buffer::empty(call.out[0]);
    for (size_t i = 0; i < out.bytes().size(); ++i)
      out.mutable_bytes()[i] = static_cast<std::byte>(hex_digit(hex[2 * i]) * 16 + hex_digit(hex[2 * i + 1]));
    return Buffers{out};
  }
  const double value = call.op.attrs.f64("value");
  return with_type(call.out[0].dtype, [&]<typename T>() -> Buffers {
    return {make_buffer(call.out[0],
                        std::vector<T>(static_cast<size_t>(call.out[0].count()), static_cast<T>(value)))};
  });
}

Result<Buffers> run_iota(const Call& call) {
  const int64_t origin = integers(call.in[0])[0];
  std::vector<int32_t> index(static_cast<size_t>(call.out[0].count()));
  for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(origin + static_cast<int64_t>(i));
  return Buffers{make_buffer(call.out[0], index)};
}

Result<Buffers> run_random(const Call& call) {
  const std::string& kind = call.op.attrs.str("kind");
  const std::vector<int64_t>& global_sizes = call.op.attrs.ints("global_sizes");
  const numerics::Key key = key_of(call.in[0]);
  // The draws' positions in the whole array: its row-major strides over the axes drawn here.
  Shape whole = call.out[0];
  int64_t first = 0;
  for (size_t i = 0; i < whole.axes.size(); ++i) whole.axes[i].size = global_sizes[i];
  for (size_t i = 0; i < whole.axes.size(); ++i) first += integers(call.in[i + 1])[0] * whole.strides()[i];
  const std::vector<int64_t> position = offsets(call.out[0].axes, whole);
  std::vector<uint32_t> bits(position.size());
  for (size_t i = 0; i < bits.size(); ++i)
    bits[i] = numerics::random_bits(key, static_cast<uint64_t>(first + position[i]));
  if (kind == "bits") return Buffers{make_buffer(call.out[0], bits)};
  if (kind != "uniform" && kind != "normal" && kind != "trunc_normal")
    return invalid_argument(
        fmt::format("random: kind \"{}\"; use bits, uniform, normal or trunc_normal", kind));
  const auto draw = kind == "uniform"  ? numerics::uniform_from_bits
                    : kind == "normal" ? numerics::normal_from_bits
                                       : numerics::truncated_normal_from_bits;
  std::vector<float> values(bits.size());
  for (size_t i = 0; i < bits.size(); ++i) values[i] = draw(bits[i]);
  return Buffers{make_buffer(call.out[0], values)};
}

Result<Buffers> run_fold_in(const Call& call) {
  const auto data = static_cast<uint32_t>(integers(call.in[1])[0]);
  const numerics::Key key = numerics::fold_in(key_of(call.in[0]), data);
  return Buffers{make_buffer(call.out[0], std::vector<uint32_t>{key.word0, key.word1})};
}

}  // namespace ostro::interp
