#include "ostro/eval/gradients.h"

#include <algorithm>
#include <utility>

#include "ostro/numerics/fp_env.h"
#include "ostro/train/step/gradient_sums.h"

namespace ostro::eval {

using runtime::Buffer;
using Buffers = std::vector<Buffer>;

namespace {

// Not inlined, so that no product leaves the scope of its caller's HostArithmetic.
[[gnu::noinline]] Buffer scaled(const Buffer& x, float factor) {
  Buffer out = Buffer::empty(x.shape());
  std::ranges::transform(x.as<float>(), out.mutable_as<float>().begin(),
                         [factor](float value) { return value * factor; });
  return out;
}

}  // namespace

Result<MeanGradients> mean_gradients(const train::CanonicalPrograms& programs, runtime::Engine& engine,
                                     const std::string& remat, const Buffers& params,
                                     const train::BatchArrays& batch, int64_t groups) {
  ASSIGN_OR_RETURN(const auto leaf_program, engine.compile(programs.leaf, train::leaf_options(remat)));
  const train::Signatures at = train::signatures_of(programs);
  train::GradientAdder adder(engine);
  const int64_t rows = train::leaf_rows(programs);
  const int64_t leaves = batch[0].shape().axes[0].size / rows;
  train::SubtreeSums sums(leaves, groups, adder);
  ASSIGN_OR_RETURN(const Buffers at_engine, runtime::all_to(params, engine.memory()));
  std::vector<train::LeafResults<Buffer>> outputs;  // of each leaf, without gradients
  for (int64_t i = 0; i < leaves; ++i) {
    ASSIGN_OR_RETURN(Buffers out, leaf_program->run(train::as_list(train::LeafParams<Buffer>{
                                      at_engine, train::rows_of(batch, i * rows, rows)})));
    auto leaf = train::read_fields(at.leaf_results, std::move(out));
    RETURN_IF_ERROR(sums.push({i, 1}, std::exchange(leaf.gradients, {})));
    outputs.push_back(std::move(leaf));
  }
  MeanGradients result;
  std::vector<train::LeafResult> results;
  for (const auto& leaf : outputs) {
    ASSIGN_OR_RETURN(results.emplace_back(), train::leaf_result(leaf));
  }
  const auto [loss_sum, weight] = train::join_losses(results);
  if (weight == 0) return invalid_argument("the batch has no token that counts");
  result.loss = static_cast<float>(loss_sum / weight);
  result.weight = weight;
  const numerics::HostArithmetic environment;
  for (const Buffer& sum : sums.root()) {
    ASSIGN_OR_RETURN(const Buffer on_host, sum.to_host());
    result.gradients.push_back(scaled(on_host, static_cast<float>(1.0 / weight)));
  }
  return result;
}

}  // namespace ostro::eval
