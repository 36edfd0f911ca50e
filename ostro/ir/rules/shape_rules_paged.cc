// Shape rules of paged_write and paged_attention (docs/spec/ops.md).
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/rules/shape_rules.h"

namespace ostro::ir::rules {
namespace {

// A pool has the axes page, slot and the others in any order, slot of kPageSlots.
Status check_pool(const Op& op, const char* name, const Shape& pool) {
  if (pool.dtype != DType::f32 && pool.dtype != DType::bf16)
    return fail(op, fmt::format("{} is {}; a pool is f32 or bf16", name, pool.str()));
  for (const char* attribute : {"page", "slot"})
    if (!pool.has(op.attrs.str(attribute)))
      return fail(op, fmt::format("{} {} has no axis \"{}\"", name, pool.str(), op.attrs.str(attribute)));
  const std::string& slot = op.attrs.str("slot");
  if (slot == op.attrs.str("page"))
    return fail(op, fmt::format("axis \"{}\" of {} {} is both page and slot", slot, name, pool.str()));
  if (pool.size_of(slot) != kPageSlots)
    return fail(op, fmt::format("axis \"{}\" of {} {} is {}; a page has {} slots", slot, name, pool.str(),
                                pool.size_of(slot), kPageSlots));
  return Status();
}

Status check_index(const Op& op, const char* name, const Shape& s, const std::vector<Axis>& axes) {
  if (s == Shape{DType::i32, axes}) return Status();
  return fail(op, fmt::format("{} is {}, not {}", name, s.str(), (Shape{DType::i32, axes}).str()));
}

// The axes that a pool shares with q: at most one, of the heads of keys and values.
std::vector<Axis> heads_of(const Op& op, const Shape& pool) {
  std::vector<Axis> heads;
  for (const Axis& a : pool.axes)
    if (a.name != op.attrs.str("page") && a.name != op.attrs.str("slot") &&
        a.name != op.attrs.str("head_dim"))
      heads.push_back(a);
  return heads;
}

Status check_pools(const Op& op, const Shape& q, const Shape& keys, const Shape& values) {
  std::set<std::string> roles;
  for (const char* attribute : {"row", "page", "slot", "entry", "head_dim"})
    if (!roles.insert(op.attrs.str(attribute)).second)
      return fail(op, fmt::format("axis \"{}\" has two roles", op.attrs.str(attribute)));
  for (const char* attribute : {"page", "slot"})
    if (q.has(op.attrs.str(attribute)))
      return fail(op, fmt::format("q {} has the axis \"{}\" of pools", q.str(), op.attrs.str(attribute)));
  if (keys.has(op.attrs.str("row")))
    return fail(op, fmt::format("key_pool {} has the axis \"{}\" of rows", keys.str(), op.attrs.str("row")));
  RETURN_IF_ERROR(check_pool(op, "key_pool", keys));
  RETURN_IF_ERROR(check_pool(op, "value_pool", values));
  const std::string& dim = op.attrs.str("head_dim");
  for (const auto& [name, s] : {std::pair{"q", &q}, {"key_pool", &keys}, {"value_pool", &values}}) {
    if (!s->has(dim)) return fail(op, fmt::format("{} {} has no axis \"{}\"", name, s->str(), dim));
    if (s->dtype != keys.dtype)
      return fail(op, fmt::format("{} {} and key_pool {} differ in dtype", name, s->str(), keys.str()));
    if (s->size_of(dim) < 1 || s->size_of(dim) > kMaxHeadDim)
      return fail(op, fmt::format("axis \"{}\" of {} {} is {}; a head is 1 to {} wide", dim, name, s->str(),
                                  s->size_of(dim), kMaxHeadDim));
  }
  if (q.axes.back().name != dim)
    return fail(op, fmt::format("axis \"{}\" must be last in q {}; transpose", dim, q.str()));
  if (q.size_of(dim) != keys.size_of(dim))
    return fail(op, fmt::format("axis \"{}\" is {} in q {} but {} in key_pool {}", dim, q.size_of(dim),
                                q.str(), keys.size_of(dim), keys.str()));
  const std::vector<Axis> heads = heads_of(op, keys);
  if (heads != heads_of(op, values) ||
      keys.size_of(op.attrs.str("page")) != values.size_of(op.attrs.str("page")))
    return fail(op, fmt::format("key_pool {} and value_pool {} differ in pages or heads; only \"{}\" and the "
                                "order of axes may differ",
                                keys.str(), values.str(), dim));
  if (heads.size() > 1)
    return fail(op, fmt::format("key_pool {} has the axes \"{}\" and \"{}\" beside page, slot and head; at "
                                "most one",
                                keys.str(), heads[0].name, heads[1].name));
  for (const Axis& a : heads)
    if (q.find(a.name) < 0 || q.size_of(a.name) != a.size)
      return fail(op, fmt::format("axis \"{}\" of key_pool {} is not in q {}", a.name, keys.str(), q.str()));
  return Status();
}

}  // namespace

Shapes paged_write(const Op& op, In in) {
  const Shape &pool = in[0], &rows = in[1];
  RETURN_IF_ERROR(check_pool(op, "pool", pool));
  const std::string& row = op.attrs.str("row");
  RETURN_IF_ERROR(need_axis(op, rows, row));
  const auto of_one = [&](const Shape& s, std::initializer_list<std::string> without) {
    std::vector<std::pair<std::string, int64_t>> axes;
    for (const Axis& a : s.axes)
      if (std::find(without.begin(), without.end(), a.name) == without.end())
        axes.emplace_back(a.name, a.size);
    std::sort(axes.begin(), axes.end());
    return axes;
  };
  if (pool.has(row) || rows.dtype != pool.dtype ||
      of_one(rows, {row}) != of_one(pool, {op.attrs.str("page"), op.attrs.str("slot")}))
    return fail(op, fmt::format("rows {} do not fit pool {}: a row has its dtype, and its axes without page "
                                "and slot",
                                rows.str(), pool.str()));
  RETURN_IF_ERROR(check_index(op, "place", in[2], {{row, rows.size_of(row)}}));
  return std::vector<Shape>{pool};
}

Shapes paged_attention(const Op& op, In in) {
  const Shape &q = in[0], &keys = in[1], &values = in[2];
  RETURN_IF_ERROR(attention_attributes(op));
  const std::string &row = op.attrs.str("row"), &entry = op.attrs.str("entry");
  RETURN_IF_ERROR(need_axis(op, q, row));
  RETURN_IF_ERROR(check_pools(op, q, keys, values));
  const Axis rows{row, q.size_of(row)};
  RETURN_IF_ERROR(need_axis(op, in[3], entry));
  RETURN_IF_ERROR(check_index(op, "table", in[3], {rows, {entry, in[3].size_of(entry)}}));
  RETURN_IF_ERROR(check_index(op, "position", in[4], {rows}));
  std::vector<Axis> heads;  // of q: those of keys, then at most one of queries that share them
  for (const Axis& a : q.axes)
    if (a.name != row && a.name != op.attrs.str("head_dim")) heads.push_back(a);
  if (heads.size() > heads_of(op, keys).size() + 1)
    return fail(op, fmt::format("q {} has more than one axis of heads that key_pool {} has not; merge them",
                                q.str(), keys.str()));
  if (op.attrs.i64("sink", 0) != 0) {
    const Shape& sink = in[5];
    bool fits = sink.dtype == DType::f32 && sink.axes.size() == heads.size();
    for (const Axis& a : heads) fits = fits && sink.find(a.name) >= 0 && sink.size_of(a.name) == a.size;
    if (!fits)
      return fail(op, fmt::format("sink {} is not {}", sink.str(), (Shape{DType::f32, heads}).str()));
  }
  Shape out = q;
  out.axes.back().size = values.size_of(op.attrs.str("head_dim"));
  return std::vector<Shape>{out};
}

}  // namespace ostro::ir::rules
