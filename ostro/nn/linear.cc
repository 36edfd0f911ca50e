#include "ostro/nn/linear.h"

#include <algorithm>

#include "ostro/nn/adapter_of_row.h"

namespace ostro::nn {

DType read_dtype(const Array& parameter, const Array& scales) {
  const Array& read = scales.valid() ? scales : parameter;
  return read.use_dtype().value_or(read.dtype());
}

Array read_matrix(const Array& parameter, const Array& scales, const Axes& over, Loc loc) {
  return scales.valid() ? dequantize(parameter, scales, over, kScaleGroupsAxis, loc) : parameter;
}

DType Linear::dtype() const { return read_dtype(weight, scales); }

Array cast_like(const Array& x, const Array& parameter, Loc loc) {
  return cast(x, read_dtype(parameter), loc);
}

// The tag does not round it first, and makes one `use`, by which workers gather it.
Array held_matrix(const Array& parameter, const Array& scales, const Axes& over, Loc loc) {
  return scales.valid() || !parameter.use_dtype() ? read_matrix(parameter, scales, over, loc)
                                                  : parameter.tagged(parameter.dtype());
}

Array product(const Array& x, const Array& parameter, const Array& scales, const Axes& in,
              const std::optional<IntegerProducts>& integers, const Array& layer, ProductRule rule,
              DType result, Loc loc) {
  if (!integers) return dot(x, read_matrix(parameter, scales, in, loc), in, result, rule, loc);
  return integer_product(*integers, x, held_matrix(parameter, scales, in, loc), in, layer, result, loc);
}

std::string Fused::text() const {
  std::string out = axis;
  for (const Part& p : parts) out += "," + p.name + ":" + std::to_string(p.count);
  return out;
}

namespace {

// The adapter of each row of x, whose axes are those of x but the `in`.
Array adapters_of(const Array& x, const Axes& in, Loc loc) {
  std::vector<Axis> rows;
  for (const Axis& axis : x.shape().axes)
    if (std::find(in.begin(), in.end(), axis.name) == in.end()) rows.push_back(axis);
  return broadcast_to(AdapterOfRow::current(loc), rows, loc);
}

// y + scale * (x a) b, in the dtype of y. The parts of a fused weight that have no adapter are unchanged, and
// so are rows without one.
Array adapted(const Linear& linear, const Array& x, const Array& y, Loc loc) {
  const bool several = linear.lora[0].a.shape().has(kAdaptersAxis);
  if (several && !AdapterOfRow::current(loc).valid()) return y;
  const Array chosen = several ? adapters_of(x, linear.in, loc) : Array();
  const auto times = [&](const Array& rows, const Array& factor, const Axes& over, DType dtype) {
    return several ? expert_dot(rows, factor, kAdaptersAxis, chosen, over, dtype, linear.rule, loc)
                   : dot(rows, factor, over, dtype, linear.rule, loc);
  };
  const auto added = [&](const Array& part, const LowRank& p) {
    const Array low = times(x, p.a, linear.in, x.dtype());
    const Array z = cast(times(low, p.b, {kRankAxis}, y.dtype()), DType::f32, loc);
    const Array more = Operand(z, loc) * Operand(p.scale, loc);
    const Array sum = cast(Operand(cast(part, DType::f32, loc), loc) + Operand(more, loc), y.dtype(), loc);
    return several ? select(Operand(chosen, loc) >= Operand(0, loc), sum, part) : sum;
  };
  if (linear.fused.axis.empty()) return added(y, linear.lora[0]);
  std::vector<int64_t> counts;
  for (const Fused::Part& part : linear.fused.parts) counts.push_back(part.count);
  std::vector<Array> parts = split(y, linear.fused.axis, counts, loc);
  for (size_t i = 0; i < parts.size(); ++i)
    for (const LowRank& p : linear.lora)
      if (p.name == linear.fused.parts[i].name) parts[i] = added(parts[i], p);
  return concat(parts, linear.fused.axis, loc);
}

}  // namespace

Array Linear::to(DType result, const Array& x, Loc loc) const {
  const Array input = cast(x, dtype(), loc);
  Array y = product(input, weight, scales, in, integers, layer, rule, result, loc);
  if (!lora.empty()) y = adapted(*this, input, y, loc);
  if (!bias.valid()) return y;
  return cast(Operand(y, loc) + Operand(bias, loc), result, loc);
}

}  // namespace ostro::nn
