#include "ostro/ir/text.h"

#include <doctest/doctest.h>

#include "ostro/ir/attention_limits.h"
#include "ostro/ir/builder.h"
#include "ostro/ir/op_table.h"
#include "ostro/ir/verify.h"

namespace ostro::ir {
namespace {

Program sample() {
  Program p;
  p.name = "sample";
  p.leaves.axes = {{"mlp", 2}};
  Builder b(p.body);
  b.set_location("sample.cc:1");
  const ValueId x = p.body.add_param({DType::f32, {{"batch", 2}, {"embed", 4}}});
  const ValueId w = p.body.add_param({DType::f32, {{"layers", 3}, {"embed", 4}, {"out", 4}}});
  p.param_names = {"x", "w \"quoted\""};
  Block body;
  const ValueId c = body.add_param({DType::f32, {{"batch", 2}, {"embed", 4}}});
  const ValueId wl = body.add_param({DType::f32, {{"embed", 4}, {"out", 4}}});
  Builder inner(body);
  const ValueId y = inner.rename(inner.dot(c, wl, {"embed"}), {"out"}, {"embed"});
  body.results = {y, inner.sum(y, {"embed"}, "striped")};
  const auto out = b.add_n(OpKind::scan, {x, w},
                           {{"axis", std::string("layers")},
                            {"length", int64_t{3}},
                            {"consts", int64_t{0}},
                            {"carries", int64_t{1}},
                            {"reverse", int64_t{0}}},
                           {body});
  p.body.results = {out[0], out[1], b.splat(0.1, scalar(DType::f32))};
  return p;
}

TEST_CASE("text round-trips, with and without marks") {
  const Program p = sample();
  check_ok(verify(p));
  for (bool canonical : {false, true}) {
    const std::string text = print(p, {.canonical = canonical});
    auto again = parse_program(text);
    REQUIRE_MESSAGE(again.ok(), (again.ok() ? "" : again.error().message()));
    CHECK(print(*again, {.canonical = canonical}) == text);
    CHECK(program_hash(*again) == program_hash(p));
  }
}

TEST_CASE("the hash sees meaning, not marks") {
  Program p = sample();
  const std::string hash = program_hash(p);
  p.body.ops[0].location = "elsewhere.cc:9";
  p.name = "other";
  CHECK(program_hash(p) == hash);
  p.leaves.axes = {{"mlp", 4}};
  CHECK(program_hash(p) != hash);
}

TEST_CASE("text cut or changed anywhere gives an error or another valid program, never a crash") {
  const std::string text = print(sample());
  for (size_t n = 0; n + 2 < text.size(); ++n) (void)parse_program(text.substr(0, n)).ok();
  for (size_t i = 0; i < text.size(); ++i)
    for (char c : {'}', '9', '%', 'x', '"'}) {
      std::string changed = text;
      changed[i] = c;
      (void)parse_program(changed).ok();
    }
  CHECK(!parse_program("").ok());
  CHECK(parse_program("program \"x\" leaves {}\n() {\n  %0 = bogus() : f32[]\n return %0\n}")
            .error()
            .message() == "program text, line 3: unknown op \"bogus\"");
}

TEST_CASE("shape errors name the op, the axis and both sizes") {
  Block b;
  Builder builder(b);
  const ValueId x = b.add_param({DType::f32, {{"batch", 2}, {"embed", 512}}});
  const ValueId w = b.add_param({DType::f32, {{"embed", 768}, {"out", 4}}});
  CHECK(
      builder.try_add(OpKind::dot, {x, w}, {{"over", std::vector<std::string>{"embed"}}}).error().message() ==
      "dot: axis \"embed\" is 512 in f32[batch:2, embed:512] but 768 in f32[embed:768, out:4]");
  CHECK(builder.try_add(OpKind::sum, {x}, {{"axes", std::vector<std::string>{"pos"}}}).error().message() ==
        "sum: no axis \"pos\" in f32[batch:2, embed:512]");
  CHECK(!builder.try_add(OpKind::sum, {x}, {}).ok());
}

TEST_CASE("attention takes heads as wide as its kernels do, and no wider") {
  for (const int64_t width : {kMaxHeadDim, kMaxHeadDim + 2}) {
    Block b;
    Builder builder(b);
    const ValueId q = b.add_param({DType::f32, {{"pos", 3}, {"wide", width}}});
    const ValueId k = b.add_param({DType::f32, {{"key_pos", 3}, {"wide", width}}});
    const auto out = builder.try_add(OpKind::attention, {q, k, k, builder.i64_scalar(0)},
                                     {{"query", std::string("pos")},
                                      {"key", std::string("key_pos")},
                                      {"head_dim", std::string("wide")},
                                      {"scale", 1.0},
                                      {"causal", int64_t{1}}});
    CHECK(out.ok() == (width == kMaxHeadDim));
    if (!out.ok())
      CHECK(out.error().message() ==
            "attention: axis \"wide\" of q f32[pos:3, wide:1026] is 1026; a head is 1024 wide at most, use "
            "more heads");
  }
}

TEST_CASE("every op has a row of words and a name that parses") {
  for (int i = 0; i < kOpCount; ++i) {
    const auto k = static_cast<OpKind>(i);
    CHECK(op_info(k).kind == k);
    CHECK(parse_op(op_name(k)) == k);
  }
}

TEST_CASE("the verifier finds use before definition and a wrong shape") {
  Program p = sample();
  std::swap(p.body.ops[0], p.body.ops[1]);
  CHECK(verify(p).ok());  // independent ops may change places
  p.body.values[static_cast<size_t>(p.body.results[2])].dtype = DType::i32;
  CHECK(!verify(p).ok());
  p = sample();
  p.body.results.push_back(99);
  CHECK(!verify(p).ok());
}

}  // namespace
}  // namespace ostro::ir
