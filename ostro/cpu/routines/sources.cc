// Values from attributes, indices and keys alone (docs/spec/numerics.md, N12).
#include "ostro/cpu/routines/op_call.h"
#include "ostro/numerics/threefry.h"

namespace ostro::cpu {
namespace {

template <typename T, typename Draw>
void fill(const OpCall& call, Draw draw) {
  const ir::Shape& shape = call.out[0].shape();
  const std::vector<int64_t>& global_sizes = call.attrs.ints("global_sizes");
  const numerics::Key key{call.in[0].as<uint32_t>()[0], call.in[0].as<uint32_t>()[1]};
  std::vector<int64_t> strides(shape.axes.size());
  int64_t stride = 1, first = 0;
  for (size_t i = strides.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= global_sizes[i];
    first += integer_of(call.in[i + 1]) * strides[i];
  }
  T* out = call.out[0].as<T>();
  call.pool.parallel_for(
      shape.count(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          int64_t rest = i, position = first;
          for (size_t k = strides.size(); k-- > 0;) {
            position += rest % shape.axes[k].size * strides[k];
            rest /= shape.axes[k].size;
          }
          out[i] = draw(numerics::random_bits(key, static_cast<uint64_t>(position)));
        }
      },
      4096);
}

}  // namespace

Status run_iota(const OpCall& call) {
  const int64_t origin = integer_of(call.in[0]);
  for (int64_t i = 0; i < call.out[0].count(); ++i)
    call.out[0].as<int32_t>()[i] = static_cast<int32_t>(origin + i);
  return Status();
}

Status run_random(const OpCall& call) {
  const std::string& kind = call.attrs.str("kind");
  if (kind == "bits")
    fill<uint32_t>(call, [](uint32_t bits) { return bits; });
  else if (kind == "uniform")
    fill<float>(call, numerics::uniform_from_bits);
  else if (kind == "normal")
    fill<float>(call, numerics::normal_from_bits);
  else if (kind == "trunc_normal")
    fill<float>(call, numerics::truncated_normal_from_bits);
  else
    return invalid_argument(
        fmt::format("random: kind \"{}\"; use bits, uniform, normal or trunc_normal", kind));
  return Status();
}

Status run_fold_in(const OpCall& call) {
  const uint32_t* words = call.in[0].as<uint32_t>();
  const numerics::Key key =
      numerics::fold_in(numerics::Key{words[0], words[1]}, static_cast<uint32_t>(integer_of(call.in[1])));
  call.out[0].as<uint32_t>()[0] = key.word0;
  call.out[0].as<uint32_t>()[1] = key.word1;
  return Status();
}

}  // namespace ostro::cpu
