// paged_write and paged_attention of random sizes, sequences and layouts give the interpreter's bits on every
// instruction set and on the emulated GPU.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/interp/engine/engine.h"
#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/text/text.h"
#include "tests/fuzz/rng.h"

namespace ostro {
namespace {

using fuzz::Rng;
using ir::Attrs;
using ir::Axis;
using ir::DType;
using ir::kPageSlots;
using ir::OpKind;
using ir::ValueId;

// The rows of a step: for each its sequence and position; -1 is padding.
struct PagedRows {
  std::vector<std::pair<int64_t, int64_t>> rows;  // sequence, position
  std::vector<std::vector<int64_t>> pages;        // of each sequence
  int64_t pool_pages = 0;
  int64_t entries = 0;
};

// Sequences of up to `longest` positions, some with one row in the step, some with several that follow each
// other, as drafts and prompt chunks have; some share their first page.
PagedRows paged_rows(Rng& rng, int64_t longest) {
  PagedRows r;
  const int64_t sequences = rng.between(1, 4);
  for (int64_t s = 0; s < sequences; ++s) {
    const int64_t last = rng.chance(0.2) ? 128 * rng.between(1, 2) - rng.between(0, 1) : rng.below(longest);
    const int64_t rows = rng.chance(0.4) ? 1 : rng.between(1, rng.chance(0.5) ? 5 : 90);
    for (int64_t i = std::max<int64_t>(0, last - rows + 1); i <= last; ++i) r.rows.emplace_back(s, i);
    r.pages.emplace_back(static_cast<size_t>(last / kPageSlots + 1));
    r.entries = std::max(r.entries, last / kPageSlots + 1);
    r.pool_pages += last / kPageSlots + 1;
    if (rng.chance(0.3)) r.rows.emplace_back(0, -1);
  }
  r.entries += rng.below(2);
  r.pool_pages += rng.below(3);
  std::vector<int64_t> numbers(static_cast<size_t>(r.pool_pages));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  rng.shuffle(numbers);
  size_t next = 0;
  for (std::vector<int64_t>& pages : r.pages)
    for (int64_t& page : pages) page = numbers[next++];
  if (sequences > 1 && rng.chance(0.5)) r.pages[1][0] = r.pages[0][0];
  if (rng.chance(0.2)) rng.shuffle(r.rows);
  return r;
}

// Makes NaNs of what lies in slots behind the last position of every sequence that has their page.
void poison(runtime::Buffer& pool, const PagedRows& rows) {
  std::vector<int64_t> seen(static_cast<size_t>(rows.pool_pages));
  for (const auto& [sequence, at] : rows.rows) {
    const std::vector<int64_t>& pages = rows.pages[static_cast<size_t>(sequence)];
    for (int64_t p = 0; p * kPageSlots <= at; ++p) {
      int64_t& most = seen[static_cast<size_t>(pages[static_cast<size_t>(p)])];
      most = std::max(most, std::min(kPageSlots, at + 1 - p * kPageSlots));
    }
  }
  const ir::Shape shape = pool.shape();
  for (int64_t e = 0; e < shape.count(); ++e) {
    int64_t page = 0, slot = 0, rest = e;
    for (size_t k = shape.axes.size(); k-- > 0; rest /= shape.axes[k].size) {
      if (shape.axes[k].name == "page") page = rest % shape.axes[k].size;
      if (shape.axes[k].name == "slot") slot = rest % shape.axes[k].size;
    }
    if (slot < seen[static_cast<size_t>(page)]) continue;
    const auto at = static_cast<size_t>(e);
    if (shape.dtype == DType::f32)
      pool.mutable_as<float>()[at] = std::numeric_limits<float>::quiet_NaN();
    else
      pool.mutable_as<uint16_t>()[at] = 0x7fc0;
  }
}

// Parameters: queries, keys, values, and more.
testing::ProgramWithInputs random_paged(Rng& rng, const PagedRows& rows, int64_t longest) {
  const DType d = rng.chance(0.5) ? DType::f32 : DType::bf16;
  const auto width = [&] {
    return rng.chance(0.6) ? rng.pick(std::vector<int64_t>{32, 64, 128}) : rng.between(1, 80);
  };
  const int64_t key_dim = width(), value_dim = rng.chance(0.7) ? key_dim : width();
  const Axis row{"row", static_cast<int64_t>(rows.rows.size())}, page{"page", rows.pool_pages},
      slot{"slot", kPageSlots}, heads{"heads", rng.between(1, 3)},
      group{"group", rng.chance(0.8) ? rng.between(1, 5) : rng.between(6, 40)}, entry{"entry", rows.entries},
      k_dim{"head_dim", key_dim}, v_dim{"head_dim", value_dim};
  testing::ProgramWithInputs c("paged");
  ir::Builder b(c.program.body);
  const auto pool_of = [&](const Axis& dim, bool slot_last) {
    std::vector<Axis> axes = slot_last         ? std::vector{page, heads, dim, slot}
                             : rng.chance(0.5) ? std::vector{page, heads, slot, dim}
                                               : std::vector{page, slot, heads, dim};
    return c.param({d, axes});
  };
  const ValueId q = c.param({d, {row, heads, group, k_dim}});
  const ValueId k = pool_of(k_dim, rng.chance(0.7)), v = pool_of(v_dim, rng.chance(0.1));
  const auto of_row = [&](int64_t r) { return rows.rows[static_cast<size_t>(r)]; };
  // Tables and positions may be views: turned over, or read from the end.
  const bool turned = rng.chance(0.3), backwards = rng.chance(0.3);
  const ValueId stored = c.param(
      turned ? ir::Shape{DType::i32, {entry, row}} : ir::Shape{DType::i32, {row, entry}}, [&](int64_t e) {
        const auto r = turned ? e % row.size : e / entry.size;
        const auto i = static_cast<size_t>(turned ? e / row.size : e % entry.size);
        const std::vector<int64_t>& pages = rows.pages[static_cast<size_t>(of_row(r).first)];
        return i < pages.size() ? pages[i] : int64_t{-7};
      });
  const ValueId table = turned ? b.transpose(stored, {row.name, entry.name}) : stored;
  const ValueId listed = c.param({DType::i32, {row}},
                                 [&](int64_t r) { return of_row(backwards ? row.size - 1 - r : r).second; });
  const ValueId position = backwards ? b.add(OpKind::reverse, {listed}, {{"axis", row.name}}) : listed;
  std::map<int64_t, int64_t> taken;
  const ValueId place = c.param({DType::i32, {row}}, [&](int64_t r) -> int64_t {
    const auto [sequence, at] = of_row(r);
    if (at < 0) return -1;
    const int64_t to =
        rows.pages[static_cast<size_t>(sequence)][static_cast<size_t>(at / kPageSlots)] * kPageSlots +
        at % kPageSlots;
    return taken.emplace(to, r).second ? to : -1;  // sequences that share a page
  });
  const Attrs axes{{"page", page.name}, {"slot", slot.name}, {"row", row.name}};
  const ValueId keys = b.add(OpKind::paged_write, {k, c.param({d, {row, heads, k_dim}}), place}, axes);
  const ValueId values = b.add(OpKind::paged_write, {v, c.param({d, {row, heads, v_dim}}), place}, axes);
  Attrs attrs = axes;
  attrs.set("entry", entry.name);
  attrs.set("head_dim", std::string("head_dim"));
  attrs.set("scale", rng.chance(0.5) ? 1 / std::sqrt(static_cast<double>(key_dim)) : 0.37);
  if (rng.chance(0.25)) attrs.set("soft_cap", 1.5);
  if (rng.chance(0.3)) attrs.set("window", rng.between(1, longest));
  if (rng.chance(0.3)) attrs.set("int8_slices", ir::kInt8Slices);
  std::vector<ValueId> operands{q, keys, values, table, position};
  if (rng.chance(0.3)) {
    attrs.set("sink", int64_t{1});
    operands.push_back(c.param({DType::f32, {heads, group}}));
  }
  const ValueId out = b.add(OpKind::paged_attention, operands, attrs);
  c.program.body.results = {out};
  if (rng.chance(0.5)) c.program.body.results.push_back(keys);
  return c;
}

void check_paged(uint64_t seed, int cases, int64_t longest, int threads) {
  testing::EachIsa engines({.threads = threads});
  Rng rng(seed);
  for (int i = 0; i < cases; ++i) {
    const PagedRows rows = paged_rows(rng, longest);
    const testing::ProgramWithInputs c = random_paged(rng, rows, longest);
    std::vector<runtime::Buffer> inputs = c.inputs(seed + static_cast<uint64_t>(i));
    if (c.program.body.results.size() == 1)  // else the keys are a result, and NaNs of them tell nothing
      for (const size_t pool : {1, 2}) poison(inputs[pool], rows);
    const std::string d = engines.difference(c.program, inputs);
    CHECK_MESSAGE(d.empty(), "case ", i, " of seed ", seed, ": ", d, "\n", ir::print(c.program));
  }
  CHECK(engines.telling() * 10 >= engines.results() * 8);
}

TEST_CASE("paged attention of random rows gives the interpreter's bits") {
  check_paged(1, 12, 300, 1);
  check_paged(2, 12, 300, 3);
}

TEST_CASE("slow: paged attention of random rows gives the interpreter's bits, in many more cases") {
  check_paged(sized<uint64_t>(test_seed(), 3, 3), sized(12, 40, 2000), 900, 5);
}

}  // namespace
}  // namespace ostro
