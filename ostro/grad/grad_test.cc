// Derivatives against central differences (approximate: the exact ones are pinned by the fuzzer and by JAX),
// and the shape of what differentiation returns.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>

#include "ostro/grad/value_and_grad.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/product_rule.h"
#include "ostro/ir/rules/verify.h"
#include "ostro/numerics/functions.h"
#include "ostro/trace/error.h"

namespace ostro {
namespace {

using Fn = std::function<Array(const Arrays&)>;

struct Args {
  Arrays list;
  OSTRO_FIELDS(list)
};

runtime::Engine& engine() {
  static auto e = interp::make_interpreter();
  set_default_engine(e.get());
  return *e;
}

Array waves(const std::vector<Axis>& axes, double seed) {
  runtime::Buffer b = runtime::Buffer::empty(Shape{DType::f32, axes});
  auto out = b.mutable_as<float>();
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>(std::sin(seed + 1.7 * static_cast<double>(i)) * 0.8);
  return Array(b);
}

// Every gradient element within 2 % (+ 2e-3) of the central difference of the interpreted function.
void check_gradients(const Arrays& args, const Fn& f) {
  engine();
  auto fn = jit([&](const Args& a) { return f(a.list); });
  auto vg =
      jit([&](const Args& a) { return value_and_grad([&](const Args& x) { return f(x.list); })(a).second; });
  const Args grads = vg(Args{args});
  for (size_t k = 0; k < args.size(); ++k) {
    if (args[k].dtype() != DType::f32) continue;
    for (int64_t i = 0; i < args[k].shape().count(); ++i) {
      auto at = [&](float delta) {
        Arrays moved = args;
        runtime::Buffer b = runtime::Buffer::copy_of(args[k].shape(), args[k].buffer().bytes().data());
        b.mutable_as<float>()[static_cast<size_t>(i)] += delta;
        moved[k] = Array(b);
        return static_cast<double>(fn(Args{moved}).buffer().item<float>());
      };
      const double expected = (at(0.01f) - at(-0.01f)) / 0.02;
      const double got = grads.list[k].buffer().as<float>()[static_cast<size_t>(i)];
      CHECK_MESSAGE(std::abs(got - expected) <= 2e-3 + 0.02 * std::abs(expected), "argument ", k, " element ",
                    i, ": ", got, " against ", expected);
    }
  }
}

Array total(const Array& x) { return sum(x * x, x.shape().names()); }

TEST_CASE("elementwise rules") {
  const Array x = waves({{"a", 5}}, 0.3), y = waves({{"a", 5}}, 2.1);
  check_gradients({x, y},
                  [](const Arrays& a) { return total(a[0] * a[1] + a[0] / (a[1] * a[1] + 1.0) - a[1]); });
  check_gradients({x}, [](const Arrays& a) {
    return total(exp(a[0]) + tanh(a[0]) + sin(a[0]) * cos(a[0]) + sigmoid(a[0]));
  });
  check_gradients({x}, [](const Arrays& a) {
    return total(log(a[0] * a[0] + 1.0) + rsqrt(a[0] * a[0] + 1.0) + sqrt(a[0] * a[0] + 2.0));
  });
  check_gradients({x}, [](const Arrays& a) {
    return total(gelu_tanh(a[0]) + gelu_erf(a[0]) + silu(a[0]) + softplus(a[0]));
  });
  check_gradients({x, y}, [](const Arrays& a) {
    return total(maximum(a[0], a[1]) + select(a[0] < a[1], a[0] * 3.0, a[1]));
  });
}

TEST_CASE("softplus: the derivative at 0 is 1/2, and the value is max(x, 0) + log1p(exp(-|x|))") {
  engine();
  const float xs[] = {0.0f, -0.0f, 1.0f, -1.0f, 80.0f, -80.0f, 3e38f, -3e38f, 1e-45f, 0.3f};
  const runtime::Buffer x = runtime::Buffer::copy_of(Shape{DType::f32, {{"a", std::size(xs)}}}, xs);
  const Args at{{Array(x)}};
  auto slopes = jit([](const Args& a) {
    return value_and_grad([](const Args& b) { return sum(softplus(b.list[0]), {"a"}); })(a).second;
  });
  const Args slope = slopes(at);
  const auto got = slope.list[0].buffer().as<float>();
  CHECK(got[0] == 0.5f);
  CHECK(got[1] == 0.5f);
  CHECK(got[4] == 1.0f);
  CHECK(got[5] == 0.0f);
  CHECK(got[6] == 1.0f);
  CHECK(got[7] == 0.0f);
  auto jitted = jit([](const Args& a) { return softplus(a.list[0]); });
  const Array y = jitted(at);
  for (size_t i = 0; i < std::size(xs); ++i)
    CHECK(y.buffer().as<float>()[i] == numerics::softplus_f32(xs[i]));
}

TEST_CASE("layout, reduction and contraction rules") {
  const Array x = waves({{"a", 4}, {"b", 6}}, 0.3), w = waves({{"b", 6}, {"c", 3}}, 1.1),
              v = waves({{"b", 6}}, 0.2);
  check_gradients({x, w}, [](const Arrays& a) { return total(dot(a[0], a[1], "b")); });
  check_gradients({x, v}, [](const Arrays& a) { return total(a[0] * a[1] + a[1]); });
  check_gradients({x}, [](const Arrays& a) {
    return total(slice(a[0], "b", 1, 2, 3) * 2.0) + total(pad(a[0], "a", 1, 2));
  });
  check_gradients({x}, [](const Arrays& a) {
    return total(merge_axes(a[0], {"b", "a"}, "m") * 1.5) + total(max(a[0], {"b"})) +
           total(mean(a[0], {"a"}));
  });
  check_gradients({x}, [](const Arrays& a) {
    auto parts = split(a[0], "b", {2, 4});
    auto rows = unstack(a[0], "a");
    return total(concat({parts[1], parts[0]}, "b") * 0.5) + total(stack({rows[2], rows[0]}, "s", 1));
  });
  const int32_t ids[] = {3, 0, 3};
  const Array index(runtime::Buffer::copy_of(Shape{DType::i32, {{"pos", 3}}}, ids));
  check_gradients({x}, [&](const Arrays& a) { return total(gather(a[0], "a", index) * 2.0); });
  check_gradients({x}, [](const Arrays& a) {
    return total(sort(a[0], "b").first * a[0]) + total(top_k(a[0], "b", 2).first);
  });
  // Extrema in f64; ops that would scatter f64 back have no derivative, and say so.
  check_gradients(
      {x}, [](const Arrays& a) { return total(cast(max(cast(a[0], DType::f64), {"b"}), DType::f32)); });
  CHECK_THROWS_AS(check_gradients({x},
                                  [](const Arrays& a) {
                                    return total(cast(sort(cast(a[0], DType::f64), "b").first, DType::f32));
                                  }),
                  TraceError);
}

TEST_CASE("ops of a cache in pages are for inference only, and say so") {
  const int32_t numbers[] = {0};
  const Array one(runtime::Buffer::copy_of(Shape{DType::i32, {{"row", 1}}}, numbers)),
      table(runtime::Buffer::copy_of(Shape{DType::i32, {{"row", 1}, {"entry", 1}}}, numbers));
  const Array pool = waves({{"page", 1}, {"slot", 128}, {"head_dim", 2}}, 0.3),
              row = waves({{"row", 1}, {"head_dim", 2}}, 1.1);
  const auto message = [&](const std::function<Array(const Arrays&)>& f) -> std::string {
    try {
      check_gradients({row}, f);
    } catch (const TraceError& e) {
      return e.what();
    }
    return "";
  };
  CHECK(message([&](const Arrays& a) {
          return total(paged_write(pool, a[0], one));
        }).find("paged_write has no derivative: it is for inference only") != std::string::npos);
  CHECK(message([&](const Arrays& a) {
          return total(paged_attention(a[0], pool, pool, table, one));
        }).find("paged_attention has no derivative: it is for inference only") != std::string::npos);
}

TEST_CASE("rules of dots whose weights are chosen row by row, and their own derivatives") {
  const Axis experts{"experts", 3};
  const Array x = waves({{"k", 3}, {"t", 4}}, 0.3), w = waves({{"k", 3}, experts, {"n", 2}}, 1.1);
  const Array gate = waves({{"t", 4}, {"slot", 2}}, 2.1);
  runtime::Buffer chosen = runtime::Buffer::empty({DType::i32, {{"t", 4}, {"slot", 2}}});
  const int32_t list[] = {0, 2, 2, 2, 0, 7, -1, 0};  // expert 1 has no row, two rows no expert
  std::copy(std::begin(list), std::end(list), chosen.mutable_as<int32_t>().begin());
  const Array expert(chosen);
  check_gradients({x, w, gate}, [&](const Arrays& a) {
    return total(sum(a[2] * tanh(expert_dot(a[0], a[1], "experts", expert, {"k"})), {"slot"}));
  });
  check_gradients({x, w, gate}, [&](const Arrays& a) {
    const Array rows = expert_dot(a[0], a[1], "experts", expert, {"k"});
    return total(expert_outer(a[0] * 0.5, a[2] * rows, experts, expert) * 0.5);
  });
}

TEST_CASE("a loop with captures, stacked inputs and stacked outputs") {
  const Array x = waves({{"a", 3}}, 0.3), w = waves({{"layers", 4}, {"a", 3}, {"b", 3}}, 1.1),
              c = waves({{"a", 3}}, 0.7);
  check_gradients({x, w, c}, [](const Arrays& a) {
    auto [carry, ys] = scan_arrays("layers", {a[0]}, {a[1]}, 4, [&](const Arrays& in, const Arrays& xs) {
      const Array next = tanh(rename(dot(in[0], xs[0], "a"), "b", "a") + a[2] * in[0]);
      return std::pair<Arrays, Arrays>({next}, {next * a[2]});
    });
    return total(carry[0]) + total(ys[0]);
  });
}

TEST_CASE("a conditional and a custom derivative") {
  const Array x = waves({{"a", 3}}, 0.3);
  check_gradients({x}, [](const Arrays& a) {
    return cond<Array>(
        sum(a[0], {"a"}) > 0.0, [&] { return total(a[0] * 3.0); }, [&] { return total(exp(a[0])); });
  });
  engine();
  auto doubled = jit([](const Args& args) {
    return value_and_grad([](const Args& in) {
             const Arrays y = custom_vjp_arrays(
                 [](const Arrays& a) { return Arrays{a[0] * 1.0}; },
                 [](const Arrays& a) { return std::pair<Arrays, Arrays>({a[0] * 1.0}, {a[0]}); },
                 [](const Arrays&, const Arrays& ct) { return Arrays{ct[0] * 2.0}; }, {in.list[0]});
             return sum(y[0], {"a"});
           })(args)
        .second;
  });
  CHECK(doubled(Args{{x}}).list[0].buffer().as<float>()[1] == 2.0f);
}

TEST_CASE("the gradients of a product by the rule of tensor cores have that rule") {
  const auto rules = [](ProductRule rule) {
    const ir::Program p = trace_program(
        "f", {Shape{DType::bf16, {{"a", 3}, {"b", 4}}}, Shape{DType::bf16, {{"b", 4}, {"c", 2}}}},
        [rule](const Arrays& a) {
          return Arrays{sum(dot(a[0], a[1], {"b"}, DType::f32, rule), {"a", "c"})};
        });
    const auto both = value_and_grad_block(p.body, {0, 1});
    REQUIRE(both.ok());
    int with = 0, without = 0;
    for (const ir::Op& op : both->ops)
      if (op.kind == ir::OpKind::dot) ++(ir::is_tc16(op.attrs) ? with : without);
    return std::pair(with, without);
  };
  CHECK(rules(ProductRule::kTc16) == std::pair(3, 0));
  CHECK(rules(ProductRule::kN7) == std::pair(0, 3));
}

TEST_CASE("bf16: gradients of parameters stay f32 from the dot to the result") {
  const ir::Program p = trace_program(
      "f", {Shape{DType::f32, {{"a", 4}}}, Shape{DType::f32, {{"a", 4}, {"b", 2}}}}, [](const Arrays& a) {
        const Array w = a[1].tagged(DType::bf16);
        return Arrays{sum(dot(cast(a[0], DType::bf16), w, "a"), {"b"})};
      });
  auto both = value_and_grad_block(p.body, {1});
  REQUIRE(both.ok());
  check_ok(ir::verify(*both));
  const ir::ValueId g = both->results[1];
  CHECK(both->shape(g).dtype == DType::f32);
  // The gradient is a dot's f32 accumulator, not a widened bf16: no cast from bf16 stands between.
  for (const ir::Op& op : both->ops)
    for (ir::ValueId r : op.results)
      if (r == g) CHECK((op.kind == ir::OpKind::transpose || op.kind == ir::OpKind::dot));
}

TEST_CASE("errors name the op and the call site") {
  CHECK_THROWS_WITH_AS(trace_program("f", {Shape{DType::f32, {{"x", 2}}}},
                                     [](const Arrays& a) { return Arrays{dot(a[0], a[0], "y")}; }),
                       doctest::Contains("dot: no axis \"y\" in f32[x:2] (grad_test.cc:"), TraceError);
  CHECK(value_and_grad_block(ir::Block(), {}).error().message() ==
        "the function to differentiate has no result");
}

}  // namespace
}  // namespace ostro
