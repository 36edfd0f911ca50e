#include "ostro/nn/integer_products.h"

#include <algorithm>

#include "ostro/trace/control.h"
#include "ostro/trace/frame.h"

namespace ostro::nn {
namespace {

const char* const kBatchAxis = "batch";

Axes without(const Array& x, const Axes& names) {
  Axes out;
  for (const Axis& a : x.shape().axes)
    if (std::find(names.begin(), names.end(), a.name) == names.end()) out.push_back(a.name);
  return out;
}

// x with the examples first: so a draw's number does not depend on how many examples a leaf has.
Array by_example(const Array& x, Loc loc) {
  Axes order = x.shape().names();
  const auto batch = std::find(order.begin(), order.end(), kBatchAxis);
  if (batch == order.end() || batch == order.begin()) return x;
  std::rotate(order.begin(), batch, batch + 1);
  return transpose(x, order, loc);
}

// The key of one matrix, and the number of the first example; rows of no example start at 0.
Draws draws_of(const IntegerProducts& products, const Array& rows, const Array& layer, Loc loc) {
  return {layer.valid() ? fold_in(products.key, layer, loc) : products.key,
          rows.has(kBatchAxis) ? products.first : full(0, DType::i64, {}, loc)};
}

}  // namespace

// The derivative: with y = x w, dx = dy w over the outputs and dw = x dy over the rows of x, each operand
// quantised anew along the axis that the product contracts. Both forms of dy have the same draws.
Array integer_product(const IntegerProducts& products, const Array& x, const Array& w, const Axes& in,
                      const Array& layer, DType result, Loc loc) {
  const int64_t block = products.block;
  const auto forward = [&](const Array& rows, const Array& matrix) {
    return dot_int8(quantize(rows, in, block, loc), quantize(matrix, in, block, loc), in, block, result, loc);
  };
  if (!products.key.valid()) return forward(x, w);
  Scope scope("int8");
  const auto [key, first] = draws_of(products, x, layer, loc);
  const Axes rows = without(x, in), out = without(w, in);
  return custom_vjp_arrays([&](const Arrays& a) { return Arrays{forward(a[0], a[1])}; },
                           [&](const Arrays& a) { return std::pair(Arrays{forward(a[0], a[1])}, a); },
                           [&](const Arrays& saved, const Arrays& cotangents) {
                             const Array dy = by_example(cast(cotangents[0], x.dtype(), loc), loc);
                             const auto dithered = [&](const Axes& over) {
                               return quantize_dithered(dy, over, block, saved[2], saved[3], loc);
                             };
                             const Array dx = dot_int8(dithered(out), quantize(saved[1], out, block, loc),
                                                       out, block, DType::f32, loc);
                             const Array dw = dot_int8(quantize(saved[0], rows, block, loc), dithered(rows),
                                                       rows, block, DType::f32, loc);
                             return Arrays{transpose(dx, saved[0].shape().names(), loc),
                                           transpose(dw, saved[1].shape().names(), loc), saved[2], saved[3]};
                           },
                           {x, w, key, first}, loc)[0];
}

// As above for each expert: dw by outer products of its rows, in their order. Draws are numbered by token and
// slot, so they depend on no place among an expert's rows. A row that several slots read gets the sum over
// these.
Array expert_integer_product(const IntegerProducts& products, const Array& x, const Array& w,
                             const std::string& axis, const Array& expert, const Axes& in, const Array& layer,
                             DType result, Loc loc) {
  const int64_t block = products.block;
  const auto multiply = [&](const Quantized& rows, const Array& matrix, const Array& chosen, const Axes& over,
                            DType type) {
    return expert_dot_int8(rows, quantize(matrix, over, block, loc), axis, chosen, over, block, type, loc);
  };
  const auto forward = [&](const Array& rows, const Array& matrix, const Array& chosen) {
    return multiply(quantize(rows, in, block, loc), matrix, chosen, in, result);
  };
  if (!products.key.valid()) return forward(x, w, expert);
  Scope scope("int8");
  const auto [key, first] = draws_of(products, expert, layer, loc);
  Axes out = without(w, in);
  std::erase(out, axis);
  Axes shared;  // axes of the rows that x lacks
  for (const std::string& name : expert.shape().names())
    if (!x.has(name)) shared.push_back(name);
  const Axis experts{axis, w.size(axis)};
  return custom_vjp_arrays(
      [&](const Arrays& a) { return Arrays{forward(a[0], a[1], a[2])}; },
      [&](const Arrays& a) { return std::pair(Arrays{forward(a[0], a[1], a[2])}, a); },
      [&](const Arrays& saved, const Arrays& cotangents) {
        const Array dy = by_example(cast(cotangents[0], DType::bf16, loc), loc);
        Array dx = multiply(quantize_dithered(dy, out, block, saved[3], saved[4], loc), saved[1], saved[2],
                            out, DType::f32);
        if (!shared.empty()) dx = sum(dx, shared, Order::kSerial, DType::f32, loc);
        const Array dw = expert_outer_int8(saved[0], dy, experts, saved[2], block, saved[3], saved[4], loc);
        return Arrays{transpose(dx, saved[0].shape().names(), loc),
                      transpose(dw, saved[1].shape().names(), loc), saved[2], saved[3], saved[4]};
      },
      {x, w, expert, key, first}, loc)[0];
}

}  // namespace ostro::nn
