#include "paged_cases.h"

#include <cmath>
#include <limits>

#include "ostro/ir/program/attention_limits.h"
#include "ostro/ir/program/builder.h"

namespace ostro::testing {

using ir::Attrs;
using ir::Axis;
using ir::DType;
using ir::kPageSlots;
using ir::OpKind;
using ir::ValueId;

ir::Program small_cache(const CacheKind& kind) {
  ir::Program program;
  program.name = "cache";
  ir::Builder b(program.body);
  const Axis page{"page", 3}, slot{"slot", kPageSlots}, row{"row", 2}, dim{"head_dim", 32}, entry{"entry", 2};
  const ValueId pool = program.body.add_param({DType::f32, {page, slot, dim}}),
                rows = program.body.add_param({DType::f32, {row, dim}}),
                place = program.body.add_param({DType::i32, {row}}),
                table = program.body.add_param({DType::i32, {row, entry}}),
                position = program.body.add_param({DType::i32, {row}});
  Attrs attrs{{"page", page.name}, {"slot", slot.name}, {"row", row.name}};
  const ValueId written = b.add(OpKind::paged_write, {pool, rows, place}, attrs);
  attrs.set("entry", entry.name);
  attrs.set("head_dim", dim.name);
  attrs.set("scale", 0.2);
  if (kind.window > 0) attrs.set("window", kind.window);
  if (kind.integers) attrs.set("int8_slices", ir::kInt8Slices);
  program.body.results = {b.add(OpKind::paged_attention, {rows, written, written, table, position}, attrs),
                          written};
  return program;
}

std::vector<runtime::Buffer> cache_inputs(const std::vector<int32_t>& place,
                                          const std::vector<int32_t>& table,
                                          const std::vector<int32_t>& position,
                                          const std::vector<int32_t>& infinite) {
  std::vector<float> pool, rows;
  for (int i = 0; i < 3 * 128 * 32; ++i) pool.push_back(std::sin(static_cast<float>(i)));
  for (int i = 0; i < 2 * 32; ++i) rows.push_back(std::cos(static_cast<float>(3 * i)));
  for (const int32_t s : infinite)
    for (int d = 0; d < 32; ++d)
      pool[static_cast<size_t>(s * 32 + d)] = std::numeric_limits<float>::infinity();
  const Axis row{"row", 2}, dim{"head_dim", 32};
  const auto integers = [](std::vector<Axis> axes, const std::vector<int32_t>& values) {
    return runtime::Buffer::copy_of({DType::i32, std::move(axes)}, values.data());
  };
  return {runtime::Buffer::copy_of({DType::f32, {{"page", 3}, {"slot", kPageSlots}, dim}}, pool.data()),
          runtime::Buffer::copy_of({DType::f32, {row, dim}}, rows.data()), integers({row}, place),
          integers({row, {"entry", 2}}, table), integers({row}, position)};
}

}  // namespace ostro::testing
