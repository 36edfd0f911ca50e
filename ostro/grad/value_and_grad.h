// value_and_grad: derivatives of functions of trees. Errors are thrown as TraceError.
#pragma once

#include <utility>

#include "ostro/grad/differentiate.h"
#include "ostro/trace/control.h"
#include "ostro/trace/jit.h"

namespace ostro {

namespace grad_internal {
// Traces f on the leaves and differentiates result 0 with respect to the first n_wrt of them. Emits the
// forward and the backward ops into the current frame. Returns f's results, then the gradients.
Arrays trace_value_and_grad(const Arrays& args, size_t n_wrt, const std::function<Arrays(const Arrays&)>& f,
                            Loc loc);
}  // namespace grad_internal

// value_and_grad(f)(model, rest...) returns (f(model, rest...), gradients as a tree like model). The first
// leaf of f's result is the scalar that is differentiated; further leaves are returned unchanged. Call it
// inside a trace.
template <typename F>
auto value_and_grad(F f, Loc loc = Loc::current()) {
  auto traced = [f, loc](const auto& model, const auto&... rest) {
    using Model = std::remove_cvref_t<decltype(model)>;
    using R = std::invoke_result_t<const F&, const Model&, const std::remove_cvref_t<decltype(rest)>&...>;
    Arrays args = tree_leaves(model);
    const size_t n_wrt = args.size();
    ((args =
          [&](Arrays a) {
            const Arrays more = tree_leaves(rest);
            a.insert(a.end(), more.begin(), more.end());
            return a;
          }(std::move(args))),
     ...);
    std::optional<R> like;
    const Arrays out = grad_internal::trace_value_and_grad(
        args, n_wrt,
        [&](const Arrays& p) {
          size_t next = 0;
          const Model m = tree_with_leaves(model, p, &next);
          std::tuple<std::remove_cvref_t<decltype(rest)>...> others{tree_with_leaves(rest, p, &next)...};
          like = std::apply([&](const auto&... r) { return R(f(m, r...)); }, others);
          return tree_leaves(*like);
        },
        loc);
    size_t next = 0;
    R value = tree_with_leaves(*like, out, &next);
    return std::pair<R, Model>(std::move(value), tree_with_leaves(model, out, &next));
  };
  return traced;
}

}  // namespace ostro
