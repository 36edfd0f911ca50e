#include "ostro/eval/gradients.h"

#include <algorithm>
#include <functional>

#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/tree.h"

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
                                     const train::BatchArrays& batch) {
  ASSIGN_OR_RETURN(const auto leaf_program, engine.compile(programs.leaf, train::leaf_options(remat)));
  const train::Signatures at = train::signatures_of(programs);
  std::vector<ir::Shape> shapes;
  for (size_t k = 0; k < at.trained(); ++k) shapes.push_back(params[k].shape());
  ASSIGN_OR_RETURN(const auto add, engine.compile(train::add_program(shapes)));

  Status failed;
  numerics::TreeFold<Buffers, std::function<Buffers(Buffers, Buffers)>> fold([&](Buffers a, Buffers b) {
    if (!failed.ok()) return a;
    for (Buffer& x : b) a.push_back(std::move(x));
    auto sum = add->run(std::move(a));
    if (sum.ok()) return std::move(sum).value();
    failed = sum.error();
    return Buffers();
  });
  const int64_t rows = train::leaf_rows(programs);
  ASSIGN_OR_RETURN(const Buffers at_engine, runtime::all_to(params, engine.memory()));
  std::vector<train::LeafResults<Buffer>> outputs;  // of each leaf, without gradients
  for (int64_t first = 0; first < batch[0].shape().axes[0].size; first += rows) {
    ASSIGN_OR_RETURN(Buffers out, leaf_program->run(train::as_list(train::LeafParams<Buffer>{
                                      at_engine, train::rows_of(batch, first, rows)})));
    auto leaf = train::read_fields(at.leaf_results, std::move(out));
    fold.push(std::move(leaf.gradients));
    outputs.push_back(std::move(leaf));
    RETURN_IF_ERROR(failed);
  }
  MeanGradients result;
  const Buffers sums = fold.finish();
  RETURN_IF_ERROR(failed);
  std::vector<train::LeafResult> leaves;
  for (const auto& leaf : outputs) {
    ASSIGN_OR_RETURN(leaves.emplace_back(), train::leaf_result(leaf));
  }
  const auto [loss_sum, weight] = train::join_losses(leaves);
  if (weight == 0) return invalid_argument("the batch has no token that counts");
  result.loss = static_cast<float>(loss_sum / weight);
  result.weight = weight;
  const numerics::HostArithmetic environment;
  for (const Buffer& sum : sums) {
    ASSIGN_OR_RETURN(const Buffer on_host, sum.to_host());
    result.gradients.push_back(scaled(on_host, static_cast<float>(1.0 / weight)));
  }
  return result;
}

}  // namespace ostro::eval
