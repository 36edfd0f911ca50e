#include "ostro/batches/order/mixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <numeric>

#include "ostro/base/check.h"
#include "ostro/numerics/permutation.h"

namespace ostro::batches {
namespace {

// The weights, scaled to a sum of 2^40 and rounded to integers, which can be compared exactly.
std::vector<int64_t> units_of(const std::vector<double>& weights) {
  double sum = 0;
  for (const double weight : weights) sum += weight;
  OSTRO_CHECK(sum > 0, "weights with a sum of {}", sum);
  std::vector<int64_t> units;
  for (const double weight : weights)
    units.push_back(static_cast<int64_t>(std::floor(weight / sum * 0x1p40 + 0.5)));
  return units;
}

}  // namespace

// Two blocks, since a batch may lie in two neighbouring ones.
struct Mixture::Cache {
  std::mutex mutex;
  std::array<std::shared_ptr<const Block>, 2> blocks;  // latest first
};

std::vector<int64_t> exact_counts(const std::vector<double>& weights, int64_t length) {
  OSTRO_CHECK(length <= data::kMaxMixtureBlock, "a block of {} sequences", length);
  const std::vector<int64_t> units = units_of(weights);
  const int64_t whole = std::accumulate(units.begin(), units.end(), int64_t{0});
  std::vector<int64_t> counts, remainders;
  for (const int64_t unit : units) {
    counts.push_back(unit * length / whole);
    remainders.push_back(unit * length % whole);
  }
  std::vector<size_t> order(weights.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return remainders[a] > remainders[b]; });
  const int64_t rest = length - std::accumulate(counts.begin(), counts.end(), int64_t{0});
  for (int64_t i = 0; i < rest; ++i) ++counts[order[static_cast<size_t>(i)]];
  return counts;
}

Result<Mixture> Mixture::create(const data::DataOptions& options, const BatchSchedule& schedule,
                                numerics::Key key) {
  Mixture mixture;
  mixture.key_ = numerics::fold_in(key, "mixture");
  mixture.block_size_ = options.mixture_block_size;
  mixture.cache_ = std::make_shared<Cache>();
  const std::vector<data::Component> components = data::components_of(options);
  for (const auto& [step, stage_weights] : options.train_weights.stages) {
    std::vector<double> weights;
    for (const data::Component& c : components) weights.push_back(data::weight_of(options, c.name, step));
    Stage stage;
    stage.first_example = schedule.first_example(step);
    stage.in_block = exact_counts(weights, mixture.block_size_);
    for (size_t c = 0; c < components.size(); ++c)
      if (weights[c] > 0 && stage.in_block[c] == 0)
        return config::option_error(
            "data.mixture_block_size",
            fmt::format(
                "of {} sequences component \"{}\" with weight {} (from step {} on) gets none; use {:.0f} "
                "or more, or weight 0",
                mixture.block_size_, components[c].name, weights[c], step,
                std::ceil(std::accumulate(weights.begin(), weights.end(), 0.0) / weights[c])));
    stage.before = mixture.stages_.empty() ? std::vector<int64_t>(components.size(), 0)
                                           : mixture.counts_before(stage.first_example);
    mixture.stages_.push_back(std::move(stage));
  }
  return mixture;
}

Mixture::Place Mixture::place_of(int64_t example) const {
  OSTRO_CHECK(example >= 0, "example {}", example);
  const auto behind = std::upper_bound(stages_.begin(), stages_.end(), example,
                                       [](int64_t e, const Stage& stage) { return e < stage.first_example; });
  const int64_t at = example - std::prev(behind)->first_example;
  return {static_cast<size_t>(behind - stages_.begin()) - 1, at / block_size_, at % block_size_};
}

// A block has a slot for each of its examples, ordered by component; a keyed permutation of the slots gives
// the component at each offset. The key depends on the stage and the number of the block alone.
std::shared_ptr<const Mixture::Block> Mixture::block(size_t stage, int64_t number) const {
  {
    const std::lock_guard lock(cache_->mutex);
    for (const auto& block : cache_->blocks)
      if (block != nullptr && block->stage == stage && block->number == number) return block;
  }
  auto block = std::make_shared<Block>(Block{stage, number, {}, {}});
  const std::vector<int64_t>& counts = stages_[stage].in_block;
  const numerics::Key key =
      numerics::fold_in(numerics::fold_in(key_, static_cast<uint32_t>(stage)), static_cast<uint32_t>(number));
  const numerics::Permutation order(key, block_size_);
  std::vector<uint32_t> seen(counts.size(), 0);
  for (int64_t offset = 0; offset < block_size_; ++offset) {
    int64_t slot = order(offset);
    size_t component = 0;
    for (; slot >= counts[component]; ++component) slot -= counts[component];
    block->components.push_back(static_cast<uint32_t>(component));
    block->ranks.push_back(seen[component]++);
  }
  const std::lock_guard lock(cache_->mutex);
  cache_->blocks = {block, cache_->blocks[0]};
  return block;
}

// The example's number in its component is a sum of three counts: earlier stages, earlier blocks of this
// stage, and earlier offsets of this block.
Mixture::Pick Mixture::operator()(int64_t example) const {
  const Place place = place_of(example);
  const auto table = block(place.stage, place.block);
  const auto offset = static_cast<size_t>(place.offset);
  const size_t component = table->components[offset];
  const Stage& stage = stages_[place.stage];
  return {component,
          stage.before[component] + place.block * stage.in_block[component] + table->ranks[offset]};
}

std::optional<int64_t> Mixture::example_of(const Pick& pick) const {
  const size_t c = pick.component;
  OSTRO_CHECK(c < stages_[0].in_block.size() && pick.number >= 0, "example {} of component {}", pick.number,
              c);
  // The last stage that begins with this number or an earlier one, and has examples of the component.
  size_t stage = stages_.size();
  while (stage > 0 && (stages_[stage - 1].before[c] > pick.number || stages_[stage - 1].in_block[c] == 0))
    --stage;
  if (stage == 0) return std::nullopt;
  const Stage& in = stages_[--stage];
  const int64_t later = pick.number - in.before[c], number = later / in.in_block[c];
  const auto table = block(stage, number);
  size_t offset = 0;
  while (table->components[offset] != c || table->ranks[offset] != later % in.in_block[c]) ++offset;
  const int64_t example = in.first_example + number * block_size_ + static_cast<int64_t>(offset);
  const bool ended = stage + 1 < stages_.size() && example >= stages_[stage + 1].first_example;
  return ended ? std::nullopt : std::optional(example);
}

std::vector<int64_t> Mixture::counts_before(int64_t end) const {
  std::vector<int64_t> total(stages_[0].in_block.size(), 0);
  if (end == 0) return total;
  // Uses the last example and not `end`, which may already belong to the next stage.
  const Place last = place_of(end - 1);
  const Stage& stage = stages_[last.stage];
  const auto table = block(last.stage, last.block);
  for (size_t c = 0; c < total.size(); ++c) total[c] = stage.before[c] + last.block * stage.in_block[c];
  for (int64_t offset = 0; offset <= last.offset; ++offset)
    ++total[table->components[static_cast<size_t>(offset)]];
  return total;
}

}  // namespace ostro::batches
