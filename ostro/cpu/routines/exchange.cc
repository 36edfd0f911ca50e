// exchange_leaves (docs/spec/numerics.md, N8): each worker sends every peer the part of its leaf's x that the
// peer owns, and adds up what it receives, in the subtrees that the op lists. Results: the sums, then the
// working memory (compile/plan/exchange_scratch.h).
#include <algorithm>

#include <fmt/format.h>

#include "ostro/cpu/routines/flights.h"
#include "ostro/cpu/routines/op_call.h"
#include "ostro/cpu/routines/parts.h"

namespace ostro::cpu {

Status run_exchange_leaves(const OpCall& call) {
  const auto &owners = call.attrs.ints("owners"), &firsts = call.attrs.ints("firsts"),
             &counts = call.attrs.ints("counts");
  const auto part = static_cast<size_t>(call.attrs.i64("part"));
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axes", owners.size()));
  if (owners[peers.me] != call.attrs.i64("part"))
    return invalid_argument(fmt::format("exchange_leaves: part {} of owners [{}] at place {} of {} peers",
                                        part, fmt::join(owners, ", "), peers.me, owners.size()));

  const std::string axis = call.attrs.str("axis", "");
  const Cut cut(call.in[0].shape(), axis, axis.empty() ? std::vector<int64_t>() : call.attrs.ints("bounds"));
  const char* x = call.in[0].data;
  constexpr int64_t kSize = sizeof(float);
  if (!cut.together()) {
    pack_parts(x, cut, kSize, call.out[2].data, call.pool);
    x = call.out[2].data;
  }
  // Peers without a leaf send nothing.
  std::vector<char> has_leaf(owners.size(), 0);
  for (size_t i = 0; i < firsts.size(); ++i) std::fill_n(has_leaf.begin() + firsts[i], counts[i], 1);
  const int64_t n = cut.count(part);
  std::vector<std::span<const std::byte>> send(owners.size());
  std::vector<std::span<std::byte>> receive(owners.size());
  std::vector<const char*> slices(owners.size());
  char* received = call.out[1].data;
  for (size_t p = 0; p < owners.size(); ++p) {
    if (p == peers.me) {  // stays where it is
      slices[p] = x + cut.start(part) * kSize;
      continue;
    }
    const auto theirs = static_cast<size_t>(owners[p]);
    const int64_t sent = has_leaf[peers.me] != 0 ? cut.count(theirs) : 0, got = has_leaf[p] != 0 ? n : 0;
    send[p] = {reinterpret_cast<const std::byte*>(x + cut.start(theirs) * kSize),
               static_cast<size_t>(sent * kSize)};
    receive[p] = {reinterpret_cast<std::byte*>(received), static_cast<size_t>(got * kSize)};
    slices[p] = received;
    received += got * kSize;
  }
  const auto join = [&firsts, &counts, slices, n, out = call.out[0].data, &pool = call.pool]() -> Status {
    for (size_t i = 0; i < firsts.size(); ++i)
      RETURN_IF_ERROR(join_slices(
          ir::OpKind::all_reduce_tree, ir::DType::f32,
          std::span(slices).subspan(static_cast<size_t>(firsts[i]), static_cast<size_t>(counts[i])), n,
          out + static_cast<int64_t>(i) * n * kSize, pool));
    return Status();
  };
  return call.flights.start(call, {peers.ranks, send, receive}, {x, x + call.in[0].shape().bytes()}, join);
}

}  // namespace ostro::cpu
