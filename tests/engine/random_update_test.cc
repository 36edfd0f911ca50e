// The optimizer's step on parameters of random shapes gives the interpreter's bits on every instruction set:
// AdamW, the clipping by a norm over boxes, the step refused for a gradient that is not finite, fingerprints.
#include <doctest/doctest.h>

#include <cmath>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/optim/norm.h"
#include "ostro/optim/optimizer.h"
#include "ostro/trace/frame.h"
#include "ostro/trace/ops.h"
#include "programs.h"
#include "tests/fuzz/rng.h"

namespace ostro {
namespace {

using fuzz::Rng;
using runtime::Buffer;

// A scalar, or up to three axes, of one element, few or hundreds.
Shape random_parameter(Rng& rng, int64_t elements) {
  Shape s{DType::f32, {}};
  for (const char* name : {"layer", "embed", "mlp"}) {
    if (rng.chance(0.3)) continue;
    const int64_t size = rng.chance(0.2) ? 1 : rng.chance(0.5) ? rng.between(2, 17) : rng.between(18, 600);
    s.axes.push_back({name, std::min(size, elements / s.count())});
  }
  return s;
}

struct RandomUpdate {
  ir::Program program;
  std::vector<Buffer> inputs;
};

// An optimizer of each kind, in turn.
optim::OptimizerOptions optimizer_number(size_t i) {
  std::vector<optim::OptimizerOptions> all;
  [&]<typename... Ts>(std::variant<Ts...>*) {
    (all.emplace_back(Ts{}), ...);
  }(static_cast<optim::OptimizerOptions*>(nullptr));
  std::get<optim::AdamOptions>(all[0]).cautious = true;
  return all[i % all.size()];
}

// `refused`: one gradient holds an infinity.
RandomUpdate random_update(Rng& rng, optim::OptimizerOptions options, uint64_t seed, size_t n,
                           int64_t elements, bool refused) {
  std::vector<optim::Parameter> parameters;
  for (size_t i = 0; i < n; ++i) {
    const Shape shape = random_parameter(rng, elements);
    nn::Matrix matrix;  // of the first axis to the others, at times several maps in one
    if (shape.axes.size() > 1 && rng.chance(0.7)) {
      matrix.in = {shape.axes[0].name};
      const Axis& last = shape.axes.back();
      if (rng.chance(0.4) && last.size > 2) matrix.fused = {last.name, {{"q", last.size - 2}, {"k"}, {"v"}}};
    }
    parameters.push_back({"model/" + std::to_string(i) + (i % 2 == 0 ? "/weight" : "/norm"), shape, matrix});
  }
  std::optional<double> max_norm;
  if (rng.chance(0.5)) max_norm = 1.0;
  std::visit([&](auto& o) { o.weight_decay = rng.chance(0.3) ? 0 : 0.1; }, options);
  if (auto* o = std::get_if<optim::AdafactorOptions>(&options)) o->min_dim_size_to_factor = 2;
  if (auto* o = std::get_if<optim::SoapOptions>(&options)) o->max_precond_dim = 40;
  if (auto* o = std::get_if<optim::ShampooOptions>(&options)) o->max_precond_dim = 40;
  const optim::Boxes boxes{{{"embed", rng.between(1, 5)}, {"mlp", rng.between(1, 5)}}, {"layer"}};
  const optim::Optimizer optimizer(options, parameters, boxes);
  const size_t m = optimizer.state().size();
  std::vector<Shape> shapes;
  for (const auto& p : parameters) shapes.push_back(p.shape);
  for (const auto& kept : optimizer.state()) shapes.push_back(kept.shape);
  for (const auto& p : parameters) shapes.push_back(p.shape);
  shapes.insert(shapes.end(), 2, ir::scalar(DType::f64));  // sum of losses and weight
  shapes.insert(shapes.end(), optimizer.scalars().size(), ir::scalar(DType::f32));
  RandomUpdate out;
  out.program = trace_program("update", shapes, [&](const std::vector<Array>& in) {
    const Array *p = in.data(), *kept = p + n, *g = kept + m, *scalars = g + n;
    const Array inv = cast(full(1, DType::f64, {}) / scalars[1], DType::f32);
    const Array loss = cast(scalars[0] / scalars[1], DType::f32);
    const optim::GlobalNorm norm = optim::global_norm({g, g + n}, inv, max_norm, boxes);
    const Array ok = is_finite(loss) & is_finite(norm.norm);
    std::vector<Array> results{loss, norm.norm, ok};
    for (size_t i = 0; i < n; ++i) {
      std::vector<Array> state;
      for (const size_t k : optimizer.indices_of(i)) state.push_back(kept[k]);
      const optim::RuleResults r = optimizer.update(i, p[i], state, g[i], inv, norm.clip,
                                                    {scalars + 2, scalars + 2 + optimizer.scalars().size()});
      results.push_back(select(ok, r.p, p[i]));
      results.push_back(fingerprint(results.back()));
      for (size_t k = 0; k < state.size(); ++k) results.push_back(select(ok, r.state[k], state[k]));
    }
    return results;
  });
  out.inputs = testing::make_inputs(out.program, seed, false);
  for (size_t i = 0; i < m; ++i)  // means of squares
    if (optimizer.state()[i].name.starts_with("second_moment"))
      for (float& x : out.inputs[n + i].mutable_as<float>()) x = std::abs(x);
  if (refused)
    out.inputs[n + m + static_cast<size_t>(rng.below(static_cast<int64_t>(n)))].mutable_as<float>()[0] =
        INFINITY;
  double& weight = out.inputs[2 * n + m + 1].mutable_as<double>()[0];
  weight = 1 + std::abs(weight);
  const std::vector<float> scalars = optim::step_scalars(options, rng.between(0, 90), 100);
  for (size_t i = 0; i < scalars.size(); ++i)
    out.inputs[2 * n + m + 2 + i].mutable_as<float>()[0] = scalars[i];
  return out;
}

void check_updates(uint64_t seed, int programs, size_t parameters, int64_t elements) {
  testing::EachIsa engines({.threads = 3, .cc_opt = "-O1"});  // -O1: half the time
  Rng rng(seed);
  for (int i = 0; i < programs; ++i) {
    const RandomUpdate u = random_update(rng, optimizer_number(static_cast<size_t>(i)),
                                         seed + static_cast<uint64_t>(i), parameters, elements, i % 4 == 3);
    const std::string d = engines.difference(u.program, u.inputs);
    CHECK_MESSAGE(d.empty(), "program ", i, " of seed ", seed, ": ", d);
  }
  CHECK(engines.telling() * 10 >= engines.results() * 8);
}

TEST_CASE("every optimizer on parameters of random shapes gives the interpreter's bits") {
  check_updates(1, std::variant_size_v<optim::OptimizerOptions>, 6, 3000);
}

TEST_CASE(
    "slow: every optimizer on parameters of random shapes gives the interpreter's bits, in many more cases") {
  check_updates(sized<uint64_t>(test_seed(), 2, 2), sized(9, 9, 200), 16, 40'000);
}

}  // namespace
}  // namespace ostro
