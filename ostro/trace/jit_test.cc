// The cache of compiled functions: what makes another program and what does not.
#include "ostro/trace/jit.h"

#include <doctest/doctest.h>

#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/error.h"
#include "ostro/trace/ops.h"

namespace ostro {
namespace {

using namespace test;

// Counts compilations; optionally refuses.
class CountingEngine final : public runtime::Engine {
 public:
  const runtime::EngineInfo& info() const override { return info_; }
  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& p,
                                                       const runtime::CompileOptions& o) override {
    ++compiled;
    donated = o.donate;
    if (refuse) return unsupported("refused");
    return interpreter().compile(p, o);
  }
  int compiled = 0;
  bool refuse = false;
  std::vector<int64_t> donated;

 private:
  const runtime::EngineInfo info_{.name = "counting"};
};

struct Params {
  Array weight;
  double factor = 2;
  OSTRO_FIELDS(weight)
  OSTRO_STATICS(factor)
};

Params scaled(const Params& p, const Array& x) { return {p.weight * p.factor + x, p.factor}; }

TEST_CASE("one compilation per shapes, tags, statics and engine") {
  CountingEngine engine;
  set_default_engine(&engine);
  const auto f = jit(scaled);
  const auto g = f;  // shares the cache
  const Array one = f32({{"a", 2}}, {1, 2});
  CHECK(values<float>(f(Params{one, 2}, one).weight) == std::vector<float>{3, 6});
  CHECK(values<float>(g(Params{one, 2}, f32({{"a", 2}}, {5, 5})).weight) == std::vector<float>{7, 9});
  CHECK(engine.compiled == 1);
  CHECK(values<float>(f(Params{one, 3}, one).weight) == std::vector<float>{4, 8});
  CHECK(engine.compiled == 2);
  CHECK(f(Params{one, 3}, one).factor == 3);
  f(Params{f32({{"a", 1}}, {1}), 3}, f32({{"a", 1}}, {1}));
  CHECK(engine.compiled == 3);
  f(Params{one.tagged(DType::bf16), 3}, one);
  CHECK(engine.compiled == 4);
  CountingEngine other;
  set_default_engine(&other);
  CHECK(values<float>(f(Params{one, 2}, one).weight) == std::vector<float>{3, 6});
  CHECK(other.compiled == 1);
  DefaultInterpreter reset;
}

TEST_CASE("a call that throws leaves nothing in the cache") {
  CountingEngine engine;
  set_default_engine(&engine);
  bool fail = true;
  const auto f = jit([&](const Array& x) {
    if (fail) trace_fail("not today", Loc::current());
    return x + 1.0;
  });
  const Array x = f32({}, {1});
  CHECK_THROWS_AS(f(x), TraceError);
  CHECK_THROWS_AS(f(x), TraceError);
  fail = false;
  engine.refuse = true;
  CHECK_THROWS_WITH_AS(f(x), doctest::Contains("refused"), TraceError);
  engine.refuse = false;
  CHECK(values<float>(f(x))[0] == 2);
  DefaultInterpreter reset;
}

TEST_CASE("donation names the argument's leaves and changes no result") {
  CountingEngine engine;
  set_default_engine(&engine);
  const auto f = jit([](const Array& x, const Params& p) { return x * 2.0 + p.weight; }, {.donate = {1}});
  const Array kept = f32({}, {3});
  Params p{f32({}, {4}), 1};
  const Array alias = p.weight;  // not the only handle: must survive
  CHECK(values<float>(f(kept, std::move(p)))[0] == 10);
  CHECK(engine.donated == std::vector<int64_t>{1});
  CHECK(values<float>(alias)[0] == 4);
  CHECK(values<float>(kept)[0] == 3);
  CHECK(values<float>(f(kept, Params{kept, 1}))[0] == 9);  // one buffer as both arguments
  CHECK(values<float>(kept)[0] == 3);
  DefaultInterpreter reset;
}

TEST_CASE("inside a trace the function is traced in place; its program names its parameters") {
  DefaultInterpreter use;
  const auto f = jit(scaled, {.name = "scaled"});
  const Shape s{DType::f32, {{"a", 2}}};
  const ir::Program outer = trace_program("outer", {s, s}, [&](const std::vector<Array>& in) {
    return std::vector<Array>{f(Params{in[0], 2}, in[1]).weight};
  });
  CHECK(find_op(outer.body, ir::OpKind::mul) != nullptr);
  const ir::Program p = f.program(Params{f32(s.axes, {1, 2}), 2}, f32(s.axes, {1, 2}));
  CHECK(p.name == "scaled");
  CHECK(p.param_names == std::vector<std::string>{"0/weight", "1"});
}

TEST_CASE("running without an engine says what to do") {
  set_default_engine(nullptr);
  const Array x = f32({}, {1});
  CHECK_THROWS_WITH_AS(x + 1.0, doctest::Contains("call set_default_engine()"), TraceError);
  DefaultInterpreter reset;
}

}  // namespace
}  // namespace ostro
