// Collectives (numerics.md N8): workers exchange whole values and every one of them does the same arithmetic,
// in the order of the workers along the mesh axis. Plain, not frugal with bytes.
#include <fmt/format.h>

#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"
#include "ostro/numerics/functions.h"
#include "ostro/numerics/tree.h"

namespace ostro::interp {
namespace {

// The values of all workers along the op's mesh axes, in their order.
struct Shards {
  Buffers values;
  size_t mine = 0;
};

// Values may differ in size along `axis` ("" when they do not): worker i's is [bounds[i], bounds[i + 1]).
Result<Shards> exchange_shards(const Call& call, const std::string& axis,
                               const char* mesh_axes = "mesh_axis") {
  runtime::Collectives* group = call.context.collectives;
  if (group == nullptr)
    return invalid_argument(fmt::format("{}: the run has no Collectives", ir::op_name(call.op.kind)));
  const std::vector<int64_t> peers = group->peers(call.op.attrs.str(mesh_axes));
  const std::vector<int64_t> bounds = axis.empty() ? std::vector<int64_t>() : call.op.attrs.ints("bounds");
  if (!axis.empty() && bounds.size() != peers.size() + 1)
    return invalid_argument(fmt::format("{}: bounds [{}] for {} workers", ir::op_name(call.op.kind),
                                        fmt::join(bounds, ", "), peers.size()));
  const Buffer& mine = call.in[0];
  Shards shards;
  std::vector<std::span<std::byte>> receive;
  for (size_t i = 0; i < peers.size(); ++i) {
    Shape shape = mine.shape();
    if (!axis.empty()) shape.axes[shape.find(axis)].size = bounds[i + 1] - bounds[i];
    shards.values.push_back(Buffer::empty(shape));
    receive.push_back(shards.values.back().mutable_bytes());
    if (peers[i] == group->rank()) shards.mine = i;
  }
  const std::vector<std::span<const std::byte>> send(peers.size(), mine.bytes());
  RETURN_IF_ERROR(group->exchange(peers, send, receive));
  return shards;
}

// The elementwise balanced tree of N8 over the workers' partials.
Result<Buffer> tree_over_workers(const Call& call, const Buffers& partials) {
  const Shape& shape = partials[0].shape();
  if (shape.dtype != DType::f32 && shape.dtype != DType::f64)
    return invalid_argument(
        fmt::format("{}: partials are {}, not f32 or f64", ir::op_name(call.op.kind), shape.str()));
  return with_type(shape.dtype, [&]<typename T>() {
    std::vector<std::vector<T>> parts;
    for (const Buffer& p : partials) parts.push_back(elements<T>(p));
    std::vector<T> sums(parts[0].size());
    for (size_t i = 0; i < sums.size(); ++i) {
      std::vector<T> column;
      for (const std::vector<T>& part : parts) column.push_back(part[i]);
      sums[i] = numerics::tree_sum(std::span<const T>(column));
    }
    return make_buffer(shape, sums);
  });
}

template <typename T>
T join_pair(OpKind kind, T a, T b) {
  if constexpr (std::is_same_v<T, float>)
    return numerics::max_f32(a, b);
  else if constexpr (std::is_same_v<T, double>)
    return numerics::max_f64(a, b);
  else if (kind == OpKind::all_reduce_max)
    return a < b ? b : a;
  else
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
}

}  // namespace

Result<Buffers> run_all_gather(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  ASSIGN_OR_RETURN(Shards shards, exchange_shards(call, axis));
  Buffer out = Buffer::zeros(call.out[0]);
  for (size_t i = 0; i < shards.values.size(); ++i) {
    const int64_t start = call.op.attrs.ints("bounds")[i];
    place(out, shards.values[i], part(call.out[0], axis, start, shards.values[i].shape().size_of(axis)));
  }
  return Buffers{out};
}

Result<Buffers> run_shard_slice(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t start = call.op.attrs.i64("start"), size = call.op.attrs.i64("size");
  if (start < 0 || start + size > call.shape(0).size_of(axis))
    return invalid_argument(
        fmt::format("shard_slice: {} .. {} of {}", start, start + size, call.shape(0).str()));
  return Buffers{pick(call.in[0], call.out[0], part(call.shape(0), axis, start, size))};
}

Result<Buffers> run_all_reduce(const Call& call) {
  ASSIGN_OR_RETURN(Shards shards, exchange_shards(call, ""));
  if (call.op.kind == OpKind::all_reduce_tree) {
    ASSIGN_OR_RETURN(Buffer sum, tree_over_workers(call, shards.values));
    return Buffers{sum};
  }
  if (call.op.kind == OpKind::all_reduce_bits) {
    Buffer joined = shards.values[0];
    for (size_t worker = 1; worker < shards.values.size(); ++worker)
      for (size_t i = 0; i < joined.bytes().size(); ++i)
        joined.mutable_bytes()[i] |= shards.values[worker].bytes()[i];
    return Buffers{joined};
  }
  const DType dtype = call.shape(0).dtype;
  if (call.op.kind == OpKind::all_reduce_int && !ir::is_integer(dtype))
    return invalid_argument(fmt::format("all_reduce_int of {}", call.shape(0).str()));
  return with_type(dtype, [&]<typename T>() -> Buffers {
    std::vector<T> joined = elements<T>(shards.values[0]);
    for (size_t worker = 1; worker < shards.values.size(); ++worker) {
      const std::vector<T> other = elements<T>(shards.values[worker]);
      for (size_t i = 0; i < joined.size(); ++i) joined[i] = join_pair(call.op.kind, joined[i], other[i]);
    }
    return {make_buffer(call.out[0], joined)};
  });
}

// Worker i keeps the i-th part of the axis.
Result<Buffers> run_reduce_scatter_tree(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  ASSIGN_OR_RETURN(Shards shards, exchange_shards(call, ""));
  ASSIGN_OR_RETURN(Buffer sum, tree_over_workers(call, shards.values));
  const auto& bounds = call.op.attrs.ints("bounds");
  const int64_t size = call.out[0].size_of(axis);
  if (bounds.size() != shards.values.size() + 1 || bounds[shards.mine + 1] - bounds[shards.mine] != size)
    return invalid_argument(
        fmt::format("reduce_scatter_tree: keeps {} of bounds [{}] at place {} of {} workers", size,
                    fmt::join(bounds, ", "), shards.mine, shards.values.size()));
  return Buffers{pick(sum, call.out[0], part(sum.shape(), axis, bounds[shards.mine], size))};
}

// Every worker gets whole leaves and picks its own part of them. The leaf of a peer outside of all subtrees
// is not read.
Result<Buffers> run_exchange_leaves(const Call& call) {
  const ir::Attrs& attrs = call.op.attrs;
  ASSIGN_OR_RETURN(Shards shards, exchange_shards(call, "", "mesh_axes"));
  const auto& owners = attrs.ints("owners");
  const int64_t mine = attrs.i64("part");
  if (owners.size() != shards.values.size() || owners[shards.mine] != mine)
    return invalid_argument(fmt::format("exchange_leaves: part {} of owners [{}] at place {} of {} peers",
                                        mine, fmt::join(owners, ", "), shards.mine, shards.values.size()));
  Shape owned = call.out[0].without("part");
  if (const std::string axis = attrs.str("axis", ""); !axis.empty())
    for (Buffer& leaf : shards.values) {
      const int64_t start = attrs.ints("bounds")[static_cast<size_t>(mine)];
      leaf = pick(leaf, owned, part(leaf.shape(), axis, start, owned.size_of(axis)));
    }
  const auto &firsts = attrs.ints("firsts"), &counts = attrs.ints("counts");
  std::vector<float> sums;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const auto first = shards.values.begin() + firsts[i];
    ASSIGN_OR_RETURN(const Buffer sum, tree_over_workers(call, Buffers(first, first + counts[i])));
    const std::vector<float> values = elements<float>(sum);
    sums.insert(sums.end(), values.begin(), values.end());
  }
  return Buffers{make_buffer(call.out[0], sums)};
}

}  // namespace ostro::interp
