// Control flow in programs: loops over stacked values, conditionals, functions with their own derivative.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ostro/trace/ops.h"
#include "ostro/trace/tree.h"

namespace ostro {

using Arrays = std::vector<Array>;

// The untyped loop: carries go round, xs lose their leading `axis`, ys gain it in front. Values of the
// enclosing function may be used in the body. Stays a loop in the program.
std::pair<Arrays, Arrays> scan_arrays(
    const std::string& axis, const Arrays& init, const Arrays& xs, int64_t length,
    const std::function<std::pair<Arrays, Arrays>(const Arrays&, const Arrays&)>& body, bool reverse = false,
    Loc loc = Loc::current());
Arrays cond_arrays(const Array& pred, const std::function<Arrays()>& then,
                   const std::function<Arrays()>& otherwise, Loc loc = Loc::current());
// f with its own derivative: forward(args) -> (results, residuals), backward(residuals, cotangents) ->
// cotangents of args.
Arrays custom_vjp_arrays(const std::function<Arrays(const Arrays&)>& f,
                         const std::function<std::pair<Arrays, Arrays>(const Arrays&)>& forward,
                         const std::function<Arrays(const Arrays&, const Arrays&)>& backward,
                         const Arrays& args, Loc loc = Loc::current());

// The common length of leaves along axis; TraceError when there is nothing to go along.
int64_t scan_length(const Arrays& xs, const std::string& axis, Loc loc);

// carry = f(carry, x_i) for every slice of the tree xs along its leading axis, in order.
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

// (carry, y_i) = f(carry, x_i); returns the last carry and the ys stacked along axis, as a list of arrays.
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
