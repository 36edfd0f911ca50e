// The optimizer's step on parameters of random shapes gives the interpreter's bits on every instruction set:
// AdamW, the clipping by a norm over boxes, the step refused for a gradient that is not finite, fingerprints.
#include <doctest/doctest.h>

#include <cmath>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/optim/adamw.h"
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

// `refused`: one gradient holds an infinity.
RandomUpdate random_update(Rng& rng, uint64_t seed, size_t n, int64_t elements, bool refused) {
  std::vector<Shape> parameters;
  for (size_t i = 0; i < n; ++i) parameters.push_back(random_parameter(rng, elements));
  optim::AdamOptions o;
  if (rng.chance(0.5)) o.max_grad_norm.reset();
  if (rng.chance(0.3)) o.weight_decay = 0;
  const optim::Boxes boxes{{{"embed", rng.between(1, 5)}, {"mlp", rng.between(1, 5)}}, {"layer"}};
  std::vector<Shape> shapes;
  for (int copy = 0; copy < 4; ++copy) shapes.insert(shapes.end(), parameters.begin(), parameters.end());
  shapes.insert(shapes.end(), 2, ir::scalar(DType::f64));  // sum of losses and weight
  shapes.insert(shapes.end(), 3, ir::scalar(DType::f32));  // lr, k1, k2
  RandomUpdate out;
  out.program = trace_program("update", shapes, [&](const std::vector<Array>& in) {
    const Array *p = in.data(), *m = p + n, *v = m + n, *g = v + n, *scalars = g + n;
    const Array inv = cast(full(1, DType::f64, {}) / scalars[1], DType::f32);
    const Array loss = cast(scalars[0] / scalars[1], DType::f32);
    const optim::GlobalNorm norm = optim::global_norm({g, g + n}, inv, o.max_grad_norm, boxes);
    const Array ok = is_finite(loss) & is_finite(norm.norm);
    std::vector<Array> results{loss, norm.norm, ok};
    for (size_t i = 0; i < n; ++i) {
      const optim::AdamResult r = optim::adamw(o, i % 2 == 0, p[i], m[i], v[i], g[i], inv, norm.clip,
                                               scalars[2], scalars[3], scalars[4]);
      results.push_back(select(ok, r.p, p[i]));
      results.push_back(fingerprint(results.back()));
      results.push_back(select(ok, r.m, m[i]));
      results.push_back(select(ok, r.v, v[i]));
    }
    return results;
  });
  out.inputs = testing::make_inputs(out.program, seed, false);
  for (size_t i = 0; i < n; ++i)
    for (float& x : out.inputs[2 * n + i].mutable_as<float>()) x = std::abs(x);  // second moments
  if (refused)
    out.inputs[3 * n + static_cast<size_t>(rng.below(static_cast<int64_t>(n)))].mutable_as<float>()[0] =
        INFINITY;
  double& weight = out.inputs[4 * n + 1].mutable_as<double>()[0];
  weight = 1 + std::abs(weight);
  const optim::AdamScalars s = optim::adam_scalars(o, rng.between(0, 90), 100);
  const float scalars[] = {s.lr, s.k1, s.k2};
  for (size_t i = 0; i < 3; ++i) out.inputs[4 * n + 2 + i].mutable_as<float>()[0] = scalars[i];
  return out;
}

void check_updates(uint64_t seed, int programs, size_t parameters, int64_t elements) {
  testing::EachIsa engines({.threads = 3, .cc_opt = "-O1"});  // -O1: half the time
  Rng rng(seed);
  for (int i = 0; i < programs; ++i) {
    const RandomUpdate u =
        random_update(rng, seed + static_cast<uint64_t>(i), parameters, elements, i % 3 == 2);
    const std::string d = engines.difference(u.program, u.inputs);
    CHECK_MESSAGE(d.empty(), "program ", i, " of seed ", seed, ": ", d);
  }
  CHECK(engines.telling() * 10 >= engines.results() * 8);
}

TEST_CASE("AdamW on parameters of random shapes gives the interpreter's bits") {
  check_updates(1, 3, 10, 3000);
}

TEST_CASE("slow: AdamW on parameters of random shapes gives the interpreter's bits, in many more cases") {
  check_updates(sized<uint64_t>(test_seed(), 2, 2), sized(9, 9, 200), 16, 40'000);
}

}  // namespace
}  // namespace ostro
