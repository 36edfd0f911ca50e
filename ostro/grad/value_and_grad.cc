#include "ostro/grad/value_and_grad.h"

#include <fmt/format.h>

#include "ostro/ir/text/canonical_order.h"
#include "ostro/trace/frame.h"

namespace ostro::grad_internal {

Arrays trace_value_and_grad(const Arrays& args, size_t n_wrt, const std::function<Arrays(const Arrays&)>& f,
                            Loc loc) {
  Frame* outer = Frame::current();
  if (outer == nullptr) trace_fail("value_and_grad: call it inside a function given to jit", loc);
  ir::Block block;
  Arrays captures;
  {
    Frame frame;
    Arrays params;
    for (const Array& a : args) params.push_back(frame.add_param(a.shape(), a.use_dtype()));
    frame.set_results(f(params));
    captures = frame.captures();
    block = std::move(frame.block());
  }
  // Before differentiation: the order of the ops decides the order in which cotangents are added.
  ir::canonical_order(block);
  std::vector<int64_t> wrt;
  for (size_t i = 0; i < n_wrt; ++i) wrt.push_back(static_cast<int64_t>(i));
  auto both = value_and_grad_block(block, wrt);
  if (!both.ok()) trace_fail(fmt::format("value_and_grad: {}", both.error().message()), loc);
  std::vector<ir::ValueId> operands;
  for (const Array& a : args) operands.push_back(outer->read_raw(a));
  for (const Array& a : captures) operands.push_back(outer->read_raw(a));
  Arrays out;
  for (ir::ValueId v : ir::inline_block(outer->builder(), *both, operands)) out.push_back(outer->wrap(v));
  return out;
}

}  // namespace ostro::grad_internal
