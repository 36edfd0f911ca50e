#include "ostro/ir/text/text.h"

#include <doctest/doctest.h>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/program/op_table.h"
#include "ostro/ir/rules/verify.h"

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
  // What a later version may have is told from what no version writes.
  const Error later =
      parse_program("program \"x\" leaves {}\n() {\n  %0 = bogus() : f32[]\n return %0\n}").error();
  CHECK(later.message() == "program text, line 3: unknown op \"bogus\"");
  CHECK(later.code() == ErrorCode::kUnsupported);
  CHECK(parse_program("program \"x\" leaves {}\n(%0: f3[]) {\n return %0\n}").error().code() ==
        ErrorCode::kUnsupported);
  CHECK(parse_program("program \"x\" leaves {}\n(%0: f32[]) {\n return %1\n}").error().code() ==
        ErrorCode::kInvalidArgument);
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
            "attention: axis \"wide\" of q f32[pos:3, wide:1026] is 1026; a head is 1 to 1024 wide, use "
            "more heads");
  }
}

std::string error_of(OpKind kind, const std::vector<Shape>& operands, Attrs attrs) {
  Block b;
  Builder builder(b);
  std::vector<ValueId> in;
  for (const Shape& s : operands) in.push_back(b.add_param(s));
  const auto out = builder.try_add(kind, in, std::move(attrs));
  return out.ok() ? "" : out.error().message();
}

TEST_CASE("sizes, names and attributes that no engine could run are refused") {
  using Names = std::vector<std::string>;
  using Sizes = std::vector<int64_t>;
  const std::string a = "a";
  const Shape x{DType::f32, {{"batch", 2}, {"pos", 8}}}, start = scalar(DType::i32),
                                                         one{DType::f32, {{"a", 4}}};
  const auto refused = [&](const char* part, OpKind kind, const std::vector<Shape>& operands, Attrs attrs) {
    const std::string error = error_of(kind, operands, std::move(attrs));
    CHECK_MESSAGE(error.find(part) != std::string::npos, part, ": ", error);
  };
  refused("does not fit", OpKind::dynamic_update_slice, {x, {DType::f32, {{"pos", 1}}}, start},
          {{"axis", std::string("pos")}});
  refused("a part of 6", OpKind::split, {one}, {{"axis", a}, {"sizes", Sizes{6, -2}}});
  refused("size -1", OpKind::dynamic_slice, {one, start}, {{"axis", a}, {"size", int64_t{-1}}});
  refused("size -1", OpKind::iota, {scalar(DType::i64)}, {{"axis", a}, {"size", int64_t{-1}}});
  refused("outside axis", OpKind::slice, {one},
          {{"axis", a}, {"start", int64_t{1}}, {"size", int64_t{3}}, {"stride", INT64_MAX}});
  refused("more bytes", OpKind::broadcast, {one},
          {{"axes", Names{"a", "b"}}, {"sizes", Sizes{4, int64_t{1} << 60}}});
  refused("names an axis twice", OpKind::dot, {one, one}, {{"over", Names{"a", "a"}}});
  refused("is not an axis name", OpKind::rename, {one}, {{"from", Names{"a"}}, {"to", Names{"q heads"}}});
  refused("cells are 1 or more", OpKind::box_sumsq, {one}, {{"axes", Names{"a"}}, {"cells", Sizes{0}}});
  refused("2 boxes of length 1 do not hold axis \"a\"", OpKind::box_sumsq, {one},
          {{"axes", Names{"a"}}, {"cells", Sizes{2}}, {"lengths", Sizes{1}}});
  refused("axes and lengths", OpKind::box_sumsq, {one},
          {{"axes", Names{"a"}}, {"cells", Sizes{2}}, {"lengths", Sizes{}}});
  refused("m f32[] does not fit", OpKind::cross_entropy_sum,
          {{DType::f32, {{"pos", 2}, {"vocab", 3}}}, scalar(DType::f32)}, {{"axis", std::string("vocab")}});
  refused("global_sizes has 0", OpKind::fingerprint, {one, scalar(DType::i64)}, {{"global_sizes", Sizes{}}});
  refused("needs an operand", OpKind::fingerprint, {}, {{"global_sizes", Sizes{}}});
  refused("two regions", OpKind::cond, {}, {});
  refused("have no class", OpKind::cross_entropy, {{DType::f32, {{"vocab", 0}}}, start, scalar(DType::i64)},
          {{"axis", std::string("vocab")}});
  const auto constant = [&](const char* dtype, double value) {
    return error_of(OpKind::constant, {},
                    {{"dtype", std::string(dtype)}, {"axes", Names{}}, {"sizes", Sizes{}}, {"value", value}});
  };
  CHECK(constant("f32", 0x1p-126) == "");
  CHECK(constant("f64", 1e-310) == "");
  CHECK(constant("bool", 1) == "");
  CHECK(constant("i32", -0x1p31) == "");
  for (const auto& [dtype, value] : std::initializer_list<std::pair<const char*, double>>{{"f32", 1e-40},
                                                                                          {"bf16", -1e-40},
                                                                                          {"bool", 2},
                                                                                          {"bool", 0.5},
                                                                                          {"i32", 0x1p31},
                                                                                          {"u32", -1},
                                                                                          {"i64", 1.5}})
    CHECK_MESSAGE(constant(dtype, value) != "", dtype, " ", value);

  // A loop whose stacked result would have its axis twice, and one with a negative count of constants.
  Block b;
  Builder builder(b);
  const Shape row{DType::f32, {{"batch", 2}}}, own{DType::f32, {{"pos", 8}}};
  const ValueId fixed = b.add_param(own), carry = b.add_param(row),
                xs = b.add_param({DType::f32, {{"pos", 8}, {"batch", 2}}});
  Block body;
  const ValueId y = body.add_param(own);
  body.results = {body.add_param(row), y};
  body.add_param(row);
  const auto scan = [&](int64_t consts, int64_t carries) {
    return builder.try_add(OpKind::scan, {fixed, carry, xs},
                           {{"axis", std::string("pos")},
                            {"length", int64_t{8}},
                            {"consts", consts},
                            {"carries", carries},
                            {"reverse", int64_t{0}}},
                           {body});
  };
  CHECK(scan(1, 1).error().message().find("twice") != std::string::npos);
  CHECK(scan(-1, 1).error().message().find("-1 consts") != std::string::npos);
}

TEST_CASE("attention's masks and sink have their types and axes, one operand for each attribute") {
  const Shape q{DType::f32, {{"batch", 2}, {"pos", 3}, {"heads", 2}, {"dim", 4}}},
      k{DType::f32, {{"batch", 2}, {"key_pos", 5}, {"heads", 2}, {"dim", 4}}}, origin = scalar(DType::i64);
  const auto error = [&](std::vector<Shape> rest, const std::string& attribute, double scale = 0.5) {
    Attrs attrs{{"query", std::string("pos")},
                {"key", std::string("key_pos")},
                {"head_dim", std::string("dim")},
                {"scale", scale}};
    if (!attribute.empty()) attrs.set(attribute, int64_t{attribute == "window" ? -3 : 1});
    rest.insert(rest.begin(), {q, k, k});
    return error_of(OpKind::attention, rest, std::move(attrs));
  };
  const Shape heads{DType::f32, {{"heads", 2}}};
  CHECK(error({origin}, "") == "");
  CHECK(error({origin, heads}, "sink") == "");
  CHECK(error({origin, {DType::i32, {{"batch", 2}}}}, "prefix") == "");
  for (const Shape& sink :
       {heads.with_dtype(DType::bf16), scalar(DType::f32), Shape{DType::f32, {{"batch", 2}, {"heads", 2}}}})
    CHECK_MESSAGE(error({origin, sink}, "sink").find("sink") != std::string::npos, sink.str());
  CHECK(error({origin, {DType::f32, {{"batch", 2}}}}, "prefix").find("must be i32") != std::string::npos);
  CHECK(error({origin, {DType::i32, {{"batch", 3}}}}, "key_limit").find("none of") != std::string::npos);
  CHECK(error({origin, {DType::boolean, {{"pos", 3}}}}, "visible").find("no axis \"key_pos\"") !=
        std::string::npos);
  CHECK(error({origin}, "segments").find("q_segments is missing") != std::string::npos);
  CHECK(error({origin, heads}, "").find("2 operands behind q, k, v for attributes that ask for 1") !=
        std::string::npos);
  CHECK(error({origin}, "window").find("window -3") != std::string::npos);
  CHECK(error({origin}, "", -1).find("scale -1") != std::string::npos);
  // Where a mask makes an axis behind the queries one of the batch, a sink's gradient would have no one
  // order.
  CHECK(error({{DType::i32, {{"heads", 2}}}, heads}, "sink").find("must stand before") != std::string::npos);
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
