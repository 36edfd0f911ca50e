// exchange_leaves by hand, with both engines: workers of one and of two mesh axes, rounds in which not every
// worker has a leaf, arrays that are cut and arrays that are not.
#include "ostro/spmd/leaf_exchange.h"

#include <limits>

#include "ostro/dist/loop_collectives.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/program/op_table.h"
#include "ostro/ir/text/text.h"
#include "ostro/spmd/parts_for_test.h"

namespace ostro::spmd {
namespace {

using runtime::Buffer;

struct Round {
  ir::Mesh mesh;
  std::string mesh_axes;
  std::vector<int64_t> owners, firsts, counts;
  std::string axis;
  std::vector<int64_t> bounds;
};

ir::Attrs attrs_of(const Round& r, int64_t part) {
  ir::Attrs attrs{{"mesh_axes", r.mesh_axes},
                  {"owners", r.owners},
                  {"part", part},
                  {"firsts", r.firsts},
                  {"counts", r.counts}};
  if (!r.axis.empty()) attrs.set("axis", r.axis), attrs.set("bounds", r.bounds);
  return attrs;
}

ir::Program program_of(const Round& r, const ir::Shape& x, int64_t part) {
  ir::Program p;
  p.name = "exchange";
  p.body.add_param(x);
  p.body.results = {ir::Builder(p.body).add(ir::OpKind::exchange_leaves, {0}, attrs_of(r, part))};
  return p;
}

// What each worker gets when worker w's leaf gives leaves[w].
std::vector<Buffer> run_round(runtime::Engine& engine, const Round& r, const std::vector<Buffer>& leaves) {
  std::vector<Buffer> out(leaves.size());
  const Status status = dist::run_workers(r.mesh, [&](runtime::Collectives& group) -> Status {
    const auto rank = static_cast<size_t>(group.rank());
    const ir::Program p = program_of(r, leaves[rank].shape(), r.owners[rank]);
    ASSIGN_OR_RETURN(auto executable, engine.compile(p));
    ASSIGN_OR_RETURN(auto results, executable->run({leaves[rank]}, {&group}));
    out[rank] = results[0];
    return Status();
  });
  REQUIRE_MESSAGE(status.ok(), (status.ok() ? "" : status.error().message()));
  return out;
}

// The tree of N8, written once more.
float tree(const std::vector<float>& v) {
  if (v.size() == 1) return v[0];
  size_t left = 1;
  while (2 * left < v.size()) left *= 2;
  const auto cut = v.begin() + static_cast<int64_t>(left);
  return tree({v.begin(), cut}) + tree({cut, v.end()});
}

float chain(const std::vector<float>& v) {
  float sum = v[0];
  for (size_t i = 1; i < v.size(); ++i) sum = sum + v[i];
  return sum;
}

std::vector<Buffer> with_engines(const Round& r, const std::vector<Buffer>& leaves) {
  const auto by_text = run_round(*test_engine(), r, leaves), fast = run_round(*compiled_engine(), r, leaves);
  for (size_t w = 0; w < leaves.size(); ++w) CHECK(same_bits(by_text[w], fast[w]));
  return fast;
}

Buffer row(std::vector<float> values) {
  const ir::Shape shape{ir::DType::f32, {{"n", static_cast<int64_t>(values.size())}}};
  return Buffer::copy_of(shape, values.data());
}

std::vector<float> values_of(const Buffer& b) { return {b.as<float>().begin(), b.as<float>().end()}; }

TEST_CASE("sums by hand: the order of the additions decides the last bit") {
  const float e = 0x1p-24f, one = 1.0f, next = 1.0f + 0x1p-23f;
  // Four leaves: (1 + e) + (e + e). As a chain it would be 1.
  Round r{{{{"data", 4}}}, "data", {0, 1, 2, 3}, {0}, {4}, "n", {0, 1, 2, 3, 4}};
  const auto four =
      with_engines(r, {row({one, e, 1, 5}), row({e, e, 2, 0}), row({e, one, 3, 0}), row({e, e, 4, 0})});
  for (const Buffer& b : four) CHECK(b.shape().str() == "f32[part:1, n:1]");
  CHECK(values_of(four[0]) == std::vector<float>{next});
  CHECK(values_of(four[1]) == std::vector<float>{(e + e) + (one + e)});
  CHECK(values_of(four[2]) == std::vector<float>{10});
  CHECK(values_of(four[3]) == std::vector<float>{5});
  // Three leaves: (1 + e) + e is 1; joined from the right it would be next. All workers own everything.
  r = {{{{"data", 3}}}, "data", {0, 0, 0}, {0}, {3}, "", {}};
  for (const Buffer& b : with_engines(r, {row({one, e}), row({e, e}), row({e, one})}))
    CHECK(values_of(b) == std::vector<float>{one, next});
  // The last round of five leaves over three workers: leaf 3 is the right half of a subtree whose left half
  // was in the round before, leaf 4 is alone, the third worker has none.
  r = {{{{"data", 3}}}, "data", {0, 1, 2}, {0, 1}, {1, 1}, "n", {0, 2, 3, 3}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto last = with_engines(r, {row({1, 2, 3}), row({4, 5, 6}), row({nan, nan, nan})});
  CHECK(values_of(last[0]) == std::vector<float>{1, 2, 4, 5});
  CHECK(values_of(last[1]) == std::vector<float>{3, 6});
  CHECK(last[2].shape().count() == 0);
}

// Every cell, from every worker, against the tree over the leaves; some of them would differ in a chain.
void check_round(const Round& r, const ir::Shape& x) {
  std::vector<char> used(r.owners.size(), 0);
  for (size_t i = 0; i < r.firsts.size(); ++i) std::fill_n(used.begin() + r.firsts[i], r.counts[i], 1);
  std::vector<Buffer> leaves;
  for (size_t w = 0; w < r.owners.size(); ++w) {
    leaves.push_back(test_input(x, static_cast<uint32_t>(w) + 1));
    if (used[w] == 0)
      for (float& f : leaves.back().mutable_as<float>()) f = std::numeric_limits<float>::quiet_NaN();
  }
  const auto got = with_engines(r, leaves);
  bool differs = false, needs_order = false;
  for (size_t w = 0; w < got.size(); ++w) {
    Layout layout(x.axes.size());
    const auto owner = static_cast<size_t>(r.owners[w]);
    if (!r.axis.empty()) layout[static_cast<size_t>(x.find(r.axis))] = {"own", r.bounds, {}};
    const ir::Mesh own{{{"own", static_cast<int64_t>(r.bounds.size()) - 1}}};
    std::vector<Buffer> slices;
    for (const Buffer& leaf : leaves)
      slices.push_back(r.axis.empty() ? leaf : shard(own, static_cast<int64_t>(owner), layout, leaf));
    const auto n = static_cast<size_t>(slices[0].shape().count());
    REQUIRE(got[w].shape().count() == static_cast<int64_t>(n * r.firsts.size()));
    for (size_t i = 0; i < r.firsts.size(); ++i)
      for (size_t k = 0; k < n; ++k) {
        std::vector<float> column;
        for (int64_t p = 0; p < r.counts[i]; ++p)
          column.push_back(slices[static_cast<size_t>(r.firsts[i] + p)].as<float>()[k]);
        differs |= got[w].as<float>()[i * n + k] != tree(column);
        needs_order |= tree(column) != chain({column.rbegin(), column.rend()});
      }
  }
  CHECK_FALSE(differs);
  if (*std::max_element(r.counts.begin(), r.counts.end()) > 2) CHECK(needs_order);
}

TEST_CASE("rounds over two, three and four workers; a cut axis in any place, and none") {
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> subtrees[] = {
      {{{0}, {2}}, {{0, 1}, {1, 1}}, {{0}, {1}}},
      {{{0}, {3}}, {{0, 2}, {2, 1}}, {{0, 1}, {1, 2}}, {{0}, {2}}, {{1}, {2}}},
      {{{0}, {4}}, {{0}, {3}}, {{0, 1, 3}, {1, 2, 1}}, {{0, 2}, {2, 1}}, {{1}, {3}}}};
  for (int64_t workers : {2, 3, 4})
    for (const auto& [firsts, counts] : subtrees[workers - 2])
      for (const char* axis : {"", "a", "b", "c"}) {
        const ir::Shape x{ir::DType::f32, {{"a", 10}, {"b", 11}, {"c", 60}}};
        Round r{{{{"data", workers}}}, "data", {}, firsts, counts, axis, {}};
        const int64_t size = r.axis.empty() ? 1 : x.size_of(axis), each = (size + workers - 1) / workers;
        for (int64_t w = 0; w < workers; ++w) r.owners.push_back(r.axis.empty() ? 0 : w);
        for (int64_t w = 0; w <= workers; ++w) r.bounds.push_back(std::min(size, w * each));
        check_round(r, x);
      }
}

TEST_CASE("replicas own the same cells") {
  const ir::Shape x{ir::DType::f32, {{"a", 7}, {"b", 9}}};
  for (const auto& [firsts, counts] :
       {std::pair<std::vector<int64_t>, std::vector<int64_t>>{{0}, {4}}, {{0, 2}, {2, 1}}, {{0}, {3}}})
    check_round(
        {{{{"replica", 2}, {"data", 2}}}, "replica*data", {0, 1, 0, 1}, firsts, counts, "b", {0, 5, 9}}, x);
}

TEST_CASE("what does not fit is refused; the text round-trips; memory is counted") {
  const ir::Shape x{ir::DType::f32, {{"a", 64}, {"b", 40}}};
  const Round good{{{{"data", 2}}}, "data", {0, 1}, {0}, {2}, "b", {0, 24, 40}};
  const auto refused = [&](Round r, ir::Shape shape, int64_t part) {
    ir::Op op{ir::OpKind::exchange_leaves, {0}, {}, attrs_of(r, part), {}, "", "", ""};
    return !ir::infer_shapes(op, std::span(&shape, 1)).ok();
  };
  CHECK_FALSE(refused(good, x, 0));
  CHECK(refused(good, x, 2));
  CHECK(refused(good, x.with_dtype(ir::DType::f64), 0));
  CHECK(refused(good, {ir::DType::f32, {{"part", 2}, {"b", 40}}}, 0));
  for (auto break_it : std::vector<void (*)(Round&)>{
           [](Round& r) { r.bounds = {0, 24, 41}; }, [](Round& r) { r.bounds = {0, 41, 40}; },
           [](Round& r) { r.bounds = {40}; }, [](Round& r) { r.axis = "z"; },
           [](Round& r) { r.owners = {0, 2}; }, [](Round& r) { r.owners = {1, 1}; },
           [](Round& r) { r.counts = {3}; }, [](Round& r) { r.counts = {0}; },
           [](Round& r) { r.firsts = {-1}; }, [](Round& r) { r.firsts = {}, r.counts = {}; },
           [](Round& r) { r.firsts = {1, 0}, r.counts = {1, 1}; },
           [](Round& r) { r.firsts = {0, 1}, r.counts = {2, 1}; }, [](Round& r) { r.mesh_axes = ""; }}) {
    Round bad = good;
    break_it(bad);
    CHECK(refused(bad, x, 0));
  }
  const ir::Program p = program_of(good, x, 0);
  CHECK(ir::print(ir::parse_program(ir::print(p)).value()) == ir::print(p));
  // Two slices of 64 x 24, and x part by part, because a comes before b.
  const auto executable = compiled_engine()->compile(p).value();
  CHECK(executable->info().arena_bytes == 4 * (2 * 64 * 24 + 64 * 40));
  Round rows = good;
  rows.axis = "a", rows.bounds = {0, 32, 64};
  CHECK(compiled_engine()->compile(program_of(rows, x, 0)).value()->info().arena_bytes == 4 * 2 * 32 * 40);
}

}  // namespace
}  // namespace ostro::spmd
