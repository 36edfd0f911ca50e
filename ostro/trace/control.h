// scan, fold, cond, custom_vjp_arrays: control flow in programs: loops over slices of arrays, conditionals,
// functions with their own derivative.
//
// The functions are called while tracing. An error throws TraceError.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/trace/ops.h"
#include "ostro/trace/tree.h"

namespace ostro {

using Arrays = std::vector<Array>;

// The untyped loop: (carries, ys) = body(carries, slices of xs), `length` times. Iteration i reads slice i of
// every xs along its leading axis `axis`; the ys of all iterations are stacked along a new leading `axis`.
// The body may use values of the enclosing function. With `reverse` the loop runs from the last slice to the
// first. It stays a loop in the program; it is not unrolled.
std::pair<Arrays, Arrays> scan_arrays(
    const std::string& axis, const Arrays& init, const Arrays& xs, int64_t length,
    const std::function<std::pair<Arrays, Arrays>(const Arrays&, const Arrays&)>& body, bool reverse = false,
    Loc loc = Loc::current());
// Returns the results of then() if the bool scalar `pred` is true when the program runs, else those of
// otherwise(). Both are traced; their results must have equal shapes.
Arrays cond_arrays(const Array& pred, const std::function<Arrays()>& then,
                   const std::function<Arrays()>& otherwise, Loc loc = Loc::current());
// Returns f(args), with a derivative that the caller defines: forward(args) -> (results, residuals),
// backward(residuals, cotangents of the results) -> cotangents of args.
Arrays custom_vjp_arrays(const std::function<Arrays(const Arrays&)>& f,
                         const std::function<std::pair<Arrays, Arrays>(const Arrays&)>& forward,
                         const std::function<Arrays(const Arrays&, const Arrays&)>& backward,
                         const Arrays& args, Loc loc = Loc::current());

// Returns the size of `axis` in the first leaf; TraceError when there are no leaves, or when the first has no
// such axis.
int64_t scan_length(const Arrays& xs, const std::string& axis, Loc loc);

// Returns the last carry of carry = f(carry, x_i), over the slices of the tree xs along its leading axis, in
// order.
template <typename Carry, typename Xs, typename F>
Carry fold(const std::string& axis, F&& f, const Carry& init, const Xs& xs, Loc loc = Loc::current()) {
  const Arrays leaves = tree_leaves(xs);
  const int64_t length = scan_length(leaves, axis, loc);
  auto body = [&](const Arrays& c, const Arrays& x) {
    return std::pair<Arrays, Arrays>(
        tree_leaves(Carry(f(tree_with_leaves(init, c), tree_with_leaves(xs, x)))), {});
  };
  return tree_with_leaves(init, scan_arrays(axis, tree_leaves(init), leaves, length, body, false, loc).first);
}

// As fold(), with (carry, y_i) = f(carry, x_i); returns the last carry and the tree of the ys stacked along
// `axis`.
template <typename Carry, typename Xs, typename F>
auto scan(const std::string& axis, F&& f, const Carry& init, const Xs& xs, Loc loc = Loc::current()) {
  using Y = typename std::invoke_result_t<F, Carry, Xs>::second_type;
  const Arrays leaves = tree_leaves(xs);
  const int64_t length = scan_length(leaves, axis, loc);
  std::optional<Y> shape_of_y;
  auto body = [&](const Arrays& c, const Arrays& x) {
    auto [carry, y] = f(tree_with_leaves(init, c), tree_with_leaves(xs, x));
    shape_of_y = y;
    return std::pair<Arrays, Arrays>(tree_leaves(carry), tree_leaves(y));
  };
  auto [carry, ys] = scan_arrays(axis, tree_leaves(init), leaves, length, body, false, loc);
  return std::pair<Carry, Y>(tree_with_leaves(init, carry), tree_with_leaves(*shape_of_y, ys));
}

// cond_arrays() for trees.
template <typename T>
T cond(const Array& pred, const std::function<T()>& then, const std::function<T()>& otherwise,
       Loc loc = Loc::current()) {
  std::optional<T> like;
  auto arrays = [&](const std::function<T()>& f) {
    return [&] {
      like = f();
      return tree_leaves(*like);
    };
  };
  const Arrays out = cond_arrays(pred, arrays(then), arrays(otherwise), loc);
  return tree_with_leaves(*like, out);
}

}  // namespace ostro
