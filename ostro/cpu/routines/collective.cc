// Collectives (docs/spec/numerics.md, N8): workers send each other what the receiver needs, straight from the
// plan's memory, and join it in the order of the workers along the mesh axis. Dense operands. Results: the
// op's, then the working memory (compile/plan/exchange_scratch.h).
#include <fmt/format.h>

#include "ostro/cpu/routines/flights.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/cpu/routines/parts.h"
#include "ostro/ir/rules/collective_parts.h"

namespace ostro::cpu {
namespace {

using ir::OpKind;

// What goes to and comes from each of the peers; nothing between a worker and itself.
struct Messages {
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;

  explicit Messages(size_t peers) : send(peers), receive(peers) {}
  Status run(const OpCall& call, const Peers& peers) { return exchange_now(call, spans(peers)); }

  ExchangeSpans spans(const Peers& peers) {
    send[peers.me] = {};
    receive[peers.me] = {};
    return {peers.ranks, send, receive};
  }
};

std::span<const std::byte> bytes_at(const char* data, int64_t bytes) {
  return {reinterpret_cast<const std::byte*>(data), static_cast<size_t>(bytes)};
}
std::span<std::byte> room_at(char* data, int64_t bytes) {
  return {reinterpret_cast<std::byte*>(data), static_cast<size_t>(bytes)};
}

// Every worker sends its part `own` and fills the other parts of `whole`, in which all lie one behind the
// other.
Status gather_parts(const OpCall& call, const Peers& peers, const Cut& cut, const char* own, char* whole) {
  const int64_t size = ir::dtype_size(call.out[0].dtype());
  Messages messages(peers.ranks.size());
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    messages.send[p] = bytes_at(own, cut.count(peers.me) * size);
    messages.receive[p] = room_at(whole + cut.start(p) * size, cut.count(p) * size);
  }
  return messages.run(call, peers);
}

Status all_gather(const OpCall& call) {
  const auto& bounds = call.attrs.ints("bounds");
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axis", bounds.size() - 1));
  const Cut cut(call.out[0].shape(), call.attrs.str("axis"), bounds);
  const int64_t size = ir::dtype_size(call.out[0].dtype());
  RETURN_IF_ERROR(check_part(call.kind, cut, peers.me, call.in[0].shape()));
  char* out = call.out[0].data;
  place_part(call.in[0].data, cut, peers.me, size, out, call.pool);
  // Where parts do not lie together they are received one behind the other, without this worker's own.
  Messages messages(peers.ranks.size());
  std::vector<const char*> received(peers.ranks.size());
  char* at = call.out[1].data;
  const int64_t own = call.in[0].shape().bytes();
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    if (p == peers.me) continue;
    char* to = cut.together() ? out + cut.start(p) * size : at;
    if (!cut.together()) at += cut.count(p) * size;
    received[p] = to;
    messages.send[p] = bytes_at(call.in[0].data, own);
    messages.receive[p] = room_at(to, cut.count(p) * size);
  }
  return call.flights.start(call, messages.spans(peers), {call.in[0].data, call.in[0].data + own},
                            [cut, received, me = peers.me, size, out, &pool = call.pool] {
                              for (size_t p = 0; p < received.size() && !cut.together(); ++p)
                                if (p != me) place_part(received[p], cut, p, size, out, pool);
                              return Status();
                            });
}

// Sends every worker its part of x, in which the parts lie one behind the other, and joins what comes of this
// worker's part.
Status reduce_part(const OpCall& call, const Peers& peers, const Cut& cut, const char* x, char* out) {
  const int64_t size = ir::dtype_size(call.in[0].dtype()), n = cut.count(peers.me);
  Messages messages(peers.ranks.size());
  std::vector<const char*> slices(peers.ranks.size());
  char* at = call.out[1].data;
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    messages.send[p] = bytes_at(x + cut.start(p) * size, cut.count(p) * size);
    messages.receive[p] = room_at(at, n * size);
    slices[p] = p == peers.me ? x + cut.start(p) * size : at;
    if (p != peers.me) at += n * size;
  }
  RETURN_IF_ERROR(messages.run(call, peers));
  return join_slices(call.kind, call.in[0].dtype(), slices, n, out, call.pool);
}

Status reduce_scatter(const OpCall& call) {
  const auto& bounds = call.attrs.ints("bounds");
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axis", bounds.size() - 1));
  const Cut cut(call.in[0].shape(), call.attrs.str("axis"), bounds);
  RETURN_IF_ERROR(check_part(call.kind, cut, peers.me, call.out[0].shape()));
  const char* x = call.in[0].data;
  if (!cut.together()) {
    pack_parts(x, cut, ir::dtype_size(call.in[0].dtype()), call.out[2].data, call.pool);
    x = call.out[2].data;
  }
  return reduce_part(call, peers, cut, x, call.out[0].data);
}

Status all_reduce(const OpCall& call) {
  const Array& x = call.in[0];
  const int64_t workers = call.attrs.i64("workers"), bytes = x.shape().bytes();
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axis", static_cast<size_t>(workers)));
  if (ir::reduces_in_parts(x.shape(), workers)) {
    const Cut cut(ir::reduced_parts(x.count(), workers));
    char* own = call.out[0].data + cut.start(peers.me) * ir::dtype_size(x.dtype());
    RETURN_IF_ERROR(reduce_part(call, peers, cut, x.data, own));
    return gather_parts(call, peers, cut, own, call.out[0].data);
  }
  Messages messages(peers.ranks.size());
  std::vector<const char*> slices(peers.ranks.size());
  char* at = call.out[1].data;
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    messages.send[p] = bytes_at(x.data, bytes);
    messages.receive[p] = room_at(at, bytes);
    slices[p] = p == peers.me ? x.data : at;
    if (p != peers.me) at += bytes;
  }
  RETURN_IF_ERROR(messages.run(call, peers));
  return join_slices(call.kind, x.dtype(), slices, x.count(), call.out[0].data, call.pool);
}

Status shard_slice(const OpCall& call) {
  const std::string& axis = call.attrs.str("axis");
  const int64_t start = call.attrs.i64("start"), size = call.attrs.i64("size");
  if (start < 0 || start + size > call.in[0].shape().size_of(axis))
    return invalid_argument(
        fmt::format("shard_slice: {} .. {} of {}", start, start + size, call.in[0].shape().str()));
  compile::View inside = *call.in[0].view;
  const auto at = static_cast<size_t>(inside.shape.find(axis));
  inside.shape.axes[at].size = size;
  char* data = call.in[0].data + start * inside.strides[at] * ir::dtype_size(call.in[0].dtype());
  copy_view({&inside, data}, call.out[0], call.pool);
  return Status();
}

}  // namespace

Status run_collective(const OpCall& call) {
  if (call.kind == OpKind::shard_slice) return shard_slice(call);
  if (call.kind == OpKind::all_gather) return all_gather(call);
  RETURN_IF_ERROR(check_join(call.kind, call.in[0].shape()));
  return call.kind == OpKind::reduce_scatter_tree ? reduce_scatter(call) : all_reduce(call);
}

}  // namespace ostro::cpu
