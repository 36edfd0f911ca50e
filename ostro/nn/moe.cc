#include "ostro/nn/moe.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ostro/nn/moe_experts.h"
#include "ostro/nn/read_in_f32.h"
#include "ostro/trace/frame.h"

namespace ostro::nn {
namespace {

const char* const kExpertsAxis = "experts";
const char* const kSlotAxis = "slot";

void check_routing(const MoeRouting& r, int64_t experts, Loc loc) {
  if (r.groups < 1 || experts % r.groups != 0)
    trace_fail(fmt::format("moe: {} experts cannot be cut into {} groups of equal size", experts, r.groups),
               loc);
  if (r.top_groups < 1 || r.top_groups > r.groups)
    trace_fail(fmt::format("moe: top_groups is {}, with {} groups", r.top_groups, r.groups), loc);
  if (r.best_two && experts / r.groups < 2)
    trace_fail(
        fmt::format("moe: {} experts in {} groups: the best two of a group need two", experts, r.groups),
        loc);
  const int64_t reachable = experts / r.groups * r.top_groups;
  if (r.top_k < 1 || r.top_k > reachable)
    trace_fail(
        fmt::format("moe: top_k is {}, but a token can reach {} of {} experts", r.top_k, reachable, experts),
        loc);
}

// The ranking, with -inf for experts of groups that were not chosen. A group is chosen if its index is among
// the top_groups best scores; `allowed` finds this by comparing every index with the chosen ones.
Array within_groups(const Array& ranking, const MoeRouting& r, Loc loc) {
  const int64_t experts = ranking.size(kExpertsAxis);
  const Axis groups{"expert_group", r.groups};
  const Array grouped = split_axis(ranking, kExpertsAxis, {groups, {"member", experts / r.groups}}, loc);
  const Array score =
      r.best_two ? sum(top_k(grouped, "member", 2, loc).first, {"member"}, Order::kSerial, DType::f32, loc)
                 : max(grouped, {"member"}, loc);
  const Array best = rename(top_k(score, groups.name, r.top_groups, loc).second, groups.name, "best", loc);
  const Array allowed =
      max(cast(Operand(best, loc) == Operand(iota(groups, loc), loc), DType::i32, loc), {"best"}, loc);
  const Array limited = select(Operand(allowed, loc) > Operand(0, loc), grouped, Operand(-INFINITY, loc));
  Axes order = ranking.shape().names();
  const auto at = std::find(order.begin(), order.end(), kExpertsAxis);
  *at = groups.name;
  order.insert(at + 1, "member");
  return merge_axes(transpose(limited, order, loc), {groups.name, "member"}, kExpertsAxis, loc);
}

Array gated(const Array& gate_up, const Activate& activate, Loc loc) {
  const auto [gate, up] = unstack<2>(gate_up, "gate_up", loc);
  return Operand(activate(gate), loc) * Operand(up, loc);
}

// f32 rows by the experts' bf16 matrices, in f32. A value is the sum of three bf16 parts, so that the stored
// matrix is read directly. The derivative of the rows is that of the first part's.
Array wide_dot(const Array& rows, const Array& w, const Array& expert, Loc loc) {
  const Array first = cast(rows, DType::bf16, loc);
  const Array rest = stop_gradient(Operand(rows, loc) - Operand(first, loc), loc);
  const Array second = cast(rest, DType::bf16, loc);
  const Array third = cast(Operand(rest, loc) - Operand(second, loc), DType::bf16, loc);
  const Array parts = stack({third, second, first}, "part", 0, loc);
  const Array of_parts = broadcast(expert, {{"part", 3}}, loc);
  return sum(expert_dot(parts, w, kExpertsAxis, of_parts, {"mlp"}, DType::f32, loc), {"part"}, Order::kSerial,
             DType::f32, loc);
}

Array up_product(const Moe& moe, const Array& x, const Array& expert, DType dtype, Loc loc) {
  if (moe.integers)
    return expert_integer_product(moe.integers->gate_up, x,
                                  held_matrix(moe.gate_up, moe.gate_up_scales, {"embed"}, loc), kExpertsAxis,
                                  expert, {"embed"}, moe.layer, dtype, loc);
  return expert_dot(x, read_matrix(moe.gate_up, moe.gate_up_scales, {"embed"}, loc), kExpertsAxis, expert,
                    {"embed"}, dtype, moe.rule, loc);
}

// The experts' inner values, f32, times `down`. With `wide` they are not rounded, and the result is f32.
Array down_product(const Moe& moe, const Array& hidden, const Array& expert, DType dtype, Loc loc) {
  if ((moe.integers || moe.rule != ProductRule::kN7) && moe.wide)
    trace_fail(
        "moe: inner values that are not rounded (wide) have no integer products, nor those of the rule of "
        "tensor cores; compute in bf16",
        loc);
  const Array rows = moe.wide ? hidden : cast(hidden, read_dtype(moe.down, moe.down_scales), loc);
  if (moe.integers)
    return expert_integer_product(moe.integers->down, rows,
                                  held_matrix(moe.down, moe.down_scales, {"mlp"}, loc), kExpertsAxis, expert,
                                  {"mlp"}, moe.layer, dtype, loc);
  const Array down = read_matrix(moe.down, moe.down_scales, {"mlp"}, loc);
  return moe.wide ? wide_dot(rows, down, expert, loc)
                  : expert_dot(rows, down, kExpertsAxis, expert, {"mlp"}, dtype, moe.rule, loc);
}

}  // namespace

Array softmax(const Array& x, const std::string& axis, Loc loc) {
  const Array shift = stop_gradient(max(x, {axis}, loc), loc);
  const Array e = exp(Operand(x, loc) - Operand(shift, loc), loc);
  return Operand(e, loc) / Operand(sum(e, {axis}, Order::kStriped, DType::f32, loc), loc);
}

// Without bias and groups the gates are the values of top_k itself. With them the choice is made by another
// ranking, without a derivative, and the gates are gathered from the unchanged scores.
Routed MoeRouter::operator()(const Array& x, Loc loc) const {
  Scope scope("router");
  check_routing(routing, weight.size(kExpertsAxis), loc);
  Routed r;
  r.logits = dot(cast(x, DType::f32, loc), read_in_f32(weight), "embed", DType::f32, loc);
  r.scores = routing.sigmoid ? sigmoid(r.logits, loc) : softmax(r.logits, kExpertsAxis, loc);
  const Array& weighing = routing.softmax_chosen ? r.logits : r.scores;
  Array gate;
  if (!bias.valid() && routing.groups == 1) {
    const auto [values, experts] = top_k(weighing, kExpertsAxis, routing.top_k, loc);
    gate = rename(values, kExpertsAxis, kSlotAxis, loc);
    r.expert = rename(experts, kExpertsAxis, kSlotAxis, loc);
  } else {
    Array ranking = stop_gradient(weighing, loc);
    if (bias.valid()) ranking = Operand(ranking, loc) + Operand(read_in_f32(bias), loc);
    if (routing.groups > 1) ranking = within_groups(ranking, routing, loc);
    r.expert = rename(top_k(ranking, kExpertsAxis, routing.top_k, loc).second, kExpertsAxis, kSlotAxis, loc);
    gate = gather(weighing, kExpertsAxis, r.expert, loc);
  }
  if (routing.softmax_chosen) gate = softmax(gate, kSlotAxis, loc);
  if (routing.renormalize) {
    Array total = sum(gate, {kSlotAxis}, Order::kSerial, DType::f32, loc);
    // Sigmoids may all be zero, a softmax's largest cannot.
    if (routing.sigmoid) total = Operand(total, loc) + Operand(1e-20f, loc);
    gate = Operand(gate, loc) / Operand(total, loc);
  }
  if (routing.scale != 1) gate = Operand(gate, loc) * Operand(routing.scale, loc);
  r.gate = checkpoint_name(gate, "gate");
  return r;
}

Moe::Result Moe::operator()(const Array& x, const Activate& activate, Loc loc) const {
  Result result;
  result.routed = router(x, loc);
  result.y = apply_experts(*this, x, result.routed, activate, loc);
  return result;
}

// Every row is (token, slot): gate and up in one expert_dot, the gated value, down, then the sum over slots
// in order, weighted by the gates, in f32. The shared MLP is added last.
Array apply_experts(const Moe& moe, const Array& x, const Routed& routed, const Activate& activate, Loc loc) {
  const Array& expert = routed.expert;
  const DType dtype = read_dtype(moe.gate_up, moe.gate_up_scales);
  Scope scope("experts");
  const Array pair = checkpoint_name(up_product(moe, cast(x, dtype, loc), expert, dtype, loc), "gate_up");
  const Array hidden = gated(pair, activate, loc);
  const Array rows = down_product(moe, hidden, expert, dtype, loc);
  const Array gate = moe.wide ? cast(routed.gate, DType::bf16, loc) : routed.gate;
  Array y = sum(Operand(gate, loc) * Operand(rows, loc), {kSlotAxis}, Order::kSerial, DType::f32, loc);
  if (moe.shared.down.weight.valid()) {
    const Array both = checkpoint_name(moe.shared.gate_up(x, loc), "gate_up");
    Array part = moe.shared.down(gated(both, activate, loc), loc);
    if (moe.shared_gate.valid()) {
      const Array open =
          dot(cast_like(x, moe.shared_gate, loc), moe.shared_gate, {"embed"}, DType::f32, moe.rule, loc);
      part = Operand(sigmoid(open, loc), loc) * Operand(part, loc);
    }
    y = Operand(y, loc) + Operand(part, loc);
  }
  return checkpoint_name(cast(y, read_dtype(moe.down, moe.down_scales), loc), "mlp_out");
}

namespace {

// The sum over experts, exact for counts below 2^53. Under a name that no mesh splits.
Array over_experts(const Array& counts, Loc loc) {
  const Array whole = rename(cast(counts, DType::f64, loc), kExpertsAxis, "all_experts", loc);
  return sum(whole, {"all_experts"}, Order::kSerial, DType::f64, loc);
}

}  // namespace

// x - stop_gradient(x) is 0 with derivative 1. The derivative of gather is scatter_add, which adds the 1 of
// every row to its expert.
Array counted(const Array& state, const Array& expert, Loc loc) {
  const Array chosen = gather(read_in_f32(state), kExpertsAxis, expert, loc);
  const Array zero = Operand(chosen, loc) - Operand(stop_gradient(chosen, loc), loc);
  return sum(zero, {kSlotAxis}, Order::kSerial, DType::f32, loc);
}

Array counted_load(const Array& counts, Loc loc) {
  const Array all = cast(over_experts(counts, loc), DType::f32, loc);
  return Operand(counts, loc) / Operand(maximum(Operand(all, loc), 1.0f), loc);
}

Array balance_loss(const Array& scores, const Array& load, double coefficient, Loc loc) {
  const double factor = coefficient * static_cast<double>(scores.size(kExpertsAxis));
  const Array product = Operand(scores, loc) * Operand(stop_gradient(read_in_f32(load), loc), loc);
  return Operand(sum(product, {kExpertsAxis}, Order::kStriped, DType::f32, loc), loc) *
         Operand(static_cast<float>(factor), loc);
}

Array router_z_loss(const Array& logits, double coefficient, Loc loc) {
  const Array shift = stop_gradient(max(logits, {kExpertsAxis}, loc), loc);
  const Array e = exp(Operand(logits, loc) - Operand(shift, loc), loc);
  const Array lse =
      Operand(shift, loc) + Operand(log(sum(e, {kExpertsAxis}, Order::kStriped, DType::f32, loc), loc), loc);
  return Operand(square(lse, loc), loc) * Operand(static_cast<float>(coefficient), loc);
}

Array balanced_bias(const Array& bias, const Array& counts, double rate, Loc loc) {
  // count * experts against the sum: the mean need not be a whole number.
  const Array all = over_experts(counts, loc);
  const auto experts = static_cast<double>(counts.size(kExpertsAxis));
  const Array scaled = Operand(cast(counts, DType::f64, loc), loc) * Operand(experts, loc);
  const Operand up(static_cast<float>(rate), loc), down(-static_cast<float>(rate), loc);
  const Array raised = Operand(bias, loc) + up, lowered = Operand(bias, loc) + down;
  const Array below = Operand(scaled, loc)<Operand(all, loc), above = Operand(scaled, loc)> Operand(all, loc);
  return select(below, raised, select(above, lowered, bias));
}

}  // namespace ostro::nn
