// cast and use (numerics.md N1): the conversion of values to another type.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/numerics/casts.h"

namespace ostro::interp {
namespace {

// One rounding at most; integers wrap. bool has elements of type uint8_t and is handled by the callers.
template <typename To, typename From>
To convert(From x) {
  if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>)
    return numerics::float_to_int<To>(x);
  else
    return static_cast<To>(x);
}

}  // namespace

Result<Buffers> run_cast(const Call& call) {
  const DType from = call.shape(0).dtype, to = call.out[0].dtype;
  if (from == to) return Buffers{call.in[0]};
  return with_type(from, [&]<typename From>() -> Buffers {
    const std::vector<From> x = elements<From>(call.in[0]);
    return with_type(to, [&]<typename To>() -> Buffers {
      std::vector<To> y(x.size());
      for (size_t i = 0; i < x.size(); ++i)
        y[i] = to == DType::boolean ? static_cast<To>(x[i] != From{0}) : convert<To>(x[i]);
      return {make_buffer(call.out[0], y)};
    });
  });
}

}  // namespace ostro::interp
