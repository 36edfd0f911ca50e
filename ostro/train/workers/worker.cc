#include "ostro/train/workers/worker.h"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/tree.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::train {
namespace {

using runtime::Buffer;
using Bytes = std::vector<std::byte>;

std::vector<int64_t> everyone(int64_t workers) {
  std::vector<int64_t> ranks(static_cast<size_t>(workers));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void append(Bytes& to, std::span<const std::byte> bytes) { to.insert(to.end(), bytes.begin(), bytes.end()); }

template <typename T>
void append_value(Bytes& to, const T& value) {
  append(to, std::as_bytes(std::span(&value, 1)));
}

// Reads what append() wrote, in order.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void read(std::span<std::byte> out) {
    OSTRO_CHECK(at_ + out.size() <= bytes_.size(), "a message of {} bytes is too short", bytes_.size());
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + at_, out.size());
    at_ += out.size();
  }
  template <typename T>
  T value() {
    T v;
    read(std::as_writable_bytes(std::span(&v, 1)));
    return v;
  }
  Buffer buffer(const ir::Shape& shape) {
    Buffer b = Buffer::empty(shape);
    read(b.mutable_bytes());
    return b;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

// Sends messages[i] to worker i and receives expected[i] bytes from it.
Result<std::vector<Bytes>> exchange_all(runtime::Collectives& c, const std::vector<Bytes>& messages,
                                        const std::vector<size_t>& expected) {
  std::vector<Bytes> received;
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;
  for (size_t i = 0; i < messages.size(); ++i) {
    received.emplace_back(expected[i]);
    send.emplace_back(messages[i]);
  }
  for (Bytes& b : received) receive.emplace_back(b);
  RETURN_IF_ERROR(c.exchange(everyone(c.size()), send, receive));
  return received;
}

// A view of the group that contains only the owners. The collectives of the update program run among them.
class Owners final : public runtime::Collectives {
 public:
  Owners(runtime::Collectives& group, int64_t count) : group_(group), count_(count) {}
  int64_t rank() const override { return group_.rank(); }
  int64_t size() const override { return count_; }
  int64_t bytes_sent() const override { return group_.bytes_sent(); }
  std::vector<int64_t> peers(std::string_view) const override { return everyone(count_); }
  Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    return group_.exchange(peers, send, receive);
  }

 private:
  runtime::Collectives& group_;
  int64_t count_;
};

Status compile_once(std::unique_ptr<runtime::Executable>& slot, runtime::Engine& engine,
                    const ir::Program& program, const runtime::CompileOptions& options) {
  if (slot != nullptr) return Status();
  ASSIGN_OR_RETURN(slot, engine.compile(program, options));
  return Status();
}

}  // namespace

Result<runtime::Executable*> Worker::leaf_program() {
  RETURN_IF_ERROR(compile_once(leaf_, *plan_.engine, plan_.programs.leaf, leaf_options(plan_.remat)));
  return leaf_.get();
}

Result<runtime::Executable*> Worker::update_program() {
  const ir::Program& program = *plan_.update.programs[static_cast<size_t>(rank_)];
  RETURN_IF_ERROR(compile_once(update_, *plan_.engine, program, update_options(plan_.n)));
  return update_.get();
}

void Worker::adopt(const State& state) {
  params_ = state.params;
  if (!owner()) return;
  p_.clear(), m_.clear(), v_.clear();
  for (size_t k = 0; k < plan_.n; ++k) {
    const auto mine = [&](const Buffer& b) {
      return spmd::shard(plan_.update.mesh, rank_, plan_.layout(k), b);
    };
    p_.push_back(mine(state.params[k]));
    m_.push_back(mine(state.first_moment[k]));
    v_.push_back(mine(state.second_moment[k]));
  }
}

Result<StepResult> Worker::step(runtime::Collectives& c, const BatchArrays& batch,
                                const optim::AdamScalars& scalars) {
  const numerics::FpEnvGuard guard;
  const PhasedSpan span(profiling() ? fmt::format("worker {}", rank_) : "");
  StepResult result;
  const int64_t leaves = batch[0].shape().axes[0].size / plan_.rows;
  result.leaves.resize(static_cast<size_t>(leaves));
  ASSIGN_OR_RETURN(std::vector<Buffers> partials, run_leaves(batch, leaves, result.leaves));
  phase("share results");
  RETURN_IF_ERROR(share_results(c, leaves, result.leaves));
  ASSIGN_OR_RETURN(Buffers gradients, exchange_gradients(c, leaves, std::move(partials)));
  if (owner()) RETURN_IF_ERROR(update(c, std::move(gradients), scalars, result));
  RETURN_IF_ERROR(gather_params(c));
  return result;
}

Result<Worker::Buffers> Worker::add(std::unique_ptr<runtime::Executable>& program, Buffers a, Buffers b) {
  phase("tree add");
  std::vector<ir::Shape> shapes;
  for (const Buffer& x : a) shapes.push_back(x.shape());
  RETURN_IF_ERROR(compile_once(program, *plan_.engine, add_program(shapes), add_options(shapes.size())));
  for (Buffer& x : b) a.push_back(std::move(x));
  return program->run(std::move(a));
}

// Runs this worker's leaves. Returns the summed gradients of each of its subtrees; `results` gets the losses,
// weights and fingerprints of its leaves.
Result<std::vector<Worker::Buffers>> Worker::run_leaves(const BatchArrays& batch, int64_t leaves,
                                                        std::vector<LeafResult>& results) {
  std::vector<Buffers> partials;
  for (const Subtree& node : subtrees(leaves, leaf_range(leaves, plan_.workers, rank_))) {
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
      for (Buffer& b : rows_of(batch, at * plan_.rows, plan_.rows)) inputs.push_back(std::move(b));
      ASSIGN_OR_RETURN(Buffers out, leaf->run(std::move(inputs)));
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

// Sends the loss, weight and fingerprints of every leaf to all workers.
Status Worker::share_results(runtime::Collectives& c, int64_t leaves, std::vector<LeafResult>& results) {
  const size_t prints = plan_.programs.leaf.body.results.size() - 2 - plan_.n;
  const auto range = [&](int64_t rank) { return leaf_range(leaves, plan_.workers, rank); };
  Bytes mine;
  for (int64_t i = range(rank_).begin; i < range(rank_).end; ++i) {
    const LeafResult& r = results[static_cast<size_t>(i)];
    append_value(mine, r.loss_sum);
    append_value(mine, r.weight);
    for (const auto& print : r.gradient_prints) append_value(mine, print);
  }
  std::vector<size_t> expected;
  for (int64_t w = 0; w < c.size(); ++w)
    expected.push_back(static_cast<size_t>(range(w).end - range(w).begin) * leaf_result_bytes());
  ASSIGN_OR_RETURN(const std::vector<Bytes> received,
                   exchange_all(c, std::vector<Bytes>(expected.size(), mine), expected));
  for (int64_t w = 0; w < c.size(); ++w) {
    Reader reader(received[static_cast<size_t>(w)]);
    for (int64_t i = range(w).begin; i < range(w).end; ++i) {
      LeafResult r;
      r.loss_sum = reader.value<double>();
      r.weight = reader.value<double>();
      for (size_t k = 0; k < prints; ++k) r.gradient_prints.push_back(reader.value<std::array<int64_t, 2>>());
      results[static_cast<size_t>(i)] = std::move(r);
    }
  }
  return Status();
}

// Sends every owner its cells of this worker's partial sums. Returns the sums over all leaves of the cells
// that this worker owns; nothing if it is not an owner.
Result<Worker::Buffers> Worker::exchange_gradients(runtime::Collectives& c, int64_t leaves,
                                                   std::vector<Buffers> partials) {
  phase("exchange gradients");
  const auto workers = static_cast<size_t>(c.size());
  std::vector<Bytes> messages(workers);
  for (int64_t o = 0; o < plan_.owners(); ++o)
    for (const Buffers& partial : partials)
      for (size_t k = 0; k < plan_.n; ++k)
        append(messages[static_cast<size_t>(o)],
               spmd::shard(plan_.update.mesh, o, plan_.layout(k), partial[k]).bytes());
  partials.clear();
  const size_t local_bytes = owner() ? static_cast<size_t>(plan_.local_bytes(rank_)) : 0;
  std::vector<size_t> expected;
  std::vector<size_t> counts;
  for (size_t w = 0; w < workers; ++w) {
    counts.push_back(subtrees(leaves, leaf_range(leaves, plan_.workers, static_cast<int64_t>(w))).size());
    expected.push_back(counts.back() * local_bytes);
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> received, exchange_all(c, messages, expected));
  if (!owner()) return Buffers();
  std::vector<std::vector<Buffers>> parts(workers);
  for (size_t w = 0; w < workers; ++w) {
    Reader reader(received[w]);
    for (size_t i = 0; i < counts[w]; ++i) {
      Buffers part;
      for (size_t k = 0; k < plan_.n; ++k) part.push_back(reader.buffer(plan_.local_shape(k, rank_)));
      parts[w].push_back(std::move(part));
    }
  }
  return join(leaves, std::move(parts));
}

// Adds up received[worker][i], the sum of the worker's i-th subtree, along the upper part of the tree over
// all leaves.
Result<Worker::Buffers> Worker::join(int64_t leaves, std::vector<std::vector<Buffers>> received) {
  if (plan_.fault == WorkerFault::kRingOrder) {
    Buffers sum;
    for (int64_t i = 0; i < plan_.workers; ++i)
      for (Buffers& part : received[static_cast<size_t>((rank_ + 1 + i) % plan_.workers)]) {
        if (sum.empty()) {
          sum = std::move(part);
          continue;
        }
        ASSIGN_OR_RETURN(sum, add(add_local_, std::move(sum), std::move(part)));
      }
    return sum;
  }
  std::vector<std::pair<Subtree, Buffers>> have;  // ascending
  for (int64_t w = 0; w < plan_.workers; ++w) {
    const auto nodes = subtrees(leaves, leaf_range(leaves, plan_.workers, w));
    for (size_t i = 0; i < nodes.size(); ++i)
      have.emplace_back(nodes[i], std::move(received[static_cast<size_t>(w)][i]));
  }
  size_t next = 0;
  const std::function<Result<Buffers>(Subtree)> sum_of = [&](Subtree node) -> Result<Buffers> {
    OSTRO_CHECK(next < have.size(), "no partial for leaves from {} on", node.first);
    if (have[next].first == node) return std::move(have[next++].second);
    const int64_t left = numerics::tree_split(node.count);
    ASSIGN_OR_RETURN(Buffers a, sum_of({node.first, left}));
    ASSIGN_OR_RETURN(Buffers b, sum_of({node.first + left, node.count - left}));
    return add(add_local_, std::move(a), std::move(b));
  };
  return sum_of({0, leaves});
}

Status Worker::update(runtime::Collectives& c, Buffers gradients, const optim::AdamScalars& scalars,
                      StepResult& result) {
  phase("update");
  const size_t n = plan_.n;
  ASSIGN_OR_RETURN(runtime::Executable * program, update_program());
  const auto [loss_sum, weight] = join_losses(result.leaves);
  result.weight = weight;
  Buffers inputs;
  for (Buffers* part : {&p_, &m_, &v_, &gradients}) {
    for (Buffer& b : *part) inputs.push_back(std::move(b));
    part->clear();
  }
  inputs.push_back(Buffer::scalar(ir::DType::f64, loss_sum));
  inputs.push_back(Buffer::scalar(ir::DType::f64, weight));
  for (float s : {scalars.lr, scalars.k1, scalars.k2}) inputs.push_back(Buffer::scalar(ir::DType::f32, s));
  Owners owners(c, plan_.owners());
  ASSIGN_OR_RETURN(Buffers out, program->run(std::move(inputs), {&owners}));
  for (size_t k = 0; k < n; ++k) {
    p_.push_back(std::move(out[k]));
    m_.push_back(std::move(out[n + k]));
    v_.push_back(std::move(out[2 * n + k]));
    result.prints.push_back(fingerprint_lanes(out[3 * n + 3 + k]));
  }
  result.loss = out[3 * n].item<float>();
  result.gradient_norm = out[3 * n + 1].item<double>();
  result.ok = out[3 * n + 2].item<uint8_t>() != 0;
  return Status();
}

Status Worker::gather_params(runtime::Collectives& c) {
  phase("gather parameters");
  Bytes mine;
  if (owner())
    for (size_t k = 0; k < plan_.n; ++k)
      if (plan_.sends_parameter(k, rank_)) append(mine, p_[k].bytes());
  std::vector<size_t> expected(static_cast<size_t>(c.size()), 0);
  for (int64_t o = 0; o < plan_.owners(); ++o)
    for (size_t k = 0; k < plan_.n; ++k)
      if (plan_.sends_parameter(k, o))
        expected[static_cast<size_t>(o)] += static_cast<size_t>(plan_.local_shape(k, o).bytes());
  ASSIGN_OR_RETURN(const std::vector<Bytes> received,
                   exchange_all(c, std::vector<Bytes>(expected.size(), mine), expected));
  params_.clear();
  for (size_t k = 0; k < plan_.n; ++k) params_.push_back(Buffer::empty(plan_.shape(k)));
  for (int64_t o = 0; o < plan_.owners(); ++o) {
    Reader reader(received[static_cast<size_t>(o)]);
    for (size_t k = 0; k < plan_.n; ++k)
      if (plan_.sends_parameter(k, o))
        spmd::place(plan_.update.mesh, o, plan_.layout(k), reader.buffer(plan_.local_shape(k, o)),
                    params_[k]);
  }
  return Status();
}

}  // namespace ostro::train
