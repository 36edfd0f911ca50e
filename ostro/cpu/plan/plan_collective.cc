// Collectives (docs/numerics.md, N8): workers exchange whole values and each joins them in the order of the
// workers along the mesh axis. Dense operands.
#include <algorithm>
#include <cstring>

#include "ostro/cpu/plan/plan_call.h"
#include "ostro/cpu/plan/plan_contraction.h"
#include "ostro/cpu/plan/plan_order.h"
#include "ostro/numerics/functions.h"

namespace ostro::cpu {
namespace {

using ir::OpKind;

// What each worker along the op's mesh axis holds, in their order.
struct Shards {
  std::vector<std::vector<std::byte>> values;
  std::vector<int64_t> sizes;  // of the axis that they differ in
  size_t mine = 0;
};

Result<std::vector<int64_t>> exchange_sizes(const OpCall& call, const std::vector<int64_t>& peers,
                                            int64_t size) {
  std::vector<int64_t> sizes(peers.size());
  std::vector<std::span<const std::byte>> send(peers.size(), std::as_bytes(std::span(&size, 1)));
  std::vector<std::span<std::byte>> receive;
  for (int64_t& s : sizes) receive.push_back(std::as_writable_bytes(std::span(&s, 1)));
  RETURN_IF_ERROR(call.context.collectives->exchange(peers, send, receive));
  return sizes;
}

Result<Shards> exchange_shards(const OpCall& call, const std::string& axis) {
  const Array& x = call.in[0];
  const std::vector<int64_t> peers = call.context.collectives->peers(call.attrs.str("mesh_axis"));
  Shards shards;
  shards.sizes.assign(peers.size(), 1);
  const int64_t size = axis.empty() ? 1 : x.shape().size_of(axis);
  const int64_t bytes = size == 0 ? ir::Shape{x.shape()}.without(axis).bytes() : x.shape().bytes() / size;
  if (!axis.empty()) {
    ASSIGN_OR_RETURN(shards.sizes, exchange_sizes(call, peers, size));
  }
  std::vector<std::span<std::byte>> receive;
  for (size_t i = 0; i < peers.size(); ++i) {
    shards.values.emplace_back(static_cast<size_t>(bytes * shards.sizes[i]));
    if (peers[i] == call.context.collectives->rank()) shards.mine = i;
  }
  for (auto& v : shards.values) receive.emplace_back(v);
  const std::span<const std::byte> own(reinterpret_cast<const std::byte*>(x.data),
                                       static_cast<size_t>(x.shape().bytes()));
  std::vector<std::span<const std::byte>> send(peers.size(), own);
  RETURN_IF_ERROR(call.context.collectives->exchange(peers, send, receive));
  return shards;
}

// Copies between the part of `whole` from `start` on along `axis` and `part`, which is dense.
void copy_part(const Array& whole, const std::string& axis, int64_t start, char* part, int64_t size,
               bool into, ThreadPool& pool) {
  compile::View inside = *whole.view;
  const auto at = static_cast<size_t>(inside.shape.find(axis));
  inside.shape.axes[at].size = size;
  const Array a{&inside, whole.data + start * inside.strides[at] * ir::dtype_size(whole.dtype())};
  const compile::View dense = compile::View::whole(-1, inside.shape);
  const Array b{&dense, part};
  into ? copy_view(b, a, pool) : copy_view(a, b, pool);
}

// out[i] = f(partials of element i, by worker); f may change the partials.
template <typename T, typename F>
void join_elements(const Shards& shards, int64_t count, T* out, ThreadPool& pool, F f) {
  pool.parallel_for(
      count,
      [&](int64_t begin, int64_t end) {
        std::vector<T> column;
        for (int64_t i = begin; i < end; ++i) {
          column.clear();
          for (const auto& v : shards.values) column.push_back(reinterpret_cast<const T*>(v.data())[i]);
          out[i] = f(column);
        }
      },
      4096);
}

Status tree(const OpCall& call, const Shards& shards, char* out) {
  const int64_t n = call.in[0].count();
  const std::vector<int64_t> counts{static_cast<int64_t>(shards.values.size())};
  const auto join = [&](auto& column) { return join_leaves(column, counts); };
  if (call.in[0].dtype() == ir::DType::f32)
    join_elements(shards, n, reinterpret_cast<float*>(out), call.pool, join);
  else if (call.in[0].dtype() == ir::DType::f64)
    join_elements(shards, n, reinterpret_cast<double*>(out), call.pool, join);
  else
    return invalid_argument(
        fmt::format("{}: partials are {}, not f32 or f64", ir::op_name(call.kind), call.in[0].shape().str()));
  return Status();
}

Status all_gather(const OpCall& call) {
  const std::string& axis = call.attrs.str("axis");
  ASSIGN_OR_RETURN(Shards shards, exchange_shards(call, axis));
  int64_t start = 0, total = 0;
  for (int64_t s : shards.sizes) total += s;
  if (total != call.out[0].shape().size_of(axis))
    return invalid_argument(fmt::format("all_gather: shards of axis \"{}\" make {}, the result is {}", axis,
                                        total, call.out[0].shape().str()));
  for (size_t i = 0; i < shards.values.size(); ++i) {
    copy_part(call.out[0], axis, start, reinterpret_cast<char*>(shards.values[i].data()), shards.sizes[i],
              true, call.pool);
    start += shards.sizes[i];
  }
  return Status();
}

Status reduce_scatter(const OpCall& call) {
  const std::string& axis = call.attrs.str("axis");
  ASSIGN_OR_RETURN(Shards shards, exchange_shards(call, ""));
  std::vector<double> sum(
      static_cast<size_t>((call.in[0].shape().bytes() + 7) / 8));  // aligned for either type
  RETURN_IF_ERROR(tree(call, shards, reinterpret_cast<char*>(sum.data())));
  const std::vector<int64_t> peers = call.context.collectives->peers(call.attrs.str("mesh_axis"));
  const int64_t size = call.out[0].shape().size_of(axis);
  ASSIGN_OR_RETURN(std::vector<int64_t> sizes, exchange_sizes(call, peers, size));
  int64_t start = 0;
  for (size_t i = 0; i < shards.mine; ++i) start += sizes[i];
  if (start + size > call.in[0].shape().size_of(axis))
    return invalid_argument(fmt::format("reduce_scatter_tree: keeps {} .. {} of {}", start, start + size,
                                        call.in[0].shape().str()));
  copy_part(Array{call.in[0].view, reinterpret_cast<char*>(sum.data())}, axis, start, call.out[0].data, size,
            false, call.pool);
  return Status();
}

}  // namespace

Status run_collective(const OpCall& call) {
  if (call.kind == OpKind::shard_slice) {
    const std::string& axis = call.attrs.str("axis");
    const int64_t start = call.attrs.i64("start"), size = call.attrs.i64("size");
    if (start < 0 || start + size > call.in[0].shape().size_of(axis))
      return invalid_argument(
          fmt::format("shard_slice: {} .. {} of {}", start, start + size, call.in[0].shape().str()));
    copy_part(call.in[0], axis, start, call.out[0].data, size, false, call.pool);
    return Status();
  }
  if (call.context.collectives == nullptr)
    return invalid_argument(fmt::format("{}: the run has no Collectives", ir::op_name(call.kind)));
  if (call.kind == OpKind::all_gather) return all_gather(call);
  if (call.kind == OpKind::reduce_scatter_tree) return reduce_scatter(call);
  ASSIGN_OR_RETURN(Shards shards, exchange_shards(call, ""));
  if (call.kind == OpKind::all_reduce_tree) return tree(call, shards, call.out[0].data);
  if (call.kind == OpKind::all_reduce_bits) {
    const int64_t bytes = call.in[0].shape().bytes();
    auto* out = reinterpret_cast<std::byte*>(call.out[0].data);
    call.pool.parallel_for(
        bytes,
        [&](int64_t begin, int64_t end) {
          std::memcpy(out + begin, shards.values[0].data() + begin, static_cast<size_t>(end - begin));
          for (size_t worker = 1; worker < shards.values.size(); ++worker)
            for (int64_t i = begin; i < end; ++i) out[i] |= shards.values[worker][static_cast<size_t>(i)];
        },
        1 << 16);
    return Status();
  }
  const bool sum = call.kind == OpKind::all_reduce_int;
  if (sum && !ir::is_integer(call.in[0].dtype()))
    return invalid_argument(fmt::format("all_reduce_int of {}", call.in[0].shape().str()));
  if (call.in[0].dtype() == ir::DType::bf16)
    return unsupported(fmt::format("{} of {}", ir::op_name(call.kind), call.in[0].shape().str()));
  with_element_type(call.in[0].dtype(), [&](auto tag) {
    using T = decltype(tag);
    join_elements(shards, call.in[0].count(), call.out[0].as<T>(), call.pool, [&](std::vector<T>& column) {
      T value = column[0];
      for (size_t i = 1; i < column.size(); ++i) {
        if constexpr (std::is_integral_v<T>) {
          using U = std::make_unsigned_t<T>;
          value = sum ? static_cast<T>(static_cast<U>(value) + static_cast<U>(column[i]))
                      : larger(value, column[i]);
        } else {
          value = larger(value, column[i]);
        }
      }
      return value;
    });
  });
  return Status();
}

}  // namespace ostro::cpu
