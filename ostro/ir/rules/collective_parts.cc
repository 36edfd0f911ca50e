#include "ostro/ir/rules/collective_parts.h"

#include "ostro/ir/program/op_table.h"

namespace ostro::ir {
namespace {

// Below this an exchange takes the time of its messages, not of its bytes.
constexpr int64_t kWholeBytes = int64_t{64} << 10;

// The workers that take part; 0 for an op that sends nothing.
int64_t workers_of(const Op& op) {
  if (!is_collective(op.kind) || op.kind == OpKind::shard_slice) return 0;
  if (op.kind == OpKind::all_gather || op.kind == OpKind::reduce_scatter_tree)
    return static_cast<int64_t>(op.attrs.ints("bounds").size()) - 1;
  if (op.kind == OpKind::exchange_leaves) return static_cast<int64_t>(op.attrs.ints("owners").size());
  return op.attrs.i64("workers");
}

}  // namespace

bool reduces_in_parts(const Shape& x, int64_t workers) {
  return workers > 1 && x.bytes() >= kWholeBytes && x.count() >= workers;
}

std::vector<int64_t> reduced_parts(int64_t count, int64_t workers) {
  std::vector<int64_t> bounds;
  for (int64_t c = 0; c <= workers; ++c) bounds.push_back(count * c / workers);
  return bounds;
}

int64_t sent_bytes(const Op& op, const Shape& x, int64_t place) {
  int64_t bytes = 0;
  for (int64_t to = 0; to < workers_of(op); ++to) bytes += sent_bytes(op, x, place, to);
  return bytes;
}

int64_t sent_bytes(const Op& op, const Shape& x, int64_t place, int64_t to) {
  if (workers_of(op) == 0 || to == place) return 0;
  // Bytes of an index of the cut axis, with all others.
  const auto row = [&](int64_t size) { return size == 0 ? 0 : x.bytes() / size; };
  const auto part = [](const std::vector<int64_t>& bounds, int64_t c) {
    return bounds[static_cast<size_t>(c) + 1] - bounds[static_cast<size_t>(c)];
  };
  switch (op.kind) {
    case OpKind::all_gather: return x.bytes();
    case OpKind::reduce_scatter_tree:
      return part(op.attrs.ints("bounds"), to) * row(x.size_of(op.attrs.str("axis")));
    case OpKind::exchange_leaves: {
      const auto &firsts = op.attrs.ints("firsts"), &counts = op.attrs.ints("counts");
      bool has_leaf = false;
      for (size_t i = 0; i < firsts.size(); ++i)
        has_leaf = has_leaf || (place >= firsts[i] && place < firsts[i] + counts[i]);
      if (!has_leaf) return 0;
      const std::string axis = op.attrs.str("axis", "");
      if (axis.empty()) return x.bytes();
      return part(op.attrs.ints("bounds"), op.attrs.ints("owners")[static_cast<size_t>(to)]) *
             row(x.size_of(axis));
    }
    default: break;
  }
  const int64_t workers = workers_of(op);
  if (!reduces_in_parts(x, workers)) return x.bytes();
  // Its values of the part that the other one joins, and the result of its own.
  const std::vector<int64_t> bounds = reduced_parts(x.count(), workers);
  return (part(bounds, to) + part(bounds, place)) * dtype_size(x.dtype);
}

}  // namespace ostro::ir
