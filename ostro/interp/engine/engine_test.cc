#include "ostro/interp/engine/engine.h"

#include <doctest/doctest.h>

#include "ostro/interp/engine/eval_for_test.h"

namespace ostro::interp {
namespace {

TEST_CASE("every op has a function") {
  for (int i = 0; i < ir::kOpCount; ++i)
    CHECK_MESSAGE(interprets(static_cast<OpKind>(i)), std::string(ir::op_name(static_cast<OpKind>(i))));
}

// carry' = carry + const * x; y = carry'.
ir::Block running_sum() {
  ir::Block body;
  const ir::ValueId scale = body.add_param(ir::scalar(ir::DType::f32));
  const ir::ValueId carry = body.add_param(ir::scalar(ir::DType::f32));
  const ir::ValueId x = body.add_param(ir::scalar(ir::DType::f32));
  ir::Builder b(body);
  const ir::ValueId next = b.add(OpKind::add, {carry, b.add(OpKind::mul, {scale, x})});
  body.results = {next, next};
  return body;
}

TEST_CASE("scan runs forwards and backwards, ys stand at their index") {
  for (int64_t reverse : {0, 1}) {
    const auto out = eval_n(OpKind::scan, {f32({}, {2}), f32({}, {1}), f32({{"n", 3}}, {1, 10, 100})},
                            {{"axis", std::string("n")},
                             {"length", int64_t{3}},
                             {"consts", int64_t{1}},
                             {"carries", int64_t{1}},
                             {"reverse", reverse}},
                            {}, {running_sum()});
    CHECK(out[0].item<float>() == 223);
    CHECK(list<float>(out[1]) ==
          (reverse != 0 ? std::vector<float>{223, 221, 201} : std::vector<float>{3, 23, 223}));
  }
}

TEST_CASE("cond takes one branch, custom its function") {
  ir::Block same_value, negated;
  same_value.results = {same_value.add_param(ir::scalar(ir::DType::f32))};
  negated.add_param(ir::scalar(ir::DType::f32));
  negated.results = {ir::Builder(negated).add(OpKind::neg, {0})};
  auto cond = [&](uint8_t p) {
    return eval_n(OpKind::cond, {boolean({}, {p}), f32({}, {3})}, {}, {}, {same_value, negated})[0]
        .item<float>();
  };
  CHECK(cond(1) == 3);
  CHECK(cond(0) == -3);
  CHECK(eval_n(OpKind::custom, {f32({}, {3})}, {}, {}, {negated, negated, negated})[0].item<float>() == -3);
}

TEST_CASE("inputs are checked") {
  ir::Program p;
  p.name = "negate";
  p.param_names = {"x"};
  p.body.add_param({ir::DType::f32, {{"n", 2}}});
  p.body.results = {ir::Builder(p.body).add(OpKind::neg, {0})};
  auto executable = make_interpreter()->compile(p);
  REQUIRE(executable.ok());
  CHECK((*executable)->run({}).error().message() == "program negate takes 1 inputs, 0 given");
  CHECK((*executable)->run({f32({{"n", 3}}, {1, 2, 3})}).error().message() ==
        "program negate: input 0 (x) is f32[n:3], expected f32[n:2]");
  CHECK((*executable)->run({f32({{"n", 2}}, {1, 2})}).ok());
  p.body.values[p.body.results[0]].dtype = ir::DType::i32;
  CHECK(!make_interpreter()->compile(p).ok());
}

// Two workers, of which the other one holds fixed bytes.
class TwoWorkers final : public runtime::Collectives {
 public:
  explicit TwoWorkers(Buffer other) : other_(std::move(other)) {}
  int64_t rank() const override { return 0; }
  int64_t size() const override { return 2; }
  std::vector<int64_t> peers(std::string_view) const override { return {0, 1}; }
  Status exchange(std::span<const int64_t>, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    std::memcpy(receive[0].data(), send[0].data(), send[0].size());
    std::memcpy(receive[1].data(), other_.bytes().data(), receive[1].size());
    return Status();
  }
  int64_t bytes_sent() const override { return 0; }

 private:
  Buffer other_;
};

TEST_CASE("collectives join in worker order and need a group") {
  const std::string mesh = "model", axis = "n";
  auto run = [&](OpKind kind, const Buffer& mine, const Buffer& other, ir::Attrs attrs) {
    ir::Program p;
    p.body.add_param(mine.shape());
    attrs.set("mesh_axis", mesh);
    attrs.set("workers", int64_t{2});
    p.body.results = {ir::Builder(p.body).add(kind, {0}, attrs)};
    auto executable = make_interpreter()->compile(p);
    CHECK((*executable)->run({mine}).ok() == (kind == OpKind::shard_slice));
    TwoWorkers group(other);
    auto out = (*executable)->run({mine}, {&group});
    REQUIRE_MESSAGE(out.ok(), (out.ok() ? "" : out.error().message()));
    return (*out)[0];
  };
  const Buffer a = f32({{"n", 3}}, {1, -0.0f, 3}), b = f32({{"n", 3}}, {10, 20, 30});
  const Buffer short_b = f32({{"n", 1}}, {10});
  CHECK(same<float>(run(OpKind::all_gather, a, short_b,
                        {{"axis", axis}, {"bounds", std::vector<int64_t>{0, 3, 4}}, {"size", int64_t{4}}}),
                    {1, -0.0f, 3, 10}));
  CHECK(same<float>(
      run(OpKind::shard_slice, a, b, {{"axis", axis}, {"start", int64_t{1}}, {"size", int64_t{2}}}),
      {-0.0f, 3}));
  CHECK(same<float>(run(OpKind::all_reduce_tree, a, b, {{"leaves", int64_t{2}}}), {11, 20, 33}));
  CHECK(same<float>(run(OpKind::all_reduce_max, a, b, {}), {10, 20, 30}));
  CHECK(same<int32_t>(run(OpKind::all_reduce_int, i32({{"n", 3}}, {1, 2, 3}), i32({{"n", 3}}, {1, 1, 1}), {}),
                      {2, 3, 4}));
  CHECK(same<float>(
      run(OpKind::all_reduce_bits, f32({{"n", 3}}, {0, -0.0f, 3}), f32({{"n", 3}}, {10, 0, 0}), {}),
      {10, -0.0f, 3}));
  CHECK(same<float>(run(OpKind::reduce_scatter_tree, a, b,
                        {{"axis", axis},
                         {"bounds", std::vector<int64_t>{0, 2, 3}},
                         {"size", int64_t{2}},
                         {"leaves", int64_t{2}}}),
                    {11, 20}));
}

}  // namespace
}  // namespace ostro::interp
