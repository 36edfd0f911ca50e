// Broadcasting by name, literals, errors, constants and eager calls.
#include "ostro/trace/ops.h"

#include <doctest/doctest.h>

#include <type_traits>

#include "ostro/trace/arrays_for_test.h"
#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro {
namespace {

using ir::OpKind;
using namespace test;

// A traced value has no truth; neither `if (a == b)` nor `bool t = a` may compile.
static_assert(!std::is_convertible_v<Array, bool>);
static_assert(!std::is_constructible_v<bool, Array>);
static_assert(!std::is_constructible_v<bool, decltype(Array() == Array())>);

ir::Program trace1(const std::vector<Shape>& shapes,
                   const std::function<Array(const std::vector<Array>&)>& f) {
  return trace_program("f", shapes, [&](const std::vector<Array>& a) { return std::vector<Array>{f(a)}; });
}
Shape result_shape(const ir::Program& p) { return p.body.shape(p.body.results[0]); }
const Shape kGrid{DType::f32, {{"batch", 2}, {"embed", 3}}};

TEST_CASE("axes are matched by name; the operand that has them all gives the order") {
  DefaultInterpreter use;
  const Array x = f32({{"a", 2}, {"b", 3}}, {1, 2, 3, 4, 5, 6}), y = f32({{"b", 3}}, {10, 20, 30}),
              z = f32({{"b", 3}, {"a", 2}}, {1, 4, 2, 5, 3, 6});
  CHECK(values<float>(x + y) == std::vector<float>{11, 22, 33, 14, 25, 36});
  CHECK((y + x).shape().str() == "f32[a:2, b:3]");
  CHECK(values<float>(y + x) == std::vector<float>{11, 22, 33, 14, 25, 36});
  // Same axes, other order: the left operand's order; the same elements meet.
  CHECK((x - z).shape().str() == "f32[a:2, b:3]");
  CHECK(values<float>(x - z) == std::vector<float>(6, 0.0f));
  CHECK((z - x).shape().str() == "f32[b:3, a:2]");
  // Disjoint axes: the left ones, then what the right one adds.
  const Array c = f32({{"c", 2}}, {1, 2});
  CHECK((y * c).shape().str() == "f32[b:3, c:2]");
  CHECK(values<float>(y * c) == std::vector<float>{10, 20, 20, 40, 30, 60});
  CHECK(values<float>(select(y > 15.0, x, 0.5)) == std::vector<float>{0.5, 2, 3, 0.5, 5, 6});
}

TEST_CASE("a literal takes the dtype of the array beside it, f32 beside bf16") {
  const auto dtype_of = [](DType d, const std::function<Array(const Array&)>& f) {
    return result_shape(trace1({Shape{d, {{"a", 2}}}}, [&](const auto& a) { return f(a[0]); })).dtype;
  };
  CHECK(dtype_of(DType::f32, [](const Array& a) { return a * 0.1; }) == DType::f32);
  CHECK(dtype_of(DType::bf16, [](const Array& a) { return 1.0f + a; }) == DType::f32);
  CHECK(dtype_of(DType::f64, [](const Array& a) { return a - 0.1; }) == DType::f64);
  CHECK(dtype_of(DType::i32, [](const Array& a) { return a + 1; }) == DType::i32);
  CHECK(dtype_of(DType::i64, [](const Array& a) { return a + int64_t{1}; }) == DType::i64);
  CHECK(dtype_of(DType::u32, [](const Array& a) { return a & 255; }) == DType::u32);
  CHECK(dtype_of(DType::i32, [](const Array& a) { return a < 3; }) == DType::boolean);

  DefaultInterpreter use;
  CHECK(values<float>(f32({}, {3}) * 0.1)[0] == 3.0f * 0.1f);  // rounded to f32 before the product
  CHECK(values<double>(f64({}, {3}) * 0.1)[0] == 3.0 * 0.1);   // all digits
  CHECK(values<float>(cast(f32({}, {3}), DType::bf16) * 0.1)[0] == 0.3f * 1.0f);
  CHECK(values<int32_t>(i32({{"a", 2}}, {7, -7}) % 4) == std::vector<int32_t>{3, -3});
}

TEST_CASE("an integer array refuses a literal that it cannot hold") {
  DefaultInterpreter use;
  const Array x = i32({{"a", 1}}, {4});
  CHECK_THROWS_WITH_AS(x * 2.5, doctest::Contains("mul: the literal 2.5 beside i32"), TraceError);
  CHECK_THROWS_AS(x + 3e9, TraceError);
  CHECK_THROWS_AS(cast(x, DType::u32) + -1, TraceError);
  CHECK_THROWS_AS(select(x > 3, x, 0.5), TraceError);
  CHECK(values<int32_t>(x + -1)[0] == 3);
}

TEST_CASE("errors name the op, both sizes and the call site") {
  const std::vector<Shape> two{kGrid, Shape{DType::f32, {{"embed", 4}}}};
  CHECK_THROWS_WITH_AS(trace1(two, [](const auto& a) { return a[0] + a[1]; }),
                       doctest::Contains("add: axis \"embed\" is 3 in f32[batch:2, embed:3] but 4 in "
                                         "f32[embed:4] (ops_test.cc:"),
                       TraceError);
  CHECK_THROWS_WITH_AS(trace1(two, [](const auto& a) { return dot(a[0], a[1], "embed"); }),
                       doctest::Contains("(ops_test.cc:"), TraceError);
  CHECK_THROWS_WITH_AS(trace1(two,
                              [](const auto& a) {
                                Scope outer("layers");
                                Scope inner("mlp");
                                return a[0] * a[1];
                              }),
                       doctest::Contains(", in layers/mlp)"), TraceError);
  CHECK_THROWS_WITH_AS(trace1(two, [](const auto& a) { return a[0] + Array(); }),
                       doctest::Contains("add: an empty Array; was the field initialised? (ops_test.cc:"),
                       TraceError);
  CHECK_THROWS_WITH_AS(
      trace1(two, [](const auto&) { return exp(Array()); }),
      doctest::Contains("exp: an empty Array was read; was the field initialised? (ops_test.cc:"),
      TraceError);
  CHECK_THROWS_WITH_AS(trace1(two, [](const auto& a) { return a[0] * a[0].size("mlp"); }),
                       doctest::Contains("no axis \"mlp\" in f32[batch:2, embed:3] (ops_test.cc:"),
                       TraceError);
  CHECK_THROWS_WITH_AS(trace1(two, [](const auto& a) { return unstack<2>(a[0], "embed")[0]; }),
                       doctest::Contains("has size 3, 2 values were asked for (ops_test.cc:"), TraceError);
  CHECK_THROWS_WITH_AS(trace1(two, [](const auto& a) { return index(a[0], "embed", 3); }),
                       doctest::Contains("index: 3 is outside axis \"embed\" of size 3"), TraceError);
  CHECK_THROWS_WITH_AS(trace1(two, [](const auto& a) { return Array(a[0].buffer()); }),
                       doctest::Contains("is not known while tracing"), TraceError);
}

TEST_CASE("a concrete array in a trace is a constant, above 1 MiB an error") {
  DefaultInterpreter use;
  const Array c = f32({{"embed", 3}}, {0.5f, -0.0f, 3});
  const ir::Program p = trace1({kGrid}, [&](const auto& a) { return (a[0] + c) + c; });
  CHECK(p.body.params.size() == 1);
  CHECK(count_ops(p.body, OpKind::constant) == 1);  // once, however often it is read
  const auto at_limit = [](int64_t n) {
    const Array big(runtime::Buffer::zeros(Shape{DType::f32, {{"embed", n}}}));
    return trace1({}, [&](const auto&) { return big * 2.0; });
  };
  at_limit(1 << 18);
  CHECK_THROWS_WITH_AS(
      at_limit((1 << 18) + 1),
      doctest::Contains("1048580 bytes would become a constant of the program (limit 1 MiB); "
                        "pass it as an argument (ops_test.cc:"),
      TraceError);
  // Outside any trace size does not matter: it is an input of a program of one op.
  const Array big(runtime::Buffer::zeros(Shape{DType::f32, {{"embed", (1 << 18) + 1}}}));
  CHECK(values<float>(sum(big, {"embed"}))[0] == 0);
}

TEST_CASE("a value of a finished trace cannot be used") {
  Array leaked;
  trace1({kGrid}, [&](const auto& a) { return leaked = a[0] * 2.0; });
  CHECK_THROWS_WITH_AS(trace1({kGrid}, [&](const auto& a) { return a[0] + leaked; }),
                       doctest::Contains("of another trace was used"), TraceError);
  CHECK_THROWS_AS(leaked + leaked, TraceError);
  // A program traced inside another sees nothing of it.
  CHECK_THROWS_WITH_AS(
      trace1({kGrid},
             [&](const auto& a) { return trace1({}, [&](const auto&) { return a[0] * 2.0; }), a[0]; }),
      doctest::Contains("program f uses a value"), TraceError);
}

TEST_CASE("a tagged parameter is read through one use per dtype") {
  const ir::Program p = trace1({kGrid}, [](const auto& a) {
    const Array w = a[0].tagged(DType::bf16), again = a[0].tagged(DType::bf16),
                wide = a[0].tagged(DType::f32);
    return (w * 2.0 + again) + wide;
  });
  CHECK(count_ops(p.body, OpKind::use) == 2);  // bf16 and f32
}

TEST_CASE("checkpoint_name labels the op that made the value") {
  const ir::Program p = trace1({kGrid}, [](const auto& a) {
    const Array y = checkpoint_name(exp(a[0]), "kept");
    return checkpoint_name(a[0], "a parameter has no op") * y;
  });
  CHECK(find_op(p.body, OpKind::exp)->label == "kept");
  CHECK(find_op(p.body, OpKind::mul)->label.empty());
}

TEST_CASE("layout helpers") {
  DefaultInterpreter use;
  const Array x = f32({{"a", 2}, {"b", 3}}, {1, 2, 3, 4, 5, 6});
  CHECK(values<float>(merge_axes(x, {"b", "a"}, "m")) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(values<float>(index(x, "b", 1)) == std::vector<float>{2, 5});
  CHECK(broadcast(x, {{"c", 2}, {"a", 2}}).shape().str() == "f32[c:2, a:2, b:3]");
  CHECK(values<float>(mean(x, {"a", "b"}))[0] == 21.0f * (1.0f / 6.0f));
  CHECK(mean(cast(x, DType::bf16), {"a"}).dtype() == DType::f32);
  CHECK_THROWS_AS(mean(zeros({{"a", 0}}), {"a"}), TraceError);
  CHECK(values<uint32_t>(make_key(0x123456789abcdef0u)) == std::vector<uint32_t>{0x12345678u, 0x9abcdef0u});
}

}  // namespace
}  // namespace ostro
