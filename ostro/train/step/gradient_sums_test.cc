// Sums of leaves with partials that are rounded (numerics.md, N8), by hand.
#include "ostro/train/step/gradient_sums.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/numerics/bf16.h"
#include "ostro/numerics/fp_env.h"

namespace ostro::train {
namespace {

using runtime::Buffer;

// A number that bf16 does not hold, another one for each leaf.
float of_leaf(int64_t leaf) { return 1.0f + static_cast<float>(leaf) * 0.0123f; }

// The sum over all leaves, pushed one by one.
float sum(int64_t leaves, int64_t groups) {
  const auto engine = interp::make_interpreter();
  GradientAdder adder(*engine);
  SubtreeSums sums(leaves, groups, adder);
  for (int64_t i = 0; i < leaves; ++i) {
    Buffer b = Buffer::scalar(ir::DType::f32, of_leaf(i));
    const Status pushed = sums.push({i, 1}, {b});
    REQUIRE(pushed.ok());
  }
  return sums.root()[0].item<float>();
}

TEST_CASE("gradient sums: the largest subtrees of each group are rounded, nothing else is") {
  const numerics::HostArithmetic environment;
  const auto r = numerics::round_to_bf16;
  const auto v = of_leaf;
  // Five leaves: ((0 + 1) + (2 + 3)) + 4. Two groups: 0 and 1; 2, 3 and 4.
  CHECK(sum(5, 0) == ((v(0) + v(1)) + (v(2) + v(3))) + v(4));
  CHECK(sum(5, 2) == (r(v(0) + v(1)) + r(v(2) + v(3))) + r(v(4)));
  CHECK(sum(5, 2) != sum(5, 0));
  CHECK(sum(4, 2) == r(v(0) + v(1)) + r(v(2) + v(3)));
  CHECK(sum(4, 1) == r((v(0) + v(1)) + (v(2) + v(3))));
  // Each leaf a group, also with more groups than leaves.
  CHECK(sum(3, 3) == (r(v(0)) + r(v(1))) + r(v(2)));
  CHECK(sum(3, 8) == sum(3, 3));
}

TEST_CASE("gradient sums: the compiled program rounds as the interpreter, in place if nobody else reads") {
  const auto interpreter = interp::make_interpreter();
  const auto compiled = cpu::make_cpu_engine({.isa = {}, .threads = 2, .generated_code = false}).value();
  const ir::Shape shape{ir::DType::f32, {{"embed", 1031}}};
  Buffer x = Buffer::empty(shape);
  for (size_t i = 0; i < 1031; ++i) x.mutable_as<float>()[i] = of_leaf(static_cast<int64_t>(i) * 37) - 20;
  using Limits = std::numeric_limits<float>;
  const float special[] = {0.0f,
                           -0.0f,
                           Limits::infinity(),
                           -Limits::infinity(),
                           Limits::max(),
                           Limits::min(),
                           Limits::quiet_NaN(),
                           std::bit_cast<float>(0x3f808000u),  // halfway: to even
                           std::bit_cast<float>(0x3f818000u)};
  std::copy(std::begin(special), std::end(special), x.mutable_as<float>().begin());
  for (runtime::Engine* engine : {interpreter.get(), static_cast<runtime::Engine*>(compiled.get())}) {
    GradientAdder adder(*engine);
    Buffer kept = Buffer::empty(shape);
    std::ranges::copy(x.as<float>(), kept.mutable_as<float>().begin());
    const auto rounded = adder.round({x}).value();  // `x` is still ours
    for (size_t i = 0; i < 1031; ++i) {
      const auto bits = [](float v) { return std::bit_cast<uint32_t>(v); };
      CHECK(bits(rounded[0].as<float>()[i]) == bits(numerics::round_to_bf16(kept.as<float>()[i])));
      CHECK(bits(x.as<float>()[i]) == bits(kept.as<float>()[i]));
    }
    const std::byte* const place = kept.bytes().data();
    std::vector<Buffer> alone;
    alone.push_back(std::move(kept));
    const bool in_place = adder.round(std::move(alone)).value()[0].bytes().data() == place;
    CHECK(in_place == (engine == compiled.get()));  // the interpreter writes nowhere twice
  }
}

TEST_CASE("gradient sums: partials in any parts give the same, and rounding again changes nothing") {
  const auto engine = interp::make_interpreter();
  for (const int64_t groups : {0, 1, 2, 3, 4})
    for (int64_t leaves = 1; leaves <= 9; ++leaves)
      for (int64_t workers = 1; workers <= 4; ++workers) {
        GradientAdder adder(*engine);
        SubtreeSums all(leaves, groups, adder);
        for (int64_t worker = 0; worker < workers; ++worker) {
          SubtreeSums own(leaves, groups, adder);
          const LeafRange range = leaf_range(leaves, workers, worker);
          for (int64_t i = range.begin; i < range.end; ++i)
            REQUIRE(own.push({i, 1}, {Buffer::scalar(ir::DType::f32, of_leaf(i))}).ok());
          for (auto& [node, partial] : own.take()) REQUIRE(all.push(node, std::move(partial)).ok());
        }
        CHECK(all.root()[0].item<float>() == sum(leaves, groups));
      }
}

TEST_CASE("gradient sums: subtrees in groups cover a range, and none has leaves of two groups") {
  for (const int64_t groups : {1, 2, 3, 5})
    for (int64_t leaves = 1; leaves <= 12; ++leaves)
      for (int64_t begin = 0; begin < leaves; ++begin) {
        int64_t next = begin;
        for (const Subtree& node : subtrees_in_groups(leaves, groups, {begin, leaves})) {
          CHECK(node.first == next);
          next += node.count;
          int64_t touched = 0;
          for (int64_t g = 0; g < groups; ++g) {
            const LeafRange own = leaf_range(leaves, groups, g);
            touched += own.begin < node.first + node.count && node.first < own.end ? 1 : 0;
          }
          CHECK(touched == 1);
        }
        CHECK(next == leaves);
      }
  CHECK(subtrees_in_groups(6, 0, {0, 6}) == std::vector<Subtree>{{0, 6}});
  CHECK(!is_rounded(6, 0, {0, 6}));
}

}  // namespace
}  // namespace ostro::train
