// Loops, conditionals and custom derivatives: what stands in the program, what is captured, what is refused.
#include "ostro/trace/control.h"

#include <doctest/doctest.h>

#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro {
namespace {

using ir::OpKind;
using namespace test;

const Shape kX{DType::f32, {{"embed", 2}}}, kLayers{DType::f32, {{"layers", 3}, {"embed", 2}}};

struct Block {
  Array weight;
  OSTRO_FIELDS(weight)
};

TEST_CASE("the use of a stacked parameter stands once inside the loop's body, on one layer's slice") {
  const ir::Program p = trace_program("f", {kX, kLayers}, [](const Arrays& in) {
    const Block layers{in[1].tagged(DType::bf16)};
    return Arrays{fold(
        "layers", [](const Array& h, const Block& b) { return h * b.weight + b.weight; }, in[0], layers)};
  });
  CHECK(count_ops(p.body, OpKind::use) == 0);
  const ir::Op& scan = *find_op(p.body, OpKind::scan);
  REQUIRE(count_ops(scan.regions[0], OpKind::use) == 1);
  const ir::Op& use = *find_op(scan.regions[0], OpKind::use);
  CHECK(scan.regions[0].shape(use.operands[0]).str() == "f32[embed:2]");
  CHECK(scan.regions[0].shape(use.results[0]).str() == "bf16[embed:2]");
  CHECK(scan.operands[1] == p.body.params[1]);  // handed on as it is
}

TEST_CASE("a value is captured once by a region, under all its handles, also through nested loops") {
  const ir::Program p = trace_program("f", {kX, kLayers, kX}, [](const Arrays& in) {
    const Array once = in[2].tagged(DType::bf16), again = in[2].tagged(DType::bf16);
    const Array h = in[0] * once;  // its own use, outside
    return Arrays{fold(
        "layers",
        [&](const Array& a, const Block& x) {
          return fold(
              "embed", [&](const Array& b, const Block& y) { return b * once + again * y.weight + h; },
              a * again, x);
        },
        h, Block{in[1]})};
  });
  CHECK(count_ops(p.body, OpKind::use) == 1);
  const ir::Op& outer = *find_op(p.body, OpKind::scan);
  CHECK(outer.attrs.i64("consts") == 2);  // the parameter, raw, and h
  CHECK(outer.operands[0] == p.body.params[2]);
  CHECK(count_ops(outer.regions[0], OpKind::use) == 1);
  const ir::Op& inner = *find_op(outer.regions[0], OpKind::scan);
  CHECK(inner.attrs.i64("consts") == 2);
  CHECK(count_ops(inner.regions[0], OpKind::use) == 1);
}

TEST_CASE("branches of a conditional share what both capture; its use stands inside each") {
  const ir::Program p = trace_program("f", {Shape{DType::boolean, {}}, kX, kX, kX}, [](const Arrays& in) {
    const Array w = in[1].tagged(DType::bf16);
    return Arrays{cond<Array>(in[0], [&] { return w * in[2] + w; }, [&] { return in[3] * w; })};
  });
  const ir::Op& cond = *find_op(p.body, OpKind::cond);
  CHECK(cond.operands == p.body.params);  // the condition, then each captured value once
  CHECK(count_ops(p.body, OpKind::use) == 0);
  for (const ir::Block& branch : cond.regions) {
    CHECK(branch.params.size() == 3);
    CHECK(count_ops(branch, OpKind::use) == 1);
  }
  auto executable = interpreter().compile(p).value();
  for (const uint8_t yes : {1, 0}) {
    const auto out = executable
                         ->run({runtime::Buffer::scalar(DType::boolean, yes), f32(kX.axes, {2, 3}).buffer(),
                                f32(kX.axes, {5, 7}).buffer(), f32(kX.axes, {11, 13}).buffer()})
                         .value();
    CHECK(values<float>(Array(out[0])) == (yes ? std::vector<float>{12, 24} : std::vector<float>{22, 39}));
  }
}

TEST_CASE("scan stacks, folds in order, and runs at once on concrete arrays") {
  DefaultInterpreter use;
  const Array xs = f32(kLayers.axes, {1, 2, 3, 4, 5, 6}), two = f32({}, {2});
  const auto [carry, ys] = scan(
      "layers",
      [&](const Array& c, const Block& x) {
        const Array next = c * two + x.weight;
        return std::pair<Array, Block>(next, Block{next * 10.0});
      },
      zeros({{"embed", 2}}), Block{xs});
  CHECK(values<float>(carry) == std::vector<float>{4 + 6 + 5, 8 + 8 + 6});
  CHECK(ys.weight.shape().str() == "f32[layers:3, embed:2]");
  CHECK(values<float>(ys.weight) == std::vector<float>{10, 20, 50, 80, 150, 220});
  const auto [last, none] = scan_arrays(
      "layers", {zeros({{"embed", 2}})}, {xs}, 3,
      [](const Arrays& c, const Arrays& x) { return std::pair<Arrays, Arrays>({c[0] * 2.0 + x[0]}, {}); },
      true);
  CHECK(values<float>(last[0]) == std::vector<float>{20 + 6 + 1, 24 + 8 + 2});
  CHECK(none.empty());
  CHECK(values<float>(cond<Array>(two > 1.0, [&] { return two * 3.0; }, [&] { return two; }))[0] == 6);
}

TEST_CASE("what does not fit a loop is refused with the call site") {
  const auto loop = [](const Array& init, const Arrays& xs, int64_t n,
                       const std::function<Arrays(const Arrays&)>& next) {
    trace_program("f", {}, [&](const Arrays&) {
      return scan_arrays(
                 "layers", {init}, xs, n,
                 [&](const Arrays& c, const Arrays&) { return std::pair<Arrays, Arrays>(next(c), {}); })
          .first;
    });
  };
  const Array x = f32({{"embed", 2}}, {1, 2}), xs = f32(kLayers.axes, {1, 2, 3, 4, 5, 6});
  CHECK_THROWS_WITH_AS(loop(x, {x}, 3, [](const Arrays& c) { return c; }),
                       doctest::Contains("is scanned over \"layers\" of 3: that axis must be its first "
                                         "(control_test.cc:"),
                       TraceError);
  CHECK_THROWS_WITH_AS(loop(x, {xs}, 3, [](const Arrays&) { return Arrays{}; }),
                       doctest::Contains("the body returns 0 carries, 1 went in (control_test.cc:"),
                       TraceError);
  CHECK_THROWS_WITH_AS(loop(x, {xs}, 3, [](const Arrays& c) { return Arrays{sum(c[0], {"embed"})}; }),
                       doctest::Contains("carry 0 goes in as f32[embed:2] and comes out as f32"), TraceError);
  CHECK_THROWS_WITH_AS(
      trace_program("f", {kX},
                    [](const Arrays& in) {
                      return Arrays{
                          fold("layers", [](const Array& c, const Block&) { return c; }, in[0], Block{})};
                    }),
      doctest::Contains("scan: no arrays to go along \"layers\" (control_test.cc:"), TraceError);
}

TEST_CASE("custom_vjp: primal, forward and backward are regions without captures") {
  const auto call = [](const Arrays& in, const Array* stolen, size_t cotangents) {
    return custom_vjp_arrays(
        [](const Arrays& a) { return Arrays{a[0] * a[1]}; },
        [&](const Arrays& a) {
          const Array y = a[0] * a[1];
          return std::pair<Arrays, Arrays>({stolen ? y + *stolen : y}, {a[1]});
        },
        [&](const Arrays& r, const Arrays& ct) { return Arrays(cotangents, ct[0] * r[0]); }, in);
  };
  const ir::Program p = trace_program("f", {kX, kX}, [&](const Arrays& in) { return call(in, nullptr, 2); });
  const ir::Op& op = *find_op(p.body, OpKind::custom);
  CHECK(op.regions.size() == 3);
  CHECK(op.regions[2].params.size() == 2);
  CHECK_THROWS_WITH_AS(trace_program("f", {kX, kX}, [&](const Arrays& in) { return call(in, &in[0], 2); }),
                       doctest::Contains("custom_vjp: pass every traced value as an argument"), TraceError);
  CHECK_THROWS_WITH_AS(trace_program("f", {kX, kX}, [&](const Arrays& in) { return call(in, nullptr, 1); }),
                       doctest::Contains("backward returns 1 cotangents for 2 arguments"), TraceError);
  DefaultInterpreter use;
  CHECK(values<float>(call({f32(kX.axes, {2, 3}), f32(kX.axes, {5, 7})}, nullptr, 2)[0]) ==
        std::vector<float>{10, 21});
}

}  // namespace
}  // namespace ostro
