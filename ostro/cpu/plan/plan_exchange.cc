// exchange_leaves (docs/numerics.md, N8): each worker sends every peer the part of its leaf's x that the peer
// owns, and adds up what it receives, in the subtrees that the op lists. Results: the sums, then the working
// memory (compile/plan/exchange_scratch.h).
#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ostro/cpu/plan/plan_call.h"
#include "ostro/numerics/tree.h"

namespace ostro::cpu {
namespace {

// Elements that are added up at a time: small enough for a round's worth of them to stay in the cache.
constexpr int64_t kBlock = 2048;

void add(float* out, const float* a, const float* b, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] = a[i] + b[i];
}

// x as [before, cut axis, inner], and where the parts of the cut axis begin.
struct Cut {
  int64_t before = 1, inner = 1;
  std::vector<int64_t> bounds;

  Cut(const ir::Shape& x, const ir::Attrs& attrs) {
    const int64_t at = x.find(attrs.str("axis", ""));
    bounds = at < 0 ? std::vector<int64_t>{0, 1} : attrs.ints("bounds");
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != at) (i < at ? before : inner) *= x.axes[static_cast<size_t>(i)].size;
  }
  int64_t start(size_t part) const { return bounds[part] * before * inner; }
  int64_t count(size_t part) const { return start(part + 1) - start(part); }
};

// Puts x part by part, so that each lies together.
void pack(const float* x, const Cut& cut, float* packed, ThreadPool& pool) {
  const int64_t row = cut.bounds.back() * cut.inner;
  pool.parallel_for(cut.before, [&](int64_t begin, int64_t end) {
    for (size_t c = 0; c + 1 < cut.bounds.size(); ++c) {
      const int64_t width = cut.count(c) / cut.before, from = cut.bounds[c] * cut.inner;
      for (int64_t b = begin; b < end && width > 0; ++b)
        std::memcpy(packed + cut.start(c) + b * width, x + b * row + from,
                    static_cast<size_t>(width) * sizeof(float));
    }
  });
}

// out = the tree over `leaves` slices of `n` elements; overwrites the slices.
void fold(float* slices, int64_t leaves, int64_t n, float* out, ThreadPool& pool) {
  pool.parallel_for(
      n,
      [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; at += kBlock) {
          const int64_t length = std::min(kBlock, end - at);
          const auto slice = [&](int64_t i) { return slices + i * n + at; };
          if (leaves == 1) {
            std::memcpy(out + at, slice(0), static_cast<size_t>(length) * sizeof(float));
            continue;
          }
          // Neighbours at distance 1, 2, 4, ...; the last addition is that of the root.
          const int64_t root = numerics::tree_split(leaves);
          for (int64_t step = 1; step < root; step *= 2)
            for (int64_t i = 0; i + step < leaves; i += 2 * step)
              add(slice(i), slice(i), slice(i + step), length);
          add(out + at, slice(0), slice(root), length);
        }
      },
      kBlock);
}

}  // namespace

Status run_exchange_leaves(const OpCall& call) {
  runtime::Collectives* group = call.context.collectives;
  if (group == nullptr) return invalid_argument("exchange_leaves: the run has no Collectives");
  const auto &owners = call.attrs.ints("owners"), &firsts = call.attrs.ints("firsts"),
             &counts = call.attrs.ints("counts");
  const int64_t part = call.attrs.i64("part");
  const std::vector<int64_t> peers = group->peers(call.attrs.str("mesh_axes"));
  const auto me = static_cast<size_t>(std::find(peers.begin(), peers.end(), group->rank()) - peers.begin());
  if (owners.size() != peers.size() || me == peers.size() || owners[me] != part)
    return invalid_argument(fmt::format("exchange_leaves: part {} of owners [{}] at place {} of {} peers",
                                        part, fmt::join(owners, ", "), me, peers.size()));

  const Cut cut(call.in[0].shape(), call.attrs);
  const float* x = call.in[0].as<float>();
  if (cut.before > 1) {
    pack(x, cut, call.out[2].as<float>(), call.pool);
    x = call.out[2].as<float>();
  }
  // Peers without a leaf send nothing.
  std::vector<char> has_leaf(peers.size(), 0);
  for (size_t i = 0; i < firsts.size(); ++i) std::fill_n(has_leaf.begin() + firsts[i], counts[i], 1);
  const int64_t n = cut.count(static_cast<size_t>(part));
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  float* received = call.out[1].as<float>();
  for (size_t p = 0; p < peers.size(); ++p) {
    const auto theirs = static_cast<size_t>(owners[p]);
    const int64_t sent = has_leaf[me] != 0 ? cut.count(theirs) : 0, got = has_leaf[p] != 0 ? n : 0;
    send.push_back(std::as_bytes(std::span(x + cut.start(theirs), static_cast<size_t>(sent))));
    receive.push_back(std::as_writable_bytes(std::span(received, static_cast<size_t>(got))));
    received += got;
  }
  RETURN_IF_ERROR(group->exchange(peers, send, receive));

  float* slices = call.out[1].as<float>();
  for (size_t i = 0; i < firsts.size(); ++i) {
    fold(slices, counts[i], n, call.out[0].as<float>() + static_cast<int64_t>(i) * n, call.pool);
    slices += counts[i] * n;
  }
  return Status();
}

}  // namespace ostro::cpu
