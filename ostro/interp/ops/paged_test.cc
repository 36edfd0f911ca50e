// paged_write and paged_attention: what lies where, and each row against `attention` over contiguous keys.
#include <doctest/doctest.h>

#include <cmath>

#include "ostro/interp/engine/eval_for_test.h"

namespace ostro::interp {
namespace {

const ir::Attrs kWrite{
    {"page", std::string("page")}, {"slot", std::string("slot")}, {"row", std::string("row")}};

ir::Attrs paged_attrs() {
  ir::Attrs attrs = kWrite;
  attrs.set("entry", std::string("entry"));
  attrs.set("head_dim", std::string("dim"));
  attrs.set("scale", 0.5);
  return attrs;
}

std::vector<float> numbers(int64_t n, int salt) {
  std::vector<float> values;
  for (int64_t i = 0; i < n; ++i) values.push_back(std::sin(static_cast<float>(i * 37 + salt)));
  return values;
}

std::string paged_error(OpKind kind, const std::vector<Buffer>& in, const ir::Attrs& attrs) {
  const auto out = try_eval(kind, in, attrs);
  return out.ok() ? "" : out.error().message();
}

TEST_CASE("paged_write puts each row into its page and slot, and leaves the rest") {
  const Buffer pool = f32({{"page", 2}, {"slot", 128}, {"dim", 2}}, numbers(512, 1));
  const Buffer rows = f32({{"row", 3}, {"dim", 2}}, {1, 2, 3, 4, 5, 6});
  std::vector<float> expected = numbers(512, 1);
  expected[2 * 130] = 1, expected[2 * 130 + 1] = 2;  // page 1, slot 2
  expected[0] = 5, expected[1] = 6;
  CHECK(same<float>(eval(OpKind::paged_write, {pool, rows, i32({{"row", 3}}, {130, -1, 0})}, kWrite),
                    expected));
  CHECK(paged_error(OpKind::paged_write, {pool, rows, i32({{"row", 3}}, {1, 256, 0})}, kWrite) ==
        "paged_write: row 1 has place 256, and the pool has places 0 to 255");
  CHECK(paged_error(OpKind::paged_write, {pool, rows, i32({{"row", 3}}, {7, 0, 7})}, kWrite) ==
        "paged_write: row 2 has place 7, as a row before it has");
  CHECK(paged_error(OpKind::paged_write, {pool, rows, i32({{"row", 3}}, {-1, -1, -1})}, kWrite).empty());
}

// A row at position 140 whose pages 0 and 1 are pages 2 and 0 of the pool.
TEST_CASE("a row of paged_attention is attention over the keys of its pages") {
  const std::vector<float> keys = numbers(3 * 128 * 4, 3), values = numbers(3 * 128 * 4, 5);
  const Buffer q = f32({{"row", 2}, {"group", 2}, {"dim", 4}}, numbers(16, 7));
  const std::vector<Axis> pool{{"page", 3}, {"slot", 128}, {"dim", 4}};
  const auto run = [&](const std::vector<float>& k, const ir::Attrs& attrs, std::vector<int32_t> table,
                       std::vector<int32_t> position) {
    return eval(OpKind::paged_attention,
                {q, f32(pool, k), f32(pool, values), i32({{"row", 2}, {"entry", 2}}, table),
                 i32({{"row", 2}}, position)},
                attrs);
  };
  const auto contiguous = [](const std::vector<float>& x) {
    std::vector<float> out(x.begin() + 2 * 512, x.end());
    out.insert(out.end(), x.begin(), x.begin() + 13 * 4);
    return f32({{"key", 141}, {"dim", 4}}, out);
  };
  for (const int64_t window : {0, 20}) {
    ir::Attrs attrs = paged_attrs();
    attrs.set("window", window);
    const Buffer expected = eval(OpKind::attention, {q, contiguous(keys), contiguous(values), origin(140)},
                                 {{"query", std::string("row")},
                                  {"key", std::string("key")},
                                  {"head_dim", std::string("dim")},
                                  {"scale", 0.5},
                                  {"window", window}});
    const Buffer out = run(keys, attrs, {2, 0, 9, 9}, {140, -1});
    std::vector<float> row(expected.as<float>().begin(), expected.as<float>().begin() + 8);
    row.resize(16);  // padding
    CHECK(same<float>(out, row));
    std::vector<float> other = keys;
    other[12 * 4] = 3;  // position 140 is page 0, slot 12
    CHECK(!same<float>(run(other, attrs, {2, 0, 9, 9}, {140, -1}), row));
    other = keys;
    other[13 * 4] = INFINITY;  // a slot that no row sees
    CHECK(same<float>(run(other, attrs, {2, 0, 9, 9}, {140, -1}), row));
  }
  const auto wrong = [&](std::vector<int32_t> table, std::vector<int32_t> position, int64_t window) {
    ir::Attrs attrs = paged_attrs();
    attrs.set("window", window);
    return paged_error(OpKind::paged_attention,
                       {q, f32(pool, keys), f32(pool, values), i32({{"row", 2}, {"entry", 2}}, table),
                        i32({{"row", 2}}, position)},
                       attrs);
  };
  CHECK(wrong({0, 1, 0, 3}, {5, 128}, 0) ==
        "paged_attention: entry 1 of row 1 names page 3, and the pool has pages 0 to 2");
  CHECK(wrong({0, 1, 0, 1}, {256, 0}, 0) ==
        "paged_attention: row 0 has position 256, and its 2 pages hold positions 0 to 255");
  CHECK(wrong({-1, 1, 0, 1}, {200, 0}, 20).empty());  // all keys of that page lie before the window
  CHECK(!wrong({-1, 1, 0, 1}, {200, 0}, 74).empty());
}

TEST_CASE("values may be narrower or wider than keys, as if both were padded with zeros") {
  for (const int64_t narrow : {2, 6}) {
    const int64_t wide = std::max<int64_t>(narrow, 4);
    const std::vector<float> values = numbers(128 * narrow, 5);
    std::vector<float> padded;
    for (int64_t i = 0; i < 128 * wide; ++i)
      padded.push_back(i % wide < narrow ? values[static_cast<size_t>(i / wide * narrow + i % wide)] : 0.0f);
    std::vector<float> keys;
    const std::vector<float> thin = numbers(512, 3), query = numbers(4, 7);
    for (int64_t i = 0; i < 128 * wide; ++i)
      keys.push_back(i % wide < 4 ? thin[static_cast<size_t>(i / wide * 4 + i % wide)] : 0.0f);
    std::vector<float> q = query;
    q.resize(static_cast<size_t>(wide));
    const auto run = [&](int64_t key_dim, int64_t value_dim, const std::vector<float>& q_row,
                         const std::vector<float>& k, const std::vector<float>& v) {
      return eval(
          OpKind::paged_attention,
          {f32({{"row", 1}, {"dim", key_dim}}, q_row), f32({{"page", 1}, {"slot", 128}, {"dim", key_dim}}, k),
           f32({{"page", 1}, {"slot", 128}, {"dim", value_dim}}, v), i32({{"row", 1}, {"entry", 1}}, {0}),
           i32({{"row", 1}}, {100})},
          paged_attrs());
    };
    const Buffer whole = run(wide, wide, q, keys, padded);
    const std::vector<float> expected(whole.as<float>().begin(), whole.as<float>().begin() + narrow);
    CHECK(same<float>(run(4, narrow, query, thin, values), expected));
  }
}

}  // namespace
}  // namespace ostro::interp
