// Moe, MoeRouter: mixture of experts: a router that chooses experts for each token, the experts' gated MLPs,
// and the losses and biases that balance the load. No token is dropped; sums are in the order of slots
// (numerics.md N10). Called while tracing; TraceError for arrays that do not fit.
#pragma once

#include <functional>
#include <optional>

#include "ostro/nn/linear.h"

namespace ostro::nn {

// The choice and the weights of a token's experts.
struct MoeRouting {
  int64_t top_k = 2;
  bool sigmoid = false;         // scores are the sigmoid of the logits, else their softmax
  bool softmax_chosen = false;  // gates are the softmax of the chosen logits alone (softmax after top-k)
  bool renormalize = false;     // gates are divided by their sum, so that they add up to 1
  double scale = 1;             // of the gates, last
  // Experts are chosen from the `top_groups` best of `groups` groups of neighbours. The score of a group is
  // that of its best expert, or with best_two the sum of its best two.
  int64_t groups = 1, top_groups = 1;
  bool best_two = false;
};

// The choice for every token: expert i32 and gate f32 [tokens..., slot], best first; logits and scores f32
// [tokens..., experts].
struct Routed {
  Array expert, gate, logits, scores;
};

// The layer that chooses experts.
struct MoeRouter {
  Array weight;  // [embed, experts], read in f32 whatever the compute dtype
  Array bias;    // f32 [experts] or empty: is added for the choice only, not to the gates
  MoeRouting routing;
  double bias_rate = 0;  // the change of the bias in a step, up or down (balanced_bias)
  OSTRO_FIELDS(weight, bias)
  OSTRO_STATICS(routing.top_k, routing.sigmoid, routing.softmax_chosen, routing.renormalize, routing.scale,
                routing.groups, routing.top_groups, routing.best_two, bias_rate)

  // x [tokens..., embed]. TraceError for a routing that the number of experts does not allow.
  Routed operator()(const Array& x, Loc loc = Loc::current()) const;
};

// down(activate(gate) * up), as a dense layer has it.
struct GatedMlp {
  Linear gate_up;  // [embed, gate_up, mlp]
  Linear down;     // [mlp, embed]
  OSTRO_FIELDS(gate_up, down)
};

using Activate = std::function<Array(const Array&)>;

// The options of the two products of experts with integers (numerics.md N20).
struct ExpertIntegers {
  IntegerProducts gate_up, down;
};

// The mixture: router, experts, and an optional MLP for every token.
struct Moe {
  MoeRouter router;
  Array gate_up;      // [experts, embed, gate_up, mlp]
  Array down;         // [experts, mlp, embed]
  GatedMlp shared;    // for every token; or empty
  Array shared_gate;  // [embed] or empty: the shared part is weighted by the sigmoid of its dot with x
  // Of i8 gate_up and down: [experts, scale_groups, gate_up, mlp] and [experts, scale_groups, embed]; else
  // empty.
  Array gate_up_scales, down_scales;
  Array load;  // f32 [experts] or empty: the part of the rows that chose each in the step before
  // True: the experts' inner values are not rounded for the product with `down`, which is in f32, and gates
  // are rounded to bf16.
  bool wide = false;
  std::optional<ExpertIntegers> integers;  // compute() in policy.h sets it, and layer
  Array layer;                             // with integers: the index of each stacked layer, i32 [layers]
  ProductRule rule = ProductRule::kN7;     // of the experts and the gate of the shared part; set by compute()
  OSTRO_FIELDS(router, gate_up, gate_up_scales, down, down_scales, shared, shared_gate, load, layer)
  auto ostro_statics() const {
    return std::tuple(wide, integers ? integers->down.block : 0, static_cast<int>(rule));
  }

  struct Result {
    Array y;  // [tokens..., embed] in the compute dtype
    Routed routed;
  };
  // x [tokens..., embed]; `activate` is applied to the gates.
  Result operator()(const Array& x, const Activate& activate, Loc loc = Loc::current()) const;
};

// Returns exp(x - max) / sum over one axis, f32.
Array softmax(const Array& x, const std::string& axis, Loc loc = Loc::current());

// Returns each token's part of the Switch loss, f32 [tokens...]: coefficient * experts * sum over experts of
// load * score. The load has no derivative; it is that of the whole batch (numerics.md N11).
Array balance_loss(const Array& scores, const Array& load, double coefficient, Loc loc = Loc::current());

// Returns f32 [tokens...], all 0, whose derivative by `state`, f32 [experts], is the number of rows that
// chose each expert. So the rows of a step are counted in the way in which a gradient is summed, for any
// division of the work (numerics.md N11).
Array counted(const Array& state, const Array& expert, Loc loc = Loc::current());

// Returns the load after a step: its counts, f32 [experts] with any axes before, divided by their sum.
Array counted_load(const Array& counts, Loc loc = Loc::current());

// Returns coefficient * logsumexp(logits)^2 for each token, f32 [tokens...].
Array router_z_loss(const Array& logits, double coefficient, Loc loc = Loc::current());

// Returns the router's bias after a step in which the experts got `counts` rows, f32 [experts] with any axes
// before: rate is added for an expert that got fewer than the mean, and subtracted for one that got more
// (loss-free balancing).
Array balanced_bias(const Array& bias, const Array& counts, double rate, Loc loc = Loc::current());

}  // namespace ostro::nn
