#include "ostro/compile/plan/exchange_parts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "ostro/ir/program/op_table.h"

namespace ostro::compile {

using ir::OpKind;

Result<Peers> peers_of(OpKind kind, const ir::Attrs& attrs, const char* mesh_axes, size_t workers,
                       runtime::Collectives* group) {
  if (group == nullptr)
    return invalid_argument(fmt::format("{}: the run has no Collectives", ir::op_name(kind)));
  Peers peers{group->peers(attrs.str(mesh_axes)), 0};
  peers.me = static_cast<size_t>(std::find(peers.ranks.begin(), peers.ranks.end(), group->rank()) -
                                 peers.ranks.begin());
  if (peers.ranks.size() != workers || peers.me == workers)
    return invalid_argument(fmt::format("{}: made for {} workers, worker {} is at place {} of {}",
                                        ir::op_name(kind), workers, group->rank(), peers.me,
                                        peers.ranks.size()));
  return peers;
}

Cut::Cut(const ir::Shape& x, const std::string& axis, const std::vector<int64_t>& parts) {
  const int64_t at = x.find(axis);
  bounds = at < 0 ? std::vector<int64_t>{0, 1} : parts;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != at) (i < at ? before : inner) *= x.axes[static_cast<size_t>(i)].size;
}

Status check_join(OpKind kind, const ir::Shape& x) {
  const char* name = ir::op_name(kind);
  if (kind == OpKind::all_reduce_tree || kind == OpKind::reduce_scatter_tree) {
    if (x.dtype != ir::DType::f32 && x.dtype != ir::DType::f64)
      return invalid_argument(fmt::format("{}: partials are {}, not f32 or f64", name, x.str()));
  } else if (kind == OpKind::all_reduce_int && !ir::is_integer(x.dtype)) {
    return invalid_argument(fmt::format("{} of {}", name, x.str()));
  } else if (kind == OpKind::all_reduce_max && x.dtype == ir::DType::bf16) {
    return unsupported(fmt::format("{} of {}", name, x.str()));
  }
  return Status();
}

Status check_part(OpKind kind, const Cut& cut, size_t part, const ir::Shape& x) {
  if (cut.count(part) == x.count()) return Status();
  return invalid_argument(fmt::format("{}: {} is not part {} of bounds [{}]", ir::op_name(kind), x.str(),
                                      part, fmt::join(cut.bounds, ", ")));
}

}  // namespace ostro::compile
