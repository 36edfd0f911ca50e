#include "ostro/compile/passes/residual_cut.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace ostro::compile {
namespace {

using ir::Op;
using ir::OpKind;

// Infinite cost: far above the bytes of any program, but sums of it do not overflow.
constexpr int64_t kNever = int64_t{1} << 52;

// Maximal flow by shortest paths. Graphs here have some hundred nodes.
class Flow {
 public:
  explicit Flow(size_t nodes) : edges_of_(nodes) {}

  void edge(size_t from, size_t to, int64_t capacity) {
    edges_of_[from].push_back(edges_.size());
    edges_.push_back({to, capacity});
    edges_of_[to].push_back(edges_.size());
    edges_.push_back({from, 0});
  }

  // The nodes from which the sink can still be reached when the flow is maximal. Of all minimal cuts this is
  // the one with the smallest side of the sink.
  std::vector<char> sink_side(size_t source, size_t sink) {
    while (push(source, sink)) {
    }
    std::vector<char> reaches(edges_of_.size(), 0);
    std::deque<size_t> queue{sink};
    reaches[sink] = 1;
    for (; !queue.empty(); queue.pop_front())
      for (size_t e : edges_of_[queue.front()]) {
        const size_t before = edges_[e].to;  // edge e ^ 1 leads from there to here
        if (edges_[e ^ 1].left == 0 || reaches[before] != 0) continue;
        reaches[before] = 1;
        queue.push_back(before);
      }
    return reaches;
  }

 private:
  struct Edge {
    size_t to;
    int64_t left;
  };

  // Sends as much as fits along one shortest path that has capacity left; false when there is none.
  bool push(size_t source, size_t sink) {
    std::vector<int64_t> came_by(edges_of_.size(), -1);
    std::deque<size_t> queue{source};
    for (; !queue.empty() && came_by[sink] < 0; queue.pop_front())
      for (size_t e : edges_of_[queue.front()]) {
        if (edges_[e].left == 0 || came_by[edges_[e].to] >= 0 || edges_[e].to == source) continue;
        came_by[edges_[e].to] = static_cast<int64_t>(e);
        queue.push_back(edges_[e].to);
      }
    if (came_by[sink] < 0) return false;
    int64_t amount = std::numeric_limits<int64_t>::max();
    const auto walk = [&](auto&& f) {
      for (size_t at = sink; at != source;) {
        const auto e = static_cast<size_t>(came_by[at]);
        f(e);
        at = edges_[e ^ 1].to;
      }
    };
    walk([&](size_t e) { amount = std::min(amount, edges_[e].left); });
    walk([&](size_t e) { edges_[e].left -= amount, edges_[e ^ 1].left += amount; });
    return true;
  }

  std::vector<Edge> edges_;
  std::vector<std::vector<size_t>> edges_of_;
};

// The cost of computing the op again, as the number of bytes of memory traffic that cost as much; kNever: it
// is not computed again.
int64_t price(const ir::Block& body, const Op& op) {
  int64_t in = 0, out = 0;
  for (ir::ValueId v : op.operands) in += body.shape(v).bytes();
  for (ir::ValueId v : op.results) out += body.shape(v).bytes();
  switch (op.kind) {
    case OpKind::constant:
    case OpKind::iota:
    case OpKind::broadcast:
    case OpKind::concat:
    case OpKind::stack:
    case OpKind::pad: return out / 32;
    case OpKind::sum:
    case OpKind::reduce_max:
    case OpKind::reduce_min: return in / 16;
    case OpKind::log:
    case OpKind::log2:
    case OpKind::log1p:
    case OpKind::tanh:
    case OpKind::sin:
    case OpKind::cos:
    case OpKind::erf:
    case OpKind::erfinv: return out / 4;  // f64 inside
    default: break;
  }
  if (ir::is_layout(op.kind)) return 0;
  return ir::is_elementwise(op.kind) ? out / 32 : kNever;
}

}  // namespace

std::set<ir::ValueId> residual_cut(const ir::Block& body, size_t consts, size_t carries,
                                   const std::vector<ir::ValueId>& residuals) {
  // Each value v has two nodes. Node 2v: v can be computed again. Node 2v + 1: the reversed body has v. The
  // last two nodes are source and sink. If the edge from 2v to 2v + 1 is cut, v is stacked. If the edge from
  // the source to 2v is cut, the op of v is computed again.
  const size_t values = body.values.size(), source = 2 * values, sink = source + 1;
  Flow flow(sink + 1);
  const auto first = [](ir::ValueId v) { return 2 * static_cast<size_t>(v); };
  for (size_t v = 0; v < values; ++v)
    flow.edge(2 * v, 2 * v + 1, std::max<int64_t>(1, body.values[v].bytes()));
  for (size_t i = consts; i < consts + carries; ++i) flow.edge(source, first(body.params[i]), kNever);
  for (const Op& op : body.ops) {
    const int64_t again = price(body, op);
    for (ir::ValueId r : op.results) {
      if (again > 0) flow.edge(source, first(r), again);
      if (again == kNever) continue;
      for (ir::ValueId x : op.operands) flow.edge(first(x) + 1, first(r), kNever);
    }
  }
  for (ir::ValueId r : residuals) flow.edge(first(r) + 1, sink, kNever);
  const std::vector<char> side = flow.sink_side(source, sink);
  std::set<ir::ValueId> kept;
  for (size_t v = 0; v < values; ++v)
    if (side[2 * v] == 0 && side[2 * v + 1] != 0) kept.insert(static_cast<ir::ValueId>(v));
  return kept;
}

}  // namespace ostro::compile
