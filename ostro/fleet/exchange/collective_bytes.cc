#include "ostro/fleet/exchange/collective_bytes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "ostro/fleet/exchange/gather_all.h"
#include "ostro/ir/rules/collective_parts.h"
#include "ostro/train/options/mesh.h"

namespace ostro::fleet {
namespace {

const std::string& mesh_axes_of(const ir::Op& op) {
  return op.attrs.str(op.kind == ir::OpKind::exchange_leaves ? "mesh_axes" : "mesh_axis");
}

void add_block(const ir::Block& block, const ir::Mesh& mesh, const Slices& slices, int64_t rank, int64_t runs,
               const std::string& where, std::vector<train::Sent>& sent) {
  for (const ir::Op& op : block.ops) {
    const int64_t inside = op.kind == ir::OpKind::scan ? runs * op.attrs.i64("length") : runs;
    for (const ir::Block& region : op.regions) add_block(region, mesh, slices, rank, inside, where, sent);
    if (!ir::is_collective(op.kind)) continue;
    const std::vector<int64_t> peers = mesh.peers(rank, mesh_axes_of(op));
    const auto place = std::find(peers.begin(), peers.end(), rank) - peers.begin();
    int64_t bytes = 0, between = 0;
    for (size_t peer = 0; peer < peers.size(); ++peer) {
      const int64_t to = ir::sent_bytes(op, block.shape(op.operands[0]), place, static_cast<int64_t>(peer));
      bytes += to;
      if (slices.apart(rank, peers[peer])) between += to;
    }
    add_sent(sent, fmt::format("{} over {}, {}", ir::op_name(op.kind), mesh_axes_of(op), where), runs,
             runs * bytes, runs * between);
  }
}

}  // namespace

void add_collectives(const ir::Program& program, const ir::Mesh& mesh, const Slices& slices, int64_t rank,
                     int64_t runs, const std::string& where, std::vector<train::Sent>& sent) {
  add_block(program.body, mesh, slices, rank, runs, where, sent);
}

void add_sent(std::vector<train::Sent>& sent, const std::string& what, int64_t times, int64_t bytes,
              int64_t between) {
  if (bytes == 0) return;
  const auto same =
      std::find_if(sent.begin(), sent.end(), [&](const train::Sent& s) { return s.what == what; });
  if (same == sent.end()) {
    sent.push_back({what, times, bytes, between});
    return;
  }
  same->times += times;
  same->bytes += bytes;
  same->between += between;
}

void add_gathered(const std::vector<int64_t>& sizes, const Slices& slices, int64_t rank,
                  const std::string& what, std::vector<train::Sent>& sent) {
  const std::vector<GatherRound> rounds = gather_rounds(sizes, rank);
  int64_t bytes = 0, between = 0;
  for (const GatherRound& round : rounds) {
    bytes += round.bytes;
    between += slices.apart(rank, round.to) ? round.bytes : 0;
  }
  add_sent(sent, what, std::ssize(rounds), bytes, between);
}

WholeBytes whole_in_one_block(const ir::Block& block) {
  WholeBytes here, most;
  for (const ir::Op& op : block.ops) {
    for (const ir::Block& region : op.regions) {
      const WholeBytes inside = whole_in_one_block(region);
      most.parameters = std::max(most.parameters, inside.parameters);
      most.gradients = std::max(most.gradients, inside.gradients);
    }
    if (op.kind == ir::OpKind::exchange_leaves) here.gradients += block.shape(op.operands[0]).bytes();
    if (op.kind == ir::OpKind::all_gather && std::find(train::kLeafAxes.begin(), train::kLeafAxes.end(),
                                                       mesh_axes_of(op)) != train::kLeafAxes.end())
      here.parameters += block.shape(op.results[0]).bytes();
  }
  return {std::max(here.parameters, most.parameters), std::max(here.gradients, most.gradients)};
}

}  // namespace ostro::fleet
