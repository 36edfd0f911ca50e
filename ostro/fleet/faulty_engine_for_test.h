// FaultyEngine: an engine with one planted fault, which tests of equality must notice. No part of the product
// knows of it: it passes calls to a right engine, and recognises programs by their names.
//
//   leaf_order      in sums of three or more gradients the first and the last change places in the tree
//   ring_order      sums of three or more gradients are added as a chain that begins with the last
//   arrival_order   sums of three or more gradients are added as a chain in an order that is drawn anew for
//   each,
//                   as if each was added when it came
//   mean_of_means   gradients are averaged within each leaf, then over the leaves (on one worker)
//   gradient_bit    in step 6 the lowest bit of one element of the summed gradient is flipped (on one worker)
//   round_order     with trainer.mesh.exchange layer, the workers of a round run its leaves in another order
//                   than that in which their gradients are added up
//   wrong_experts   the rows of a mixture go to the worker of the next expert
//   stale_replica   the copies of other workers' cells miss the update of step 6
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/spmd/wrong_experts_for_test.h"
#include "ostro/train/options/mesh.h"

namespace ostro::fleet {

using FaultyBuffers = std::vector<runtime::Buffer>;

// A compiled program whose runs pass through a function: (the right program, inputs, context) -> results.
class FaultyProgram final : public runtime::Executable {
 public:
  using Run =
      std::function<Result<FaultyBuffers>(runtime::Executable&, FaultyBuffers, const runtime::RunContext&)>;
  FaultyProgram(std::unique_ptr<runtime::Executable> right, Run run)
      : right_(std::move(right)), run_(std::move(run)) {}
  Result<FaultyBuffers> run(FaultyBuffers inputs, const runtime::RunContext& context) override {
    return run_(*right_, std::move(inputs), context);
  }
  runtime::ExecutableInfo info() const override { return right_->info(); }
  void release() override { right_->release(); }

 private:
  std::unique_ptr<runtime::Executable> right_;
  Run run_;
};

// Adds two lists of gradients, and remembers the parts of each sum, so that it can add three or more parts in
// another order.
class FaultyAdder {
 public:
  enum class Order { kEndsChanged, kRing, kArrival };
  explicit FaultyAdder(Order order) : order_(order) {}

  Result<FaultyBuffers> run(runtime::Executable& add, const FaultyBuffers& inputs) {
    const auto half = inputs.begin() + static_cast<int64_t>(inputs.size() / 2);
    Sum sum{{}, {}, take({inputs.begin(), half}), take({half, inputs.end()})};
    std::vector<FaultyBuffers> parts;
    list(sum, parts);
    if (order_ == Order::kEndsChanged) std::swap(parts.front(), parts.back());
    if (order_ == Order::kArrival) std::shuffle(parts.begin(), parts.end(), drawn_);
    size_t next = 0;
    ASSIGN_OR_RETURN(FaultyBuffers made,
                     order_ == Order::kEndsChanged ? tree(add, sum, parts, next) : chain(add, parts));
    sum.result = made;
    sums_.push_back(std::move(sum));
    if (sums_.size() > kRemembered) sums_.erase(sums_.begin());
    return made;
  }

 private:
  struct Sum {
    FaultyBuffers result;    // holds its place, so that no other buffer is taken for it
    FaultyBuffers gradient;  // a copy, of what was not summed here
    std::shared_ptr<Sum> left, right;
  };
  static constexpr size_t kRemembered = 16;  // more than the sums of any tree here that wait for another

  std::shared_ptr<Sum> take(const FaultyBuffers& inputs) {
    const auto known = std::find_if(sums_.begin(), sums_.end(),
                                    [&](const Sum& s) { return s.result[0].same_place(inputs[0]); });
    if (known != sums_.end()) {
      auto sum = std::make_shared<Sum>(std::move(*known));
      sums_.erase(known);
      sum->result.clear();
      return sum;
    }
    auto part = std::make_shared<Sum>();
    for (const runtime::Buffer& b : inputs)
      part->gradient.push_back(runtime::Buffer::copy_of(b.shape(), b.bytes().data()));
    return part;
  }

  static void list(const Sum& sum, std::vector<FaultyBuffers>& parts) {
    if (sum.left == nullptr) return parts.push_back(sum.gradient);
    list(*sum.left, parts);
    list(*sum.right, parts);
  }

  static Result<FaultyBuffers> chain(runtime::Executable& add, const std::vector<FaultyBuffers>& parts) {
    FaultyBuffers sum = parts.back();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      ASSIGN_OR_RETURN(sum, plus(add, sum, parts[i]));
    }
    return sum;
  }

  static Result<FaultyBuffers> tree(runtime::Executable& add, const Sum& sum,
                                    const std::vector<FaultyBuffers>& parts, size_t& next) {
    if (sum.left == nullptr) return parts[next++];
    ASSIGN_OR_RETURN(const FaultyBuffers left, tree(add, *sum.left, parts, next));
    ASSIGN_OR_RETURN(const FaultyBuffers right, tree(add, *sum.right, parts, next));
    return plus(add, left, right);
  }

  static Result<FaultyBuffers> plus(runtime::Executable& add, FaultyBuffers a, const FaultyBuffers& b) {
    a.insert(a.end(), b.begin(), b.end());
    return add.run(std::move(a));
  }

  Order order_;
  std::mt19937 drawn_{39};
  std::vector<Sum> sums_;
};

// Results are in the host's memory. Thread-safe, as every engine.
class FaultyEngine final : public runtime::Engine {
 public:
  static constexpr int64_t kFaultyStep = 6;

  // `fault` is one of the names above; "": none.
  FaultyEngine(std::unique_ptr<runtime::Engine> right, std::string fault)
      : right_(std::move(right)), fault_(std::move(fault)) {
    static constexpr std::string_view kFaults[] = {"",
                                                   "leaf_order",
                                                   "ring_order",
                                                   "arrival_order",
                                                   "mean_of_means",
                                                   "gradient_bit",
                                                   "round_order",
                                                   "wrong_experts",
                                                   "stale_replica"};
    OSTRO_CHECK(std::find(std::begin(kFaults), std::end(kFaults), fault_) != std::end(kFaults),
                "\"{}\" is none of the faults of faulty_engine_for_test.h; a control without a fault would "
                "prove nothing",
                fault_);
  }

  const runtime::EngineInfo& info() const override { return right_->info(); }
  runtime::Memory& memory() override { return right_->memory(); }
  runtime::Inspector* inspector() override { return right_->inspector(); }
  Result<runtime::ExecutableInfo> estimate(const ir::Program& program,
                                           const runtime::CompileOptions& options) override {
    return right_->estimate(program, options);
  }

  Result<std::unique_ptr<runtime::Executable>> compile(const ir::Program& program,
                                                       const runtime::CompileOptions& options) override {
    if (fault_ == "wrong_experts") {
      ir::Program shifted = program;
      spmd::shift_experts(shifted.body);
      return right_->compile(shifted, options);
    }
    ASSIGN_OR_RETURN(std::unique_ptr<runtime::Executable> right, right_->compile(program, options));
    FaultyProgram::Run run = run_of(program);
    if (!run) return right;
    return std::unique_ptr<runtime::Executable>(
        std::make_unique<FaultyProgram>(std::move(right), std::move(run)));
  }

 private:
  // What a program of this name does wrong; empty: nothing.
  FaultyProgram::Run run_of(const ir::Program& program) {
    const std::string& name = program.name;
    using Order = FaultyAdder::Order;
    const bool ring = fault_ == "ring_order", arrival = fault_ == "arrival_order";
    if (name == "add" && (ring || arrival || fault_ == "leaf_order")) {
      const Order order = ring ? Order::kRing : arrival ? Order::kArrival : Order::kEndsChanged;
      return [adder = std::make_shared<FaultyAdder>(order)](runtime::Executable& add, const FaultyBuffers& in,
                                                            const auto&) { return adder->run(add, in); };
    }
    if (name == "leaf" && fault_ == "round_order") return swap_leaves(program);
    if (name == "leaf" && fault_ == "mean_of_means") return average_leaf(program);
    if (name == "update" && fault_ == "mean_of_means") return average_leaves(program);
    if (name == "update" && fault_ == "gradient_bit") return flip_bit(program);
    if (name == "apply_mirrored" && fault_ == "stale_replica")
      return [results = program.body.results.size(), step = int64_t{0}](
                 runtime::Executable& apply, FaultyBuffers in, const auto& context) mutable {
        if (++step != kFaultyStep) return apply.run(std::move(in), context);
        in.resize(results);  // the parameters and the optimizer's arrays stay as they are
        return Result<FaultyBuffers>(std::move(in));
      };
    return {};
  }

  static size_t place_of(const std::vector<std::string>& names, const std::string& name) {
    const auto at = std::find(names.begin(), names.end(), name);
    OSTRO_CHECK(at != names.end(), "no \"{}\" among the names of a program", name);
    return static_cast<size_t>(at - names.begin());
  }
  static bool is_gradient(const std::string& name) { return name.starts_with("gradient/"); }

  // Every worker runs the leaf of the next one, and gives back what it has found beside the gradients.
  static FaultyProgram::Run swap_leaves(const ir::Program& program) {
    std::vector<bool> rows, given_back;
    for (const ir::ValueId p : program.body.params) rows.push_back(program.body.shape(p).has("batch"));
    for (const std::string& name : program.result_names) given_back.push_back(!is_gradient(name));
    return [rows, given_back](runtime::Executable& leaf, FaultyBuffers in,
                              const runtime::RunContext& context) -> Result<FaultyBuffers> {
      RETURN_IF_ERROR(shift(*context.collectives, in, rows, 1));
      ASSIGN_OR_RETURN(FaultyBuffers out, leaf.run(std::move(in), context));
      RETURN_IF_ERROR(shift(*context.collectives, out, given_back, -1));
      return out;
    };
  }

  // Each worker takes the chosen buffers of the worker that is `by` places behind it.
  static Status shift(runtime::Collectives& c, FaultyBuffers& buffers, const std::vector<bool>& chosen,
                      int64_t by) {
    const std::vector<int64_t> peers = c.peers(train::kLeafPeers);
    const auto size = static_cast<int64_t>(peers.size());
    const int64_t place = std::find(peers.begin(), peers.end(), c.rank()) - peers.begin();
    const auto at = [&](int64_t i) { return static_cast<size_t>((i + size) % size); };
    for (size_t i = 0; i < buffers.size(); ++i) {
      if (!chosen[i]) continue;
      runtime::Buffer got = runtime::Buffer::empty(buffers[i].shape());
      std::vector<std::span<const std::byte>> send(peers.size());
      std::vector<std::span<std::byte>> receive(peers.size());
      send[at(place - by)] = buffers[i].bytes();
      receive[at(place + by)] = got.mutable_bytes();
      RETURN_IF_ERROR(c.exchange(peers, send, receive));
      buffers[i] = got;
    }
    return Status();
  }

  FaultyProgram::Run average_leaf(const ir::Program& program) {
    return [this, names = program.result_names](runtime::Executable& leaf, FaultyBuffers in,
                                                const auto& context) -> Result<FaultyBuffers> {
      ASSIGN_OR_RETURN(FaultyBuffers out, leaf.run(std::move(in), context));
      const auto share = static_cast<float>(1.0 / out[place_of(names, "weight")].item<double>());
      for (size_t i = 0; i < out.size(); ++i)
        if (is_gradient(names[i]))
          for (float& x : out[i].mutable_as<float>()) x *= share;
      ++leaves_;
      return out;
    };
  }

  // Divides by the number of leaves; the mean loss stays what it is.
  FaultyProgram::Run average_leaves(const ir::Program& program) {
    const size_t loss = place_of(program.param_names, "loss_sum");
    const size_t weight = place_of(program.param_names, "weight");
    return [this, loss, weight](runtime::Executable& update, FaultyBuffers in, const auto& context) {
      const auto leaves = static_cast<double>(leaves_.exchange(0));
      in[loss] = runtime::Buffer::scalar(ir::DType::f64,
                                         in[loss].item<double>() / in[weight].item<double>() * leaves);
      in[weight] = runtime::Buffer::scalar(ir::DType::f64, leaves);
      return update.run(std::move(in), context);
    };
  }

  static FaultyProgram::Run flip_bit(const ir::Program& program) {
    const auto first = std::find_if(program.param_names.begin(), program.param_names.end(), is_gradient);
    OSTRO_CHECK(first != program.param_names.end(), "the program \"{}\" takes no gradients", program.name);
    return [at = static_cast<size_t>(first - program.param_names.begin()), step = int64_t{0}](
               runtime::Executable& update, FaultyBuffers in, const auto& context) mutable {
      if (++step == kFaultyStep) {
        const auto values = in[at].mutable_as<float>();
        float& largest = *std::max_element(values.begin(), values.end());
        largest = std::bit_cast<float>(std::bit_cast<uint32_t>(largest) ^ 1u);
      }
      return update.run(std::move(in), context);
    };
  }

  std::unique_ptr<runtime::Engine> right_;
  const std::string fault_;
  std::atomic<int64_t> leaves_ = 0;  // run since the last update
};

}  // namespace ostro::fleet
