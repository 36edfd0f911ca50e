#include "ostro/train/workers/worker.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/tree.h"
#include "ostro/spmd/run_parts.h"
#include "ostro/train/workers/messages.h"

namespace ostro::train {
namespace {

using runtime::Buffer;
}  // namespace

Result<runtime::Executable*> Worker::leaf_program() {
  const ir::Program& program = *plan_.leaf.programs[static_cast<size_t>(rank_)];
  RETURN_IF_ERROR(compile_once(leaf_, program, leaf_options(plan_.remat)));
  return leaf_.get();
}

Result<StepResult> Worker::step(runtime::Collectives& c, const BatchArrays& batch,
                                const optim::AdamScalars& scalars) {
  const numerics::FpEnvGuard guard;
  pending_.reset();
  const PhasedSpan span(profiling() ? fmt::format("worker {}", rank_) : "");
  if (params_.empty()) RETURN_IF_ERROR(gather_params(c));
  StepResult result;
  const int64_t leaves = batch[0].shape().axes[0].size / plan_.rows;
  result.leaves.resize(static_cast<size_t>(leaves));
  ASSIGN_OR_RETURN(std::vector<Buffers> partials, run_leaves(c, batch, leaves, result.leaves));
  phase("share results");
  RETURN_IF_ERROR(share_results(c, leaves, result.leaves));
  ASSIGN_OR_RETURN(Buffers gradients, exchange_gradients(c, leaves, std::move(partials)));
  params_.clear();
  return update(c, std::move(gradients), scalars, std::move(result));
}

Result<Worker::Buffers> Worker::add(std::unique_ptr<runtime::Executable>& program, Buffers a, Buffers b) {
  phase("tree add");
  std::vector<ir::Shape> shapes;
  for (const Buffer& x : a) shapes.push_back(x.shape());
  RETURN_IF_ERROR(compile_once(program, add_program(shapes), add_options(shapes.size())));
  for (Buffer& x : b) a.push_back(std::move(x));
  return program->run(std::move(a));
}

// The rows of one leaf, as the leaf program takes them.
BatchArrays Worker::leaf_batch(const BatchArrays& batch, int64_t leaf) const {
  BatchArrays rows = rows_of(batch, leaf * plan_.rows, plan_.rows);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i] = spmd::shard(plan_.mesh(), rank_, plan_.leaf.params[plan_.n + i], rows[i]);
  return rows;
}

// Runs this worker's leaves. Returns the summed gradients of each of its subtrees; `results` gets the losses,
// weights and fingerprints of its leaves.
Result<std::vector<Worker::Buffers>> Worker::run_leaves(runtime::Collectives& c, const BatchArrays& batch,
                                                        int64_t leaves, std::vector<LeafResult>& results) {
  std::vector<Buffers> partials;
  for (const Subtree& node : subtrees(leaves, plan_.range(leaves, rank_))) {
    Status failed;
    numerics::TreeFold<Buffers, std::function<Buffers(Buffers, Buffers)>> fold([&](Buffers a, Buffers b) {
      auto sum = failed.ok() ? add(add_whole_, std::move(a), std::move(b)) : Result<Buffers>(Buffers());
      if (!sum.ok()) failed = sum.error();
      return sum.ok() ? std::move(sum).value() : Buffers();
    });
    ASSIGN_OR_RETURN(runtime::Executable * leaf, leaf_program());
    for (int64_t i = node.first; i < node.first + node.count; ++i) {
      phase("leaf", i);
      int64_t at = i;
      if (plan_.fault == WorkerFault::kLeafOrder && leaves > 2 && (i == 1 || i == 2)) at = 3 - i;
      Buffers inputs = params_;
      for (Buffer& b : leaf_batch(batch, at)) inputs.push_back(std::move(b));
      ASSIGN_OR_RETURN(Buffers out, leaf->run(std::move(inputs), {&c}));
      LeafResult r{out[0].item<double>(), out[1].item<double>(), {}};
      for (size_t k = 2 + plan_.n; k < out.size(); ++k)
        r.gradient_prints.push_back(fingerprint_lanes(out[k]));
      results[static_cast<size_t>(i)] = std::move(r);
      out.resize(2 + plan_.n);
      out.erase(out.begin(), out.begin() + 2);
      fold.push(std::move(out));
      RETURN_IF_ERROR(failed);
    }
    partials.push_back(fold.finish());
    RETURN_IF_ERROR(failed);
  }
  return partials;
}

// Sends the loss, weight and fingerprints of every leaf to the workers that ran others.
Status Worker::share_results(runtime::Collectives& c, int64_t leaves, std::vector<LeafResult>& results) {
  const size_t prints = plan_.programs.leaf.body.results.size() - 2 - plan_.n;
  const std::vector<int64_t> peers = plan_.leaf_peers(rank_);
  const LeafRange own = plan_.range(leaves, rank_);
  Bytes mine;
  for (int64_t i = own.begin; i < own.end; ++i) {
    const LeafResult& r = results[static_cast<size_t>(i)];
    append_value(mine, r.loss_sum);
    append_value(mine, r.weight);
    for (const auto& print : r.gradient_prints) append_value(mine, print);
  }
  std::vector<size_t> expected;
  for (const int64_t peer : peers) {
    const LeafRange range = plan_.range(leaves, peer);
    expected.push_back(static_cast<size_t>(range.end - range.begin) * leaf_result_bytes());
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, exchange(c, peers, mine, expected));
  for (size_t w = 0; w < peers.size(); ++w) {
    Reader reader(received[w]);
    const LeafRange range = plan_.range(leaves, peers[w]);
    for (int64_t i = range.begin; i < range.end; ++i) {
      LeafResult r;
      r.loss_sum = reader.value<double>();
      r.weight = reader.value<double>();
      for (size_t k = 0; k < prints; ++k) r.gradient_prints.push_back(reader.value<std::array<int64_t, 2>>());
      results[static_cast<size_t>(i)] = std::move(r);
    }
  }
  return Status();
}

// Sends every worker its cells of this worker's partial sums. Returns the sums over all leaves of the cells
// that this worker owns.
Result<Worker::Buffers> Worker::exchange_gradients(runtime::Collectives& c, int64_t leaves,
                                                   std::vector<Buffers> partials) {
  phase("exchange gradients");
  const std::vector<int64_t> peers = plan_.leaf_peers(rank_);
  std::vector<Bytes> messages(peers.size());
  for (size_t w = 0; w < peers.size(); ++w)
    for (const Buffers& partial : partials)
      for (size_t k = 0; k < plan_.n; ++k)
        append(messages[w], spmd::shard(plan_.mesh(), peers[w], plan_.cut(k), partial[k]).bytes());
  partials.clear();
  const auto owned_bytes = static_cast<size_t>(plan_.owned_bytes(rank_));
  std::vector<size_t> expected, counts;
  for (const int64_t peer : peers) {
    counts.push_back(subtrees(leaves, plan_.range(leaves, peer)).size());
    expected.push_back(counts.back() * owned_bytes);
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, exchange(c, peers, messages, expected));
  std::vector<std::vector<Buffers>> parts(peers.size());
  for (size_t w = 0; w < peers.size(); ++w) {
    Reader reader(received[w]);
    for (size_t i = 0; i < counts[w]; ++i) {
      Buffers part;
      for (size_t k = 0; k < plan_.n; ++k) part.push_back(reader.buffer(plan_.owned_shape(k, rank_)));
      parts[w].push_back(std::move(part));
    }
  }
  return join(leaves, std::move(parts));
}

// Adds up received[worker][i], the sum of the worker's i-th subtree, along the upper part of the tree over
// all leaves.
Result<Worker::Buffers> Worker::join(int64_t leaves, std::vector<std::vector<Buffers>> received) {
  const std::vector<int64_t> peers = plan_.leaf_peers(rank_);
  if (plan_.fault == WorkerFault::kRingOrder) {
    const auto self = std::find(peers.begin(), peers.end(), rank_) - peers.begin();
    Buffers sum;
    for (size_t i = 0; i < peers.size(); ++i)
      for (Buffers& part : received[(static_cast<size_t>(self) + 1 + i) % peers.size()]) {
        if (sum.empty()) {
          sum = std::move(part);
          continue;
        }
        ASSIGN_OR_RETURN(sum, add(add_owned_, std::move(sum), std::move(part)));
      }
    return sum;
  }
  std::vector<std::pair<Subtree, Buffers>> have;  // ascending
  for (size_t w = 0; w < peers.size(); ++w) {
    const auto nodes = subtrees(leaves, plan_.range(leaves, peers[w]));
    for (size_t i = 0; i < nodes.size(); ++i) have.emplace_back(nodes[i], std::move(received[w][i]));
  }
  size_t next = 0;
  const std::function<Result<Buffers>(Subtree)> sum_of = [&](Subtree node) -> Result<Buffers> {
    OSTRO_CHECK(next < have.size(), "no partial for leaves from {} on", node.first);
    if (have[next].first == node) return std::move(have[next++].second);
    const int64_t left = numerics::tree_split(node.count);
    ASSIGN_OR_RETURN(Buffers a, sum_of({node.first, left}));
    ASSIGN_OR_RETURN(Buffers b, sum_of({node.first + left, node.count - left}));
    return add(add_owned_, std::move(a), std::move(b));
  };
  return sum_of({0, leaves});
}

// Brings what the leaf program reads up to date: the cells of the workers that run other leaves.
Status Worker::gather_params(runtime::Collectives& c) {
  phase("gather parameters");
  params_ = own_.params;
  if (plan_.gather_axes.empty()) return Status();
  const std::vector<int64_t> peers = plan_.mesh().peers(rank_, plan_.gather_axes);
  Bytes mine;
  for (size_t k = 0; k < plan_.n; ++k)
    if (plan_.gathered(k)) append(mine, own_.params[k].bytes());
  std::vector<size_t> expected;
  for (const int64_t peer : peers) {
    int64_t bytes = 0;
    for (size_t k = 0; k < plan_.n; ++k)
      if (plan_.gathered(k)) bytes += plan_.owned_shape(k, peer).bytes();
    expected.push_back(static_cast<size_t>(bytes));
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, exchange(c, peers, mine, expected));
  for (size_t k = 0; k < plan_.n; ++k)
    if (plan_.gathered(k)) params_[k] = Buffer::empty(plan_.used_shape(k, rank_));
  for (size_t w = 0; w < peers.size(); ++w) {
    Reader reader(received[w]);
    for (size_t k = 0; k < plan_.n; ++k)
      if (plan_.gathered(k))
        spmd::place(plan_.mesh(), peers[w], plan_.cut(k), reader.buffer(plan_.owned_shape(k, peers[w])),
                    params_[k]);
  }
  return Status();
}

}  // namespace ostro::train
