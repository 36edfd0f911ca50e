// What is drawn for a whole program: axes, leaves, the mix of ops, and the combinations it must hold.
#include <algorithm>
#include <numeric>

#include "generator.h"
#include "ostro/base/check.h"
#include "random_program.h"

namespace ostro::fuzz {
namespace {

using K = OpKind;

// Every third program is differentiated.
constexpr uint64_t kSmoothEvery = 3;
// Targets of a program.
constexpr uint64_t kSmoothTargets = 2, kTargets = 4;

// Entries [first, first + count) of the list in an order that parts neighbours, again from the start after
// its end.
std::vector<Combination> section(const std::vector<Combination>& list, uint64_t first, uint64_t count) {
  const uint64_t n = list.size();
  uint64_t stride = 211;
  while (std::gcd(stride, n) != 1) ++stride;
  std::vector<Combination> chosen;
  for (uint64_t i = 0; i < count; ++i) chosen.push_back(list[(first + i) % n * stride % n]);
  return chosen;
}

std::vector<Combination> legal_where(bool differentiated) {
  std::vector<Combination> list;
  for (const Combination& c : legal_combinations())
    if ((c.place == Place::differentiated) == differentiated) list.push_back(c);
  return list;
}

std::vector<Combination> targets_of(uint64_t seed) {
  static const auto plain = legal_where(false), differentiated = legal_where(true);
  constexpr uint64_t rounds = kSeedsForAll / kSmoothEvery - 1;  // whole ones among that many seeds
  OSTRO_CHECK(differentiated.size() <= rounds * kSmoothTargets &&
                  plain.size() <= rounds * (kSmoothEvery - 1) * kTargets,
              "{} seeds cannot hold {} + {} combinations: raise the targets of a program", kSeedsForAll,
              plain.size(), differentiated.size());
  const uint64_t round = seed / kSmoothEvery, place = seed % kSmoothEvery;
  if (place == 0) return section(differentiated, round * kSmoothTargets, kSmoothTargets);
  return section(plain, (round * (kSmoothEvery - 1) + place - 1) * kTargets, kTargets);
}

struct Family {
  int64_t weight;
  std::vector<OpKind> kinds;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all{
      {4,
       {K::neg, K::abs, K::exp, K::log, K::log2, K::log1p, K::tanh, K::sin, K::cos, K::erf, K::erfinv,
        K::sqrt, K::rsqrt, K::sigmoid, K::floor, K::is_finite}},
      {4, {K::add, K::sub, K::mul, K::div, K::min, K::max}},
      {3, {K::rem, K::bit_and, K::bit_or, K::bit_xor, K::shl, K::shr, K::logical_not}},
      {2, {K::eq, K::ne, K::lt, K::le, K::gt, K::ge}},
      {2, {K::cast, K::use, K::select}},
      {5,
       {K::broadcast, K::transpose, K::rename, K::split_axis, K::merge_axes, K::slice, K::pad, K::concat,
        K::split, K::stack, K::unstack, K::reverse}},
      {2, {K::dynamic_slice, K::dynamic_update_slice, K::gather, K::scatter_add}},
      {1, {K::sort, K::top_k, K::argmax}},
      {2, {K::sum, K::sum, K::reduce_max, K::reduce_min, K::tree_sum}},
      {2, {K::dot}},
      {1, {K::expert_dot, K::expert_outer}},
      {1, {K::dequantize}},
      {1, {K::quantize, K::dot_int8}},
      {1, {K::expert_dot_int8, K::expert_outer_int8}},
      {1, {K::attention, K::attention_grad}},
      {1, {K::paged_write, K::paged_attention}},
      {1, {K::cross_entropy, K::cross_entropy_sum, K::cross_entropy_grad}},
      {2, {K::box_sumsq, K::fingerprint}},
      {2, {K::constant, K::iota, K::random, K::fold_in}},
      {2, {K::cond, K::custom}},
      {2, {K::scan}},
  };
  return all;
}

}  // namespace

World::World(uint64_t seed) : rng(seed), smooth(seed % kSmoothEvery == 0), targets(targets_of(seed)) {
  const int64_t pos = rng.chance(0.12) ? rng.between(129, 140) : rng.between(3, 9);
  axes = {{"batch", rng.between(1, 3)},
          {"pos", pos},
          {"embed", rng.pick(std::vector<int64_t>{3, 8, 17, 33, 64})},
          {"mlp", rng.pick(std::vector<int64_t>{5, 16, 24, 40})},
          {"vocab", rng.pick(std::vector<int64_t>{7, 16, 33, 70})},
          {"kv_heads", rng.between(1, 3)},
          {"group", rng.between(1, 3)},
          {"experts", rng.between(2, 3)}};
  // A third has axes of one element, but not where leaves are to cut what is added.
  const bool cut_by_leaves = std::any_of(targets.begin(), targets.end(),
                                         [](const Combination& t) { return t.place == Place::leaf_cut; });
  if (!cut_by_leaves && rng.chance(0.33))
    for (Axis& a : axes)
      if (rng.chance(0.3)) a.size = 1;
  for (const char* name : {"kv_heads", "mlp", "vocab", "pos", "experts", "embed"})
    if (rng.chance(0.4)) leaves.axes.emplace_back(name, rng.between(2, 4));
  for (const char* name : {"batch", "group"})
    if (rng.chance(0.15)) leaves.axes.emplace_back(name, rng.between(2, 4));
  rng.shuffle(leaves.axes);
  // What is asked for in a derivative stands in a scan now and then.
  for (Combination& t : targets)
    if (smooth && t.kind != K::scan && rng.chance(0.5)) t.place = Place::in_scan;
}

const Axis& World::axis(const std::string& name) const {
  for (const Axis& a : axes)
    if (a.name == name) return a;
  OSTRO_CHECK(false, "no axis {}", name);
}

std::vector<Axis> World::some_axes() {
  std::vector<Axis> chosen;
  int64_t count = 1;
  for (int64_t i = rng.between(1, 3); i > 0; --i) {
    const Axis& a = rng.pick(axes);
    if (std::find(chosen.begin(), chosen.end(), a) != chosen.end() || count * a.size > 4000) continue;
    chosen.push_back(a);
    count *= a.size;
  }
  return chosen;
}

void World::cut(const std::string& axis) {
  if (leaves.count(axis) == 1) leaves.axes.emplace_back(axis, rng.between(2, 4));
}

OpKind World::some_kind(bool allow_scan) {
  int64_t total = 0;
  for (const Family& f : families()) total += f.weight;
  for (;;) {
    int64_t at = rng.below(total);
    const Family* family = families().data();
    for (; at >= family->weight; ++family) at -= family->weight;
    const OpKind kind = rng.pick(family->kinds);
    if ((!smooth || has_derivative(kind)) && (allow_scan || kind != K::scan)) return kind;
  }
}

DType World::some_dtype(OpKind kind) {
  const std::vector<DType> legal = legal_dtypes(kind);
  std::vector<DType> narrow;
  for (DType d : legal)
    if (d == DType::f32 || d == DType::bf16) narrow.push_back(d);
  return !narrow.empty() && (smooth || rng.chance(0.7)) ? rng.pick(narrow) : rng.pick(legal);
}

}  // namespace ostro::fuzz
