#include "ostro/cli/model/sample_model.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "ostro/base/machine.h"
#include "ostro/cli/model/check_weights.h"
#include "ostro/cli/shared/progress.h"
#include "ostro/infer/streamed.h"
#include "ostro/infer/weight_store.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/numerics/arrays.h"
#include "ostro/train/programs/programs.h"
#include "ostro/trained/opened_model.h"

namespace ostro::cli {
namespace {

using Prompts = std::vector<std::vector<int32_t>>;
using Clock = std::chrono::steady_clock;

// Half of the memory that this process may still take.
int64_t half_of_free_memory() {
  int64_t bytes = available_memory().bytes;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<int64_t>(limit.rlim_cur));
  return bytes / 2;
}

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }
std::string gigabytes(int64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9); }

// What a streamed command has read and made, on standard error: a line that is redrawn where nothing else is
// written meanwhile, and one at the end.
class StreamProgress {
 public:
  // `hashed`: GB/s at which the weights were checked.
  StreamProgress(const infer::WeightStore& store, int64_t layers, double hashed, bool draws)
      : store_(store), layers_(layers), hashed_(hashed), draws_(draws) {}

  void layer_done(int64_t layer) {
    if (layer + 1 == layers_) {
      last_ = {Clock::now(), store_.bytes_read()};
      if (++sweeps_ == 1) first_ = last_;
    }
    if (draws_ && output_.is_due(false))
      output_.show(fmt::format("{} tokens, layer {} of {}; {} read, {:.3g} tokens/s", tokens_, layer + 1,
                               layers_, gigabytes(store_.bytes_read()), rate()));
  }
  void token_made() { ++tokens_; }
  void end() {
    if (draws_) output_.end();
    fmt::print(stderr,
               "{}{} tokens in {} sweeps over {} layers; {} bytes read, {} of weights kept, {:.3g} tokens/s, "
               "{:.2f} GB/s in a sweep, hashes checked at {:.2f} GB/s\n",
               draws_ ? "" : "\n", tokens_, sweeps_, layers_, store_.bytes_read(),
               gigabytes(store_.bytes_kept()), rate(), sweep_rate(), hashed_);
  }

 private:
  struct Mark {
    Clock::time_point when = Clock::now();
    int64_t bytes = 0;  // read until then
  };

  // GB/s. In the first sweep programs are made, so the others count, if there are any.
  double sweep_rate() const {
    const Mark from = sweeps_ > 1 ? first_ : Mark{begin_, 0};
    return static_cast<double>(last_.bytes - from.bytes) / seconds(last_.when - from.when) / 1e9;
  }
  double rate() const { return static_cast<double>(tokens_) / seconds(Clock::now() - begin_); }

  const infer::WeightStore& store_;
  int64_t layers_, sweeps_ = 0, tokens_ = 0;
  double hashed_;
  bool draws_;
  Mark first_, last_;
  ProgressOutput output_ = ProgressOutput::standard_error();
  Clock::time_point begin_ = Clock::now();
};

// Holds in bf16 what a model with int8 matrices reads in bf16 and its checkpoint has in f32 (the embedding,
// which is also the head): every token would round all of it again. No bit depends on it (numerics.md N1).
void hold_as_read(trained::LoadedModel& model) {
  if (train::compute_dtype(model.config) != ir::DType::bf16) return;
  const auto& held = model.functions.shapes;
  if (std::none_of(held.begin(), held.end(), [](const ir::Shape& s) { return s.dtype == ir::DType::i8; }))
    return;
  for (size_t k = 0; k < held.size(); ++k) {
    if (held[k].dtype != ir::DType::f32 || model.functions.matrix_of[k].read_in_f32) continue;
    const ir::Shape narrow = held[k].with_dtype(ir::DType::bf16);
    runtime::Buffer to = runtime::Buffer::empty(narrow);
    numerics::narrow(model.parameters.values[k].as<float>(), to.mutable_bytes());
    model.parameters.values[k] = std::move(to);
    model.functions.shapes[k] = narrow;
  }
}

}  // namespace

Result<SampleModel> load_resident(const std::string& checkpoint, const std::string& tokenizer,
                                  const models::ModelChoices& models, trained::Trust trust) {
  ASSIGN_OR_RETURN(trained::LoadedModel loaded,
                   trained::load_model(io::default_file_system(), checkpoint, tokenizer, models, trust));
  hold_as_read(loaded);
  SampleModel out{loaded.tokenizer, loaded.config.model_options().seq_len(), {}};
  const auto model = std::make_shared<trained::LoadedModel>(std::move(loaded));
  out.generate = [model](runtime::Engine& engine, const Prompts& prompts, const infer::SampleOptions& options,
                         int64_t room, const std::function<bool(int32_t)>& on_token) -> Result<Prompts> {
    ASSIGN_OR_RETURN(
        const auto generator,
        infer::Generator::create(model->functions, std::move(model->parameters.values), engine, room));
    Prompts made;
    for (const auto& prompt : prompts) {
      ASSIGN_OR_RETURN(std::vector<int32_t> one, generator->generate(prompt, options, on_token));
      made.push_back(std::move(one));
    }
    return made;
  };
  return out;
}

Result<SampleModel> open_streamed(const std::string& checkpoint, const std::string& tokenizer,
                                  const models::ModelChoices& models, trained::Trust trust,
                                  std::optional<int64_t> keep_bytes) {
  double hashed = 0;
  const auto check = [&](const trained::OpenedModel& opened) {
    const Clock::time_point begin = Clock::now();
    const Status checked = check_weights(opened.reader);
    hashed = static_cast<double>(opened.reader.bytes()) / seconds(Clock::now() - begin) / 1e9;
    return checked;
  };
  ASSIGN_OR_RETURN(trained::OpenedModel opened, trained::open_model(io::default_file_system(), checkpoint,
                                                                    tokenizer, models, trust, check));
  SampleModel out{opened.model.tokenizer, opened.model.config.model_options().seq_len(), {}};
  const auto store =
      std::make_shared<infer::WeightStore>(std::move(opened.reader), opened.model.functions.shapes,
                                           opened.layers, keep_bytes.value_or(half_of_free_memory()));
  out.generate = [layers = opened.layers, store, hashed](
                     runtime::Engine& engine, const Prompts& prompts, const infer::SampleOptions& options,
                     int64_t room, const std::function<bool(int32_t)>& on_token) -> Result<Prompts> {
    ASSIGN_OR_RETURN(const auto generator, infer::StreamedGenerator::create(layers, *store, engine, room));
    StreamProgress progress(*store, static_cast<int64_t>(layers.kind.size()), hashed, !on_token);
    const auto made = generator->generate(
        prompts, options,
        [&](size_t, int32_t token) {
          progress.token_made();
          return !on_token || on_token(token);
        },
        [&](int64_t layer) { progress.layer_done(layer); });
    progress.end();
    return made;
  };
  return out;
}

}  // namespace ostro::cli
