// Which values a derivative is taken of: captures are constants, a parameter read in several places has one
// gradient.
#include "ostro/grad/value_and_grad.h"

#include <doctest/doctest.h>

#include <functional>

#include "ostro/ir/rules/verify.h"
#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/error.h"

namespace ostro {
namespace {

using ir::OpKind;
using namespace test;

const Shape kX{DType::f32, {{"embed", 2}}}, kLayers{DType::f32, {{"layers", 3}, {"embed", 2}}};

// Index into block.ops of the op that makes the value; -1 for a parameter.
int64_t maker(const ir::Block& b, ir::ValueId v) {
  for (size_t i = 0; i < b.ops.size(); ++i)
    for (ir::ValueId r : b.ops[i].results)
      if (r == v) return static_cast<int64_t>(i);
  return -1;
}

TEST_CASE("captured arrays, traced and concrete, are constants of the derivative") {
  DefaultInterpreter use;
  const Array concrete = f32(kX.axes, {10, 100});
  const auto f = jit([&](const Array& w, const Array& captured) {
    const Array derived = captured * w;  // depends on w, outside the differentiated function
    auto [loss, grad] = value_and_grad(
        [&](const Array& x) { return sum(x * captured * concrete + x * derived, {"embed"}); })(w);
    return std::vector<Array>{loss, grad};
  });
  const auto out = f(f32(kX.axes, {2, 3}), f32(kX.axes, {5, 7}));
  CHECK(values<float>(out[0])[0] == 2 * 5 * 10 + 2 * 10 + 3 * 7 * 100 + 3 * 21);
  CHECK(values<float>(out[1]) == std::vector<float>{50 + 10, 700 + 21});
}

TEST_CASE("stop_gradient stops the gradient of what it is given, not of its other uses") {
  DefaultInterpreter use;
  const auto gradient = [](const std::function<Array(const Array&)>& f) {
    return values<float>(jit([&](const Array& x) {
      return value_and_grad([&](const Array& a) { return sum(f(a), {"embed"}); })(x).second;
    })(f32(kX.axes, {3, -5})));
  };
  CHECK(gradient([](const Array& x) { return x * stop_gradient(x); }) == std::vector<float>{3, -5});
  CHECK(gradient([](const Array& x) { return x - stop_gradient(x); }) == std::vector<float>{1, 1});
  CHECK(gradient([](const Array& x) { return stop_gradient(x * x) * x; }) == std::vector<float>{9, 25});
  CHECK(gradient([](const Array& x) { return x + stop_gradient(exp(x)); }) == std::vector<float>{1, 1});
}

TEST_CASE("a captured parameter is read in its compute dtype; one given twice counts only as the argument") {
  const ir::Program p = trace_program("f", {kX, kX}, [](const Arrays& in) {
    const Array w = in[0].tagged(DType::bf16), scale = in[1].tagged(DType::bf16);
    auto [loss, grad] = value_and_grad([&](const Array& x) { return sum(x * scale * w, {"embed"}); })(w);
    return Arrays{loss, grad};
  });
  check_ok(ir::verify(p));
  CHECK(count_ops(p.body, OpKind::use) == 3);  // x, scale, and w as a constant of the function
  CHECK(p.body.shape(p.body.results[1]).dtype == DType::f32);
  const auto out = interpreter()
                       .compile(p)
                       .value()
                       ->run({f32(kX.axes, {2, 3}).buffer(), f32(kX.axes, {5, 7}).buffer()})
                       .value();
  CHECK(values<float>(Array(out[0]))[0] == 2 * 5 * 2 + 3 * 7 * 3);
  CHECK(values<float>(Array(out[1])) == std::vector<float>{10, 21});
}

TEST_CASE("a parameter read outside and inside a loop has one f32 gradient, the later reader's part first") {
  // Like a tied embedding: a gather before the loop, a capture in it, a dot behind it.
  const Shape table{DType::f32, {{"vocab", 4}, {"embed", 2}}};
  const ir::Program p = trace_program("f", {table, kLayers}, [](const Arrays& in) {
    auto [loss, grad] = value_and_grad([&](const Array& raw, const Array& layers) {
      const Array e = raw.tagged(DType::bf16);
      const Array x = cast(gather(e, "vocab", i32({{"pos", 3}}, {1, 3, 1})), DType::f32);
      const Array y = scan_arrays("layers", {x}, {layers}, 3, [&](const Arrays& c, const Arrays& xs) {
                        const Array h = dot(cast(c[0] * xs[0], DType::bf16), e, "embed");
                        return std::pair<Arrays, Arrays>({c[0] + sum(h, {"vocab"})}, {});
                      }).first[0];
      return sum(dot(cast(y, DType::bf16), e, "embed"), {"pos", "vocab"});
    })(in[0], in[1]);
    return Arrays{loss, grad};
  });
  check_ok(ir::verify(p));
  const ir::ValueId g = p.body.results[1];
  CHECK(p.body.shape(g).str() == "f32[vocab:4, embed:2]");
  // One sum of two parts. The use was emitted by the gather, before the loop, so the loop's part is first;
  // the use's own part adds the head's (last use) and the gather's.
  const ir::Op& total = p.body.ops[static_cast<size_t>(maker(p.body, g))];
  REQUIRE(total.kind == OpKind::add);
  CHECK(p.body.ops[static_cast<size_t>(maker(p.body, total.operands[0]))].kind == OpKind::scan);
  const ir::Op& use_part = p.body.ops[static_cast<size_t>(maker(p.body, total.operands[1]))];
  REQUIRE(use_part.kind == OpKind::add);
  const auto kind_of = [&](ir::ValueId v) {
    const ir::Op* op = &p.body.ops[static_cast<size_t>(maker(p.body, v))];
    while (op->kind == OpKind::transpose)
      op = &p.body.ops[static_cast<size_t>(maker(p.body, op->operands[0]))];
    return op->kind;
  };
  CHECK(kind_of(use_part.operands[0]) == OpKind::dot);
  CHECK(kind_of(use_part.operands[1]) == OpKind::scatter_add);
  for (const ir::ValueId v :
       {total.operands[0], total.operands[1], use_part.operands[0], use_part.operands[1]})
    CHECK(p.body.shape(v).dtype == DType::f32);  // never rounded to bf16 on the way
}

TEST_CASE("a value that both branches of a conditional read gets one contribution") {
  DefaultInterpreter use;
  const auto f = jit([](const Array& x, const Array& pred) {
    return value_and_grad([&](const Array& w) {
             return cond<Array>(
                 pred > 0.0, [&] { return sum(w * w, {"embed"}); }, [&] { return sum(w * 3.0, {"embed"}); });
           })(x)
        .second;
  });
  CHECK(values<float>(f(f32(kX.axes, {2, -0.0f}), f32({}, {1}))) == std::vector<float>{4, 0});
  CHECK(values<float>(f(f32(kX.axes, {2, 5}), f32({}, {-1}))) == std::vector<float>{3, 3});
  const ir::Program p = f.program(f32(kX.axes, {2, 5}), f32({}, {-1}));
  // The gradient comes straight out of the backward conditional.
  CHECK(p.body.ops[static_cast<size_t>(maker(p.body, p.body.results[0]))].kind == OpKind::cond);
}

TEST_CASE("value_and_grad outside a trace is refused") {
  CHECK_THROWS_WITH_AS(value_and_grad([](const Array& x) { return x; })(f32({}, {1})),
                       doctest::Contains("call it inside a function given to jit (value_and_grad_test.cc:"),
                       TraceError);
}

}  // namespace
}  // namespace ostro
