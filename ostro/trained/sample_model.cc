#include "ostro/trained/sample_model.h"

#include <algorithm>
#include <chrono>

#include "ostro/base/machine.h"
#include "ostro/infer/layer_rows.h"
#include "ostro/infer/settle_later.h"
#include "ostro/train/programs/programs.h"
#include "ostro/trained/opened_model.h"

namespace ostro::trained {
namespace {

using Prompts = std::vector<std::vector<int32_t>>;
using Clock = std::chrono::steady_clock;

// Half of the memory that this process may still take.
int64_t half_of_free_memory() { return available_memory().bytes / 2; }

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

// Counts what a streamed generation reads and makes.
class StreamCounter {
 public:
  StreamCounter(const infer::WeightStore& store, int64_t layers, double hash_speed)
      : store_(store), layers_(layers), hash_speed_(hash_speed) {}

  void layer_done(int64_t layer) {
    layer_ = layer + 1;
    if (layer_ != layers_) return;
    last_ = {Clock::now(), store_.bytes_read()};
    if (++sweeps_ == 1) first_ = last_;
  }
  void token_made() { ++tokens_; }
  StreamCounts counts(bool over) const {
    return {.tokens = tokens_,
            .sweeps = sweeps_,
            .layer = layer_,
            .layers = layers_,
            .bytes_read = store_.bytes_read(),
            .bytes_kept = store_.bytes_kept(),
            .tokens_per_second = static_cast<double>(tokens_) / seconds(Clock::now() - begin_),
            .sweep_speed = sweep_speed(),
            .hash_speed = hash_speed_,
            .over = over};
  }

 private:
  struct Mark {
    Clock::time_point when = Clock::now();
    int64_t bytes = 0;  // read until then
  };

  // In the first sweep programs are made, so the others count, if there are any.
  double sweep_speed() const {
    const Mark from = sweeps_ > 1 ? first_ : Mark{begin_, 0};
    return static_cast<double>(last_.bytes - from.bytes) / seconds(last_.when - from.when);
  }

  const infer::WeightStore& store_;
  int64_t layers_, layer_ = 0, sweeps_ = 0, tokens_ = 0;
  double hash_speed_;
  Mark first_, last_;
  Clock::time_point begin_ = Clock::now();
};

// Prompts of one command that run at the same time at most; a cache has room for each.
constexpr int64_t kTogether = 32;

}  // namespace

Result<SampleModel> load_resident(const Context& context, const std::string& checkpoint,
                                  const std::string& tokenizer, Trust trust, const UseOptions& use) {
  UseOptions as_read = use;
  as_read.as_read = true;
  ASSIGN_OR_RETURN(LoadedModel loaded,
                   load_model(context.fs, checkpoint, tokenizer, context.models, trust, as_read));
  SampleModel out{
      loaded.tokenizer, loaded.tokenizer_path, loaded.config.model_options().seq_len(), loaded.other_mp, {}};
  const auto model = std::make_shared<LoadedModel>(std::move(loaded));
  out.generate = [model](runtime::Engine& engine, const Prompts& prompts, const infer::SampleOptions& options,
                         int64_t room, const std::function<bool(int32_t)>& on_token) -> Result<Prompts> {
    const infer::RowLimits limits{room, std::min<int64_t>(std::ssize(prompts), kTogether)};
    ASSIGN_OR_RETURN(
        const auto runner,
        infer::make_runner(model->functions, layers_of(*model), std::move(model->parameters.values), engine,
                           limits, train::inference_leaf_table(model->config)));
    const infer::SettleLater settling(*runner);
    return infer::generate(*runner, prompts, options,
                           [&](size_t, int32_t token) { return !on_token || on_token(token); });
  };
  return out;
}

Result<SampleModel> open_streamed(const Context& context, const std::string& checkpoint,
                                  const std::string& tokenizer, Trust trust, const UseOptions& use,
                                  std::optional<int64_t> keep_bytes,
                                  const std::function<void(const StreamCounts&)>& observer) {
  double hash_speed = 0;
  const auto check = [&](const OpenedModel& opened) {
    const Clock::time_point begin = Clock::now();
    const Status checked = check_weights(opened.reader, context.progress);
    hash_speed = static_cast<double>(opened.reader.bytes()) / seconds(Clock::now() - begin);
    return checked;
  };
  ASSIGN_OR_RETURN(OpenedModel opened,
                   open_model(context.fs, checkpoint, tokenizer, context.models, trust, check, use));
  SampleModel out{opened.model.tokenizer,
                  opened.model.tokenizer_path,
                  opened.model.config.model_options().seq_len(),
                  opened.model.other_mp,
                  {}};
  const auto store =
      std::make_shared<infer::WeightStore>(std::move(opened.reader), opened.model.functions.shapes,
                                           opened.layers, keep_bytes.value_or(half_of_free_memory()));
  const infer::LayerRows::Model model{opened.model.functions, opened.layers,
                                      train::inference_leaf_table(opened.model.config)};
  out.generate = [model, store, hash_speed, observer](
                     runtime::Engine& engine, const Prompts& prompts, const infer::SampleOptions& options,
                     int64_t room, const std::function<bool(int32_t)>& on_token) -> Result<Prompts> {
    StreamCounter counter(*store, static_cast<int64_t>(model.layers.kind.size()), hash_speed);
    // All prompts at once: they share what is read.
    int64_t rows = 1;
    for (const auto& prompt : prompts) rows += std::ssize(prompt);
    ASSIGN_OR_RETURN(const auto runner,
                     infer::LayerRows::streamed(model, *store, engine, {room, std::ssize(prompts), rows},
                                                [&](int64_t layer) {
                                                  counter.layer_done(layer);
                                                  observer(counter.counts(false));
                                                }));
    const auto made = infer::generate(*runner, prompts, options, [&](size_t, int32_t token) {
      counter.token_made();
      return !on_token || on_token(token);
    });
    observer(counter.counts(true));
    return made;
  };
  return out;
}

}  // namespace ostro::trained
