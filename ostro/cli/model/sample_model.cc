#include "ostro/cli/model/sample_model.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "ostro/cli/shared/percent_progress.h"
#include "ostro/cli/shared/progress_output.h"
#include "ostro/eval/opened_model.h"
#include "ostro/infer/streamed.h"
#include "ostro/infer/weight_store.h"
#include "ostro/init/machine.h"
#include "ostro/io/s3/routing_file_system.h"
#include "ostro/numerics/bf16.h"
#include "ostro/train/programs/programs.h"

namespace ostro::cli {
namespace {

using Prompts = std::vector<std::vector<int32_t>>;
using Clock = std::chrono::steady_clock;

constexpr int kHashThreads = 2;

// Half of the memory that this process may still take.
int64_t half_of_free_memory() {
  int64_t bytes = init::available_memory().bytes;
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<int64_t>(limit.rlim_cur));
  return bytes / 2;
}

std::string gigabytes(int64_t bytes) { return fmt::format("{:.2f} GB", static_cast<double>(bytes) / 1e9); }

// What a streamed command has read and made, on standard error: a line that is redrawn where nothing else is
// written meanwhile, and one at the end.
class StreamProgress {
 public:
  StreamProgress(const infer::WeightStore& store, int64_t layers, bool draws)
      : store_(store), layers_(layers), draws_(draws) {}

  void layer_done(int64_t layer) {
    if (layer + 1 == layers_) ++sweeps_;
    if (draws_ && output_.is_due(false))
      output_.show(fmt::format("{} tokens, layer {} of {}; {} read, {:.3g} tokens/s", tokens_, layer + 1,
                               layers_, gigabytes(store_.bytes_read()), rate()));
  }
  void token_made() { ++tokens_; }
  void end() {
    if (draws_) output_.end();
    fmt::print(
        stderr,
        "{}{} tokens in {} sweeps over {} layers; {} bytes read, {} of weights kept, {:.3g} tokens/s\n",
        draws_ ? "" : "\n", tokens_, sweeps_, layers_, store_.bytes_read(), gigabytes(store_.bytes_kept()),
        rate());
  }

 private:
  double rate() const {
    return static_cast<double>(tokens_) / std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  const infer::WeightStore& store_;
  int64_t layers_, sweeps_ = 0, tokens_ = 0;
  bool draws_;
  ProgressOutput output_ = ProgressOutput::standard_error();
  Clock::time_point begin_ = Clock::now();
};

// Holds in bf16 what a model with int8 matrices reads in bf16 and its checkpoint has in f32 (the embedding,
// which is also the head): every token would round all of it again. No bit depends on it (numerics.md N1).
void hold_as_read(eval::LoadedModel& model) {
  if (train::compute_dtype(model.config) != ir::DType::bf16) return;
  const auto& held = model.functions.shapes;
  if (std::none_of(held.begin(), held.end(), [](const ir::Shape& s) { return s.dtype == ir::DType::i8; }))
    return;
  for (size_t k = 0; k < held.size(); ++k) {
    if (held[k].dtype != ir::DType::f32 || model.functions.matrix_of[k].read_in_f32) continue;
    const ir::Shape narrow = held[k].with_dtype(ir::DType::bf16);
    runtime::Buffer to = runtime::Buffer::empty(narrow);
    const auto from = model.parameters.values[k].as<float>();
    const auto out = to.mutable_as<numerics::Bf16>();
    for (size_t i = 0; i < from.size(); ++i) out[i] = numerics::to_bf16(from[i]);
    model.parameters.values[k] = std::move(to);
    model.functions.shapes[k] = narrow;
  }
}

Status check_weights(const checkpoint::PartReader& reader) {
  PercentProgressLine line;
  const auto total = static_cast<double>(reader.bytes());
  const Status checked = reader.check(
      kHashThreads, [&](int64_t done) { line.draw("checking weights", static_cast<double>(done) / total); });
  line.end();
  return checked;
}

}  // namespace

Result<SampleModel> load_resident(const std::string& checkpoint, const std::string& tokenizer,
                                  const train::ModelChoices& models, eval::Trust trust) {
  ASSIGN_OR_RETURN(eval::LoadedModel loaded,
                   eval::load_model(io::default_file_system(), checkpoint, tokenizer, models, trust));
  hold_as_read(loaded);
  SampleModel out{loaded.tokenizer, loaded.config.model_options().seq_len(), {}};
  const auto model = std::make_shared<eval::LoadedModel>(std::move(loaded));
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
                                  const train::ModelChoices& models, eval::Trust trust,
                                  std::optional<int64_t> keep_bytes) {
  ASSIGN_OR_RETURN(eval::OpenedModel opened,
                   eval::open_model(io::default_file_system(), checkpoint, tokenizer, models, trust));
  RETURN_IF_ERROR(check_weights(opened.reader));
  SampleModel out{opened.model.tokenizer, opened.model.config.model_options().seq_len(), {}};
  const auto store =
      std::make_shared<infer::WeightStore>(std::move(opened.reader), opened.model.functions.shapes,
                                           opened.layers, keep_bytes.value_or(half_of_free_memory()));
  out.generate = [layers = opened.layers, store](
                     runtime::Engine& engine, const Prompts& prompts, const infer::SampleOptions& options,
                     int64_t room, const std::function<bool(int32_t)>& on_token) -> Result<Prompts> {
    ASSIGN_OR_RETURN(const auto generator, infer::StreamedGenerator::create(layers, *store, engine, room));
    StreamProgress progress(*store, static_cast<int64_t>(layers.kind.size()), !on_token);
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
