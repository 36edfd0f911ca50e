// Shape rules of ops with regions.
#include <fmt/format.h>

#include <algorithm>

#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {

Shapes regions(const Op& op, In in) {
  auto matches = [&](const Block& b, std::span<const Shape> args, const char* what) -> Status {
    if (b.params.size() != args.size())
      return fail(op, fmt::format("{} takes {} values, {} given", what, b.params.size(), args.size()));
    for (size_t i = 0; i < args.size(); ++i)
      if (b.shape(b.params[i]) != args[i])
        return fail(op, fmt::format("{}: parameter {} is {}, given {}", what, i, b.shape(b.params[i]).str(),
                                    args[i].str()));
    return Status();
  };
  auto results_of = [](const Block& b) {
    std::vector<Shape> s;
    for (ValueId v : b.results) s.push_back(b.shape(v));
    return s;
  };
  if (op.kind == OpKind::scan) {
    if (op.regions.size() != 1) return fail(op, "has one region");
    const Block& body = op.regions[0];
    const auto& axis = op.attrs.str("axis");
    const int64_t length = op.attrs.i64("length"), given_consts = op.attrs.i64("consts"),
                  given_carries = op.attrs.i64("carries"), operands = static_cast<int64_t>(in.size());
    if (given_consts < 0 || given_consts > operands || given_carries < 0 ||
        given_carries > operands - given_consts || length < 0)
      return fail(op, fmt::format("{} consts, {} carries and length {} for {} operands", given_consts,
                                  given_carries, length, operands));
    const auto consts = static_cast<size_t>(given_consts), carries = static_cast<size_t>(given_carries);
    std::vector<Shape> args(in.begin(), in.end());
    for (size_t i = consts + carries; i < in.size(); ++i) {
      if (in[i].axes.empty() || in[i].axes[0].name != axis || in[i].axes[0].size != length)
        return fail(op, fmt::format("{} is scanned over \"{}\" of {}: that axis must be its first",
                                    in[i].str(), axis, length));
      args[i] = in[i].without(axis);
    }
    RETURN_IF_ERROR(matches(body, args, "body"));
    std::vector<Shape> out = results_of(body);
    if (out.size() < carries) return fail(op, "body returns fewer values than carries");
    for (size_t i = 0; i < carries; ++i)
      if (out[i] != args[consts + i])
        return fail(op, fmt::format("carry {} goes in as {} and comes out as {}", i, args[consts + i].str(),
                                    out[i].str()));
    for (size_t i = carries; i < out.size(); ++i) out[i].axes.insert(out[i].axes.begin(), Axis{axis, length});
    return out;
  }
  if (op.kind == OpKind::cond) {
    if (op.regions.size() != 2) return fail(op, "has two regions");
    if (in.empty()) return fail(op, "needs a predicate");
    if (in[0] != scalar(DType::boolean))
      return fail(op, fmt::format("predicate is {}, not a bool scalar", in[0].str()));
    for (const Block& b : op.regions) RETURN_IF_ERROR(matches(b, in.subspan(1), "branch"));
    if (results_of(op.regions[0]) != results_of(op.regions[1]))
      return fail(op, "branches return different shapes");
    return results_of(op.regions[0]);
  }
  if (op.regions.size() != 3) return fail(op, "has three regions");
  RETURN_IF_ERROR(matches(op.regions[0], in, "function"));
  RETURN_IF_ERROR(matches(op.regions[1], in, "forward"));
  const auto out = results_of(op.regions[0]);
  const auto forward = results_of(op.regions[1]);
  if (forward.size() < out.size() || !std::equal(out.begin(), out.end(), forward.begin()))
    return fail(op, "forward does not return the function's results first");
  return out;
}

}  // namespace ostro::ir::rules
