#include "ostro/batches/loader/loader.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <thread>
#include <variant>

#include "ostro/base/check.h"
#include "ostro/data/store/store_stats.h"

namespace ostro::batches {
namespace {

// Random keys depend on 32-bit hashes of component names. Two names with the same hash would get the same
// order (N12), so they are refused.
Status check_name_keys(const std::vector<data::Component>& components) {
  std::map<uint32_t, std::string> seen;
  for (const data::Component& c : components) {
    const auto [other, is_new] = seen.emplace(numerics::fnv1a32(c.name), c.name);
    if (!is_new)
      return invalid_argument(
          fmt::format("data.components: \"{}\" and \"{}\" would draw from one random key; rename one",
                      other->second, c.name));
  }
  return {};
}

// For the end of an error: why a store has fewer rows than its texts. Empty when no row was left out.
std::string no_loss_text(const data::Component& c, const data::TokenStore& store) {
  const auto files = store.files();
  if (!files.ok()) return fmt::format("; its source files cannot be listed: {}", files.error().message());
  const int64_t rows = data::file_counts(**files).no_loss;
  if (rows == 0) return "";
  const char* why = std::holds_alternative<data::ChatFormat>(c.format)
                        ? ": the chat template marks no text in them as the assistant's; look at its "
                          "{% generation %} blocks and at the roles, or set format.mask_user_turns: false"
                        : "";
  return fmt::format("; {} rows were left out, because their loss weights are all 0{}", rows, why);
}

Error too_few(const data::Component& c, const DataSet::Part& part, int64_t have, int64_t need,
              int64_t seq_len, bool cut) {
  const data::TokenStream& stream = part.store->split(data::Split::kTrain);
  const std::string left_out = no_loss_text(c, *part.store);
  if (data::is_packed(c.format) && !cut)
    return invalid_argument(fmt::format(
        "{}: {} tokens in {} rows, of which none has a target among its first {} tokens (model.seq_len): a "
        "row needs 2 tokens and an answer that begins within them; raise model.seq_len, or add rows to "
        "{}.train_urls{}",
        stream.name(), stream.tokens(), stream.rows(), seq_len, c.key, left_out));
  return invalid_argument(fmt::format(
      "{}: {} tokens in {} documents are too few{}: {} of {} tokens need {}; add text to {}.train_urls, or "
      "lower {}trainer.train_batch_size or model.seq_len{}",
      stream.name(), stream.tokens(), stream.rows(), need > 1 ? " for one batch" : "",
      need > 1 ? fmt::format("{} examples", need) : "a sequence", seq_len, need * seq_len + 1, c.key,
      cut ? fmt::format("data.target_budget, which leaves {} of its sequences, ", have) : "", left_out));
}

}  // namespace

// Each component draws from a key of its own name, so its order does not change when other components come or
// go. A component without weight in any stage gets no order and is only there for evaluation.
Result<Loader> Loader::create(std::shared_ptr<const DataSet> data, const data::DataOptions& options,
                              int64_t seq_len, const config::Staged<int64_t>& batch_sizes, uint64_t seed,
                              std::optional<int64_t> steps) {
  Loader loader{BatchSchedule(batch_sizes)};
  loader.shape_ = batch_shape(*data, data::Split::kTrain, options, seq_len);
  const std::vector<data::Component> components = data::components_of(options);
  OSTRO_CHECK(data->parts().size() == components.size(), "{} stores for {} components", data->parts().size(),
              components.size());
  const numerics::Key key = data_key(seed);
  const bool mixed = !options.components.empty();
  if (mixed) {
    RETURN_IF_ERROR(check_name_keys(components));
    ASSIGN_OR_RETURN(loader.mixture_, Mixture::create(options, loader.schedule_, key));
  }
  for (size_t i = 0; i < components.size(); ++i) {
    const data::Component& c = components[i];
    Part part{c.name, nullptr, {}, {}, data->parts()[i].scores[static_cast<size_t>(data::Split::kTrain)]};
    ASSIGN_OR_RETURN(part.reader, open_sequences(data->parts()[i], data::Split::kTrain, options, seq_len));
    const bool used =
        !mixed || std::any_of(options.train_weights.stages.begin(), options.train_weights.stages.end(),
                              [&](const auto& s) { return data::weight_of(options, c.name, s.step) > 0; });
    if (used) {
      const numerics::Key own = mixed ? numerics::fold_in(numerics::fold_in(key, "components"), c.name) : key;
      const int64_t stored = part.reader->sequences(true);
      part.subset.emplace(own, stored, options);
      // A single data set must fill a batch. One of several components needs at least one sequence.
      const int64_t n = part.subset->size(), need = mixed ? 1 : loader.schedule_.size(0);
      if (n < need) return too_few(c, data->parts()[i], n, need, seq_len, n < stored);
      part.order.emplace(own, n, options.shuffle);
    }
    loader.parts_.push_back(std::move(part));
  }
  std::vector<std::shared_ptr<const SequenceReader>> readers;
  for (const Part& part : loader.parts_) readers.push_back(part.reader);
  ASSIGN_OR_RETURN(loader.withheld_, Withheld::create(*data, options, readers));
  if (steps) RETURN_IF_ERROR(loader.check_length(options.stop_strategy, *steps));
  return loader;
}

std::vector<int64_t> Loader::counts_before(int64_t end) const {
  return mixture_ ? mixture_->counts_before(end) : std::vector<int64_t>{end};
}

std::vector<ComponentUse> Loader::use(int64_t steps) const {
  const std::vector<int64_t> counts = counts_before(schedule_.first_example(steps));
  std::vector<ComponentUse> all;
  for (size_t i = 0; i < parts_.size(); ++i)
    if (parts_[i].order)
      all.push_back({parts_[i].name, sequences(i), parts_[i].reader->sequences(true), counts[i], i});
  return all;
}

// Checks the number of steps against the stop strategy. With first_exhausted the run ends before the step in
// which some component would begin its second epoch. With all_exhausted it ends with the step in which the
// last component finishes its first epoch.
Status Loader::check_length(data::StopStrategy strategy, int64_t steps) const {
  if (strategy == data::StopStrategy::kRestart) return {};
  const bool first = strategy == data::StopStrategy::kFirstExhausted;
  size_t decisive = 0;
  const auto allowed = [&](int64_t length) {
    const std::vector<int64_t> counts = counts_before(schedule_.first_example(length));
    bool all_done = true;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].order) continue;
      if (first && counts[i] > sequences(i)) return decisive = i, false;
      all_done &= counts[i] >= sequences(i);
      if (counts[i] < sequences(i)) decisive = i;
    }
    return first || !all_done;
  };
  // all_exhausted: the last step may be the one that finishes the last component.
  if (first ? allowed(steps) : steps <= 1 || allowed(steps - 1)) return {};
  int64_t most = 0, least = first ? steps : steps - 1;  // allowed, and not
  while (least - most > 1) {
    const int64_t middle = most + (least - most) / 2;
    (allowed(middle) ? most : least) = middle;
  }
  (void)allowed(first ? least : most);  // sets `decisive`
  const std::string& name = parts_[decisive].name;
  return config::option_error(
      "trainer.num_train_steps",
      fmt::format(
          "{} steps are more than data.stop_strategy {} allows: {} has {} sequences, {} step {}; use at most "
          "{} steps, or data.stop_strategy restart",
          steps, config::flow_text(config::write_value(strategy, config::Write::kAll)),
          name.empty() ? "the data set" : fmt::format("component \"{}\"", name), sequences(decisive),
          first ? "which are all seen before the end of" : "the last of which is seen in", most + 1,
          first ? most : most + 1));
}

// An example goes through three maps: the mixture gives its component and its number there, the component's
// order gives a position in the epoch's subset, and the subset gives the stored sequence.
std::vector<Loader::Place> Loader::places(int64_t first, int64_t count) const {
  std::vector<Place> places;
  for (int64_t example = first; example < first + count; ++example) {
    const Mixture::Pick pick = mixture_ ? (*mixture_)(example) : Mixture::Pick{0, example};
    places.push_back({pick.component, pick.number});
  }
  // Sequences of one component together: permuting many at once is cheaper.
  std::vector<int64_t> numbers;
  for (size_t c = 0; c < parts_.size(); ++c) {
    numbers.clear();
    for (const Place& place : places)
      if (place.component == c) numbers.push_back(place.sequence);
    if (numbers.empty()) continue;
    parts_[c].order->map(numbers);
    auto number = numbers.begin();
    for (Place& place : places)
      if (place.component == c) place.sequence = (*parts_[c].subset)(*number++);
  }
  return places;
}

std::pair<int64_t, int64_t> Loader::numbers_of(size_t component, int64_t first, int64_t end) const {
  OSTRO_CHECK(0 <= first && first <= end, "steps [{}, {})", first, end);
  return {counts_before(schedule_.first_example(first))[component],
          counts_before(schedule_.first_example(end))[component]};
}

int64_t Loader::epochs(size_t component, int64_t first, int64_t end) const {
  const Part& part = parts_[component];
  if (!part.order) return 0;
  const auto [from, to] = numbers_of(component, first, end);
  return from == to ? 0 : (to - 1) / part.order->sequences() - from / part.order->sequences() + 1;
}

// An epoch has a sequence once, so only the epochs that the steps touch are asked.
std::vector<Loader::Use> Loader::uses(size_t component, int64_t sequence, int64_t first, int64_t end) const {
  const Part& part = parts_[component];
  std::vector<Use> uses;
  if (!part.order) return uses;
  const std::optional<int64_t> chosen = part.subset->find(sequence);
  const auto [from, to] = numbers_of(component, first, end);
  if (!chosen || from == to) return uses;
  const int64_t n = part.order->sequences();
  for (int64_t epoch = from / n; epoch <= (to - 1) / n; ++epoch) {
    const int64_t number = part.order->example_of(epoch, *chosen);
    if (number < from || number >= to) continue;
    const int64_t example = mixture_ ? *mixture_->example_of({component, number}) : number;
    const int64_t step = schedule_.step_of(example);
    uses.push_back({step, example - schedule_.first_example(step), epoch});
  }
  return uses;
}

Status Loader::check_countable(int64_t step) const {
  if (schedule_.is_countable(step)) return Status();
  return invalid_argument(
      fmt::format("step {}: too large for batches of {} examples", step, schedule_.size(step)));
}

Result<Batch> Loader::rows(int64_t step, int64_t begin, int64_t end, int threads, Batch memory) const {
  OSTRO_CHECK(step >= 0 && 0 <= begin && begin <= end && end <= schedule_.size(step),
              "rows [{}, {}) of step {}", begin, end, step);
  RETURN_IF_ERROR(check_countable(step));
  Batch batch = make_batch(step, end - begin, shape_, std::move(memory));
  RETURN_IF_ERROR(fill(batch, begin, {{0, end - begin}}, threads));
  return batch;
}

Result<Batch> Loader::batch_with(int64_t step, const Rows& rows, int threads, Batch memory) const {
  const int64_t size = schedule_.size(step);
  for (const auto& [first, last] : rows)
    OSTRO_CHECK(0 <= first && first <= last && last <= size, "rows [{}, {}) of step {}", first, last, step);
  RETURN_IF_ERROR(check_countable(step));
  Batch batch = make_batch(step, size, shape_, std::move(memory));
  RETURN_IF_ERROR(fill(batch, 0, rows, threads));
  return batch;
}

Status Loader::fill(Batch& batch, int64_t begin, const Rows& rows, int threads) const {
  struct Row {
    size_t component;
    int64_t sequence, row;
    auto operator<=>(const Row&) const = default;
  };
  std::vector<Row> wanted;
  for (const auto& [first, last] : rows) {
    int64_t row = first;
    for (const Place& at : places(schedule_.first_example(batch.step) + begin + first, last - first))
      wanted.push_back({at.component, at.sequence, row++});
  }
  // In stored order, so that a chunk that holds several rows is decoded once.
  std::sort(wanted.begin(), wanted.end());
  const auto read = [&](size_t first, size_t last) -> Status {
    for (size_t i = first; i < last; ++i) {
      batch.components[static_cast<size_t>(wanted[i].row)] = wanted[i].component;
      const Part& part = parts_[wanted[i].component];
      RETURN_IF_ERROR(part.reader->read(wanted[i].sequence, batch, wanted[i].row));
      withheld_.apply(wanted[i].component, wanted[i].sequence, batch, wanted[i].row);
      if (part.scores != nullptr)
        std::copy_n(part.scores->begin() + 2 * wanted[i].sequence, 2,
                    batch.reference.begin() + 2 * wanted[i].row);
    }
    return {};
  };
  // Each thread reads neighbouring sequences, so two threads rarely need the same chunk.
  const size_t count = wanted.size(),
               parts = std::clamp<size_t>(static_cast<size_t>(threads), 1, std::max<size_t>(count, 1));
  std::vector<Status> done(parts);
  std::vector<std::jthread> others;
  for (size_t part = 1; part < parts; ++part)
    others.emplace_back([&, part] { done[part] = read(count * part / parts, count * (part + 1) / parts); });
  done[0] = read(0, count / parts);
  others.clear();  // joins
  for (const Status& status : done) RETURN_IF_ERROR(status);
  return Status();
}

}  // namespace ostro::batches
