// Ops x {shape, dtype, text, cost, sharding, interpreter, derivative, compiled engine}: no op may lack a
// rule.
#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "op_samples.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/grad/differentiate.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/program/op_table.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/ir/text/text.h"
#include "ostro/numerics/threefry.h"

namespace ostro::tests {
namespace {

// Small positive floats, small integers, both booleans: legal for every op.
runtime::Buffer some_values(const ir::Shape& shape, uint64_t seed) {
  runtime::Buffer b = runtime::Buffer::zeros(shape);
  const numerics::Key key = numerics::key_from_seed(seed);
  for (int64_t i = 0; i < shape.count(); ++i) {
    const uint32_t bits = numerics::random_bits(key, static_cast<uint64_t>(i));
    const auto at = static_cast<size_t>(i);
    switch (shape.dtype) {
      case ir::DType::f32: b.mutable_as<float>()[at] = 0.1f + static_cast<float>(bits % 800) / 1000.0f; break;
      case ir::DType::i32: b.mutable_as<int32_t>()[at] = static_cast<int32_t>(bits % 3); break;
      case ir::DType::u32: b.mutable_as<uint32_t>()[at] = bits; break;
      case ir::DType::i8:
        b.mutable_as<int8_t>()[at] =
            static_cast<int8_t>(static_cast<int>(bits % 255) - 127);  // what quantize gives
        break;
      case ir::DType::boolean: b.mutable_as<uint8_t>()[at] = bits % 2; break;
      default: break;  // i64 origins are zero
    }
  }
  return b;
}

std::vector<runtime::Buffer> run(runtime::Engine& engine, const ir::Program& p) {
  std::vector<runtime::Buffer> inputs;
  for (size_t i = 0; i < p.body.params.size(); ++i)
    inputs.push_back(some_values(p.body.shape(p.body.params[i]), 7 + i));
  auto executable = engine.compile(p);
  REQUIRE_MESSAGE(executable.ok(), (executable.ok() ? "" : executable.error().message()));
  auto out = (*executable)->run(std::move(inputs));
  REQUIRE_MESSAGE(out.ok(), (out.ok() ? "" : out.error().message()));
  return std::move(out).value();
}

void check_equal(const std::vector<runtime::Buffer>& a, const std::vector<runtime::Buffer>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].shape() == b[i].shape());
    CHECK(std::memcmp(a[i].bytes().data(), b[i].bytes().data(), a[i].bytes().size()) == 0);
  }
}

TEST_CASE("every op has every rule") {
  const auto interpreter = interp::make_interpreter();
  auto compiled = cpu::make_cpu_engine().value();
  std::set<ir::OpKind> seen;
  for (const OpSample& s : op_samples()) {
    const std::string name = ir::op_name(s.kind);
    CAPTURE(name);
    seen.insert(s.kind);
    check_ok(ir::verify(s.program));
    const std::string text = ir::print(s.program);
    CHECK(ir::print(ir::parse_program(text).value()) == text);

    const ir::Op& op = s.program.body.ops.back();
    std::vector<ir::Shape> in, out;
    for (ir::ValueId v : op.operands) in.push_back(s.program.body.shape(v));
    for (ir::ValueId v : op.results) out.push_back(s.program.body.shape(v));
    CHECK(ir::op_cost(op, in, out).bytes > 0);
    // Sharding: an axis that an op reduces, reorders or looks up must not be called parallel.
    for (const ir::Shape& shape : in)
      for (const ir::Axis& a : shape.axes) {
        bool kept = false;
        for (const ir::Shape& o : out) kept |= o.has(a.name) && o.size_of(a.name) == a.size;
        const bool regions = !op.regions.empty();
        if (!kept && !regions && op.kind != ir::OpKind::rename && op.kind != ir::OpKind::box_sumsq)
          CHECK(ir::axis_role(op, in, out, a.name) != ir::AxisRole::kParallel);
      }
    CHECK(interp::interprets(s.kind));
    const auto expected = run(*interpreter, s.program);
    check_equal(run(*compiled, s.program), expected);

    if (!s.differentiable) continue;
    ir::Program sum = s.program;
    ir::Builder b(sum.body);
    const ir::ValueId y = sum.body.results[0];
    sum.body.results = {b.sum(y, b.shape(y).names(), "serial")};
    auto both = value_and_grad_block(sum.body, {0});
    REQUIRE_MESSAGE(both.ok(), (both.ok() ? "" : both.error().message()));
    sum.body = std::move(both).value();
    check_ok(ir::verify(sum));
    check_equal(run(*compiled, sum), run(*interpreter, sum));
  }
  for (int i = 0; i < ir::kOpCount; ++i) {
    const auto k = static_cast<ir::OpKind>(i);
    const std::string name = ir::op_name(k);
    CAPTURE(name);
    CHECK(interp::interprets(k));
    if (!ir::is_collective(k)) CHECK(seen.count(k) == 1);
  }
}

}  // namespace
}  // namespace ostro::tests
