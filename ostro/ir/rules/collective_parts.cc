#include "ostro/ir/rules/collective_parts.h"

#include "ostro/ir/program/op_table.h"

namespace ostro::ir {
namespace {

// Below this an exchange takes the time of its messages, not of its bytes.
constexpr int64_t kWholeBytes = int64_t{64} << 10;

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
  if (!is_collective(op.kind) || op.kind == OpKind::shard_slice) return 0;
  const auto here = static_cast<size_t>(place);
  // Bytes of an index of the cut axis, with all others.
  const auto row = [&](int64_t size) { return size == 0 ? 0 : x.bytes() / size; };
  const auto part = [](const std::vector<int64_t>& bounds, size_t c) { return bounds[c + 1] - bounds[c]; };
  switch (op.kind) {
    case OpKind::all_gather: return (static_cast<int64_t>(op.attrs.ints("bounds").size()) - 2) * x.bytes();
    case OpKind::reduce_scatter_tree:
      return x.bytes() - part(op.attrs.ints("bounds"), here) * row(x.size_of(op.attrs.str("axis")));
    case OpKind::exchange_leaves: {
      const auto &owners = op.attrs.ints("owners"), &firsts = op.attrs.ints("firsts"),
                 &counts = op.attrs.ints("counts");
      bool has_leaf = false;
      for (size_t i = 0; i < firsts.size(); ++i)
        has_leaf = has_leaf || (place >= firsts[i] && place < firsts[i] + counts[i]);
      if (!has_leaf) return 0;
      const std::string axis = op.attrs.str("axis", "");
      int64_t bytes = 0;
      for (size_t p = 0; p < owners.size(); ++p)
        if (p != here)
          bytes += axis.empty()
                       ? x.bytes()
                       : part(op.attrs.ints("bounds"), static_cast<size_t>(owners[p])) * row(x.size_of(axis));
      return bytes;
    }
    default: break;
  }
  const int64_t workers = op.attrs.i64("workers");
  if (!reduces_in_parts(x, workers)) return (workers - 1) * x.bytes();
  const int64_t own = part(reduced_parts(x.count(), workers), here) * dtype_size(x.dtype);
  return x.bytes() - own + (workers - 1) * own;
}

}  // namespace ostro::ir
