#include "loaded.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "ostro/config/mistakes.h"
#include "ostro/eval/text_model_of.h"
#include "ostro/infer/log_probs.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/runtime/device_name.h"
#include "ostro/serve/model/answer.h"
#include "ostro/shell/shared/process_context.h"
#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::native {
namespace {

constexpr int64_t kBatchTokens = 4096;

Values values_of(const runtime::Buffer& buffer) {
  Values out;
  out.dtype = ir::dtype_name(buffer.shape().dtype);
  for (const ir::Axis& axis : buffer.shape().axes) out.shape.push_back(axis.size);
  out.data = buffer.bytes().data();
  out.memory = std::make_shared<runtime::Buffer>(buffer);
  return out;
}

uint64_t new_sequence() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

class AnswerHere final : public Answer {
 public:
  AnswerHere(std::shared_ptr<LoadedHere> model, serve::AnswerState state)
      : model_(std::move(model)), state_(std::move(state)), ids_(state_.prompt()) {}

  std::optional<std::string> next() override {
    const std::lock_guard lock(model_->mutex());
    if (state_.finish() != serve::Finish::kNone) return std::nullopt;
    const runtime::Buffer rows = model_->rows(sequence_, ids_);
    const auto vocab = static_cast<size_t>(rows.shape().axes.back().size);
    const int32_t token = state_.choose(rows.as<float>().last(vocab));
    check(state_.add(token));
    ids_.push_back(token);
    return state_.text().take();
  }
  std::vector<int32_t> ids() const override {
    const std::lock_guard lock(model_->mutex());
    return state_.made();
  }
  std::string finish() const override {
    const std::lock_guard lock(model_->mutex());
    return serve::finish_word(state_.finish());
  }

 private:
  std::shared_ptr<LoadedHere> model_;
  serve::AnswerState state_;
  std::vector<int32_t> ids_;  // of the prompt and of the answer
  const uint64_t sequence_ = new_sequence();
};

}  // namespace

Context context_on(const std::string& device) {
  static NoProgress silence;
  static const Context process = cli::process_context(models::builtin_models(), silence);
  value(runtime::parse_device("device", device));
  return process.on(device);
}

void fail(const Error& error) {
  std::string text;
  for (const std::string& line : config::split_errors(error.message())) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  throw Failure(text);
}

LoadedHere::LoadedHere(Context context, trained::LoadedModel loaded, std::string where,
                       serve::AdapterOptions options, std::string adapter)
    : context_(std::move(context)),
      loaded_(std::move(loaded)),
      where_(std::move(where)),
      options_(std::move(options)),
      adapter_(std::move(adapter)),
      chat_(value(eval::ChatPrompts::load(context_.fs, loaded_.tokenizer_path, *loaded_.tokenizer))) {}

Values LoadedHere::array(const std::string& name) const {
  const auto& names = arrays();
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) throw std::out_of_range(name);
  return values_of(loaded_.parameters.values[static_cast<size_t>(at - names.begin())]);
}

std::vector<uint32_t> LoadedHere::encode(const std::string& text) const {
  return loaded_.tokenizer->encode(text);
}

std::string LoadedHere::decode(const std::vector<uint32_t>& ids, bool skip_special) const {
  return value(loaded_.tokenizer->decode(ids, skip_special));
}

std::vector<int32_t> LoadedHere::prompt(const std::string& text) const {
  return value(tokenizer::prompt_ids(*loaded_.tokenizer, text));
}

std::string LoadedHere::chat_prompt(const std::string& messages, const std::string& tools) const {
  return value(chat_.of_messages(messages, tools, true));
}

void LoadedHere::check_ids(const std::vector<int32_t>& ids) const {
  if (ids.empty()) throw Failure("there is no token; give at least one");
  if (static_cast<int64_t>(ids.size()) > context())
    throw Failure(fmt::format("{} tokens; the model's context is {}", ids.size(), context()));
  for (const int32_t id : ids)
    if (id < 0 || id >= vocab_size())
      throw Failure(fmt::format("id {} is no token; the model's are 0 to {}", id, vocab_size() - 1));
}

serve::ServedModel& LoadedHere::served() {
  if (!served_)
    served_ = std::move(value(serve::served_with_adapters(context_, loaded_, where_, options_, {}))[0]);
  return *served_;
}

std::vector<std::unique_ptr<serve::ServedModel>> LoadedHere::served_beside(
    const std::vector<serve::NamedAdapter>& adapters, int64_t running, int64_t pages) const {
  if (!adapter_.empty())
    throw Failure(
        fmt::format("{}: the model was loaded with an adapter; load it without one, and serve it "
                    "with adapters={{NAME: DIR}}",
                    where_));
  return value(serve::served_with_adapters(context_, loaded_, where_, options_, adapters, running, pages));
}

// A row depends on the tokens before it alone (numerics.md N16), so a sequence whose place in the runner
// another one took begins again. The runner has room for one.
runtime::Buffer LoadedHere::rows(uint64_t sequence, const std::vector<int32_t>& ids) {
  infer::RowRunner& runner = *served().runner;
  const bool goes_on = sequence != 0 && sequence_ == sequence && length_ + 1 == ids.size();
  sequence_ = 0;
  if (!goes_on && open_) runner.close(*std::exchange(open_, std::nullopt));
  if (sequence == 0) return value(infer::logits_of(runner, ids));
  if (!open_) open_ = value(runner.open());
  runtime::Buffer out;
  for (size_t at = goes_on ? length_ : 0; at < ids.size();) {
    const size_t count = std::min(ids.size() - at, static_cast<size_t>(runner.limits().rows));
    const infer::RowChunk chunk{*open_, std::span(ids).subspan(at, count), at + count == ids.size() ? 1 : 0};
    out = value(runner.step({&chunk, 1}));
    at += count;
  }
  sequence_ = sequence;
  length_ = ids.size();
  return out;
}

Values LoadedHere::logits(const std::vector<int32_t>& ids) {
  check_ids(ids);
  const std::lock_guard lock(mutex_);
  return values_of(rows(0, ids));
}

Values LoadedHere::log_probs(const std::vector<int32_t>& ids) {
  check_ids(ids);
  const std::lock_guard lock(mutex_);
  const runtime::Buffer all = rows(0, ids);
  const auto vocab = static_cast<size_t>(all.shape().axes.back().size);
  const auto count = static_cast<int64_t>(ids.size()) - 1;
  runtime::Buffer out = runtime::Buffer::empty({ir::DType::f32, {{"pos", count}}});
  for (size_t i = 0; i + 1 < ids.size(); ++i)
    out.mutable_as<float>()[i] =
        infer::LogProbs(all.as<float>().subspan(i * vocab, vocab), served().vocab_leaves).of(ids[i + 1]);
  return values_of(out);
}

std::vector<Score> LoadedHere::score(const std::vector<std::string>& texts, int64_t stride,
                                     const Interrupt& interrupt) {
  const std::lock_guard lock(mutex_);
  const numerics::HostArithmetic environment;
  if (!text_model_) {
    scoring_engine_ = value(context_.engine());
    text_model_.emplace(value(eval::text_model(context_.fs, loaded_, *scoring_engine_, kBatchTokens)));
  }
  std::vector<Score> out;
  const auto scores = value(text_model_->texts(texts, stride, [&](size_t, size_t) {
    if (interrupt && interrupt()) throw Interrupted();
  }));
  for (const eval::TextScore& one : scores) out.push_back({one.log_prob, one.tokens, one.bytes});
  return out;
}

std::unique_ptr<Answer> LoadedHere::answer(std::vector<int32_t> prompt, const Sampling& sampling) {
  check_ids(prompt);
  if (static_cast<int64_t>(prompt.size()) >= context())
    throw Failure(
        fmt::format("the prompt has {} tokens; the model's context is {}", prompt.size(), context()));
  if (sampling.max_tokens < 0)
    throw Failure(fmt::format("max_tokens {}: use 0 or more", sampling.max_tokens));
  if (!(sampling.temperature >= 0))
    throw Failure(fmt::format("temperature {}: use 0 or more", sampling.temperature));
  if (sampling.top_k < 0) throw Failure(fmt::format("top_k {}: use 0 or more", sampling.top_k));
  if (!(sampling.top_p > 0 && sampling.top_p <= 1))
    throw Failure(fmt::format("top_p {}: use more than 0, at most 1", sampling.top_p));
  if (!(sampling.min_p >= 0 && sampling.min_p <= 1))
    throw Failure(fmt::format("min_p {}: use 0 to 1", sampling.min_p));
  for (const std::string& stop : sampling.stop)
    if (stop.empty()) throw Failure("a stop string is empty: every text would end at once");
  serve::AnswerOptions options;
  options.choice.temperature = sampling.temperature;
  options.choice.seed = sampling.seed;
  options.choice.top_k = sampling.top_k;
  options.choice.top_p = sampling.top_p;
  options.choice.min_p = sampling.min_p;
  options.max_tokens = sampling.max_tokens;
  options.stop = sampling.stop;
  const std::lock_guard lock(mutex_);
  auto state = value(serve::AnswerState::create(served(), std::move(prompt), options));
  return std::make_unique<AnswerHere>(shared_from_this(), std::move(state));
}

std::shared_ptr<Model> load(const std::string& where, const LoadOptions& options) {
  Context context = context_on(options.device);
  serve::AdapterOptions asked{
      options.tokenizer, trained::trust(options.unchecked), {options.mp, options.seq_len}};
  auto loaded =
      value(trained::load_model(context.fs, where, asked.tokenizer, context.models, asked.trust, asked.use));
  std::string adapter;
  if (!options.adapter.empty()) {
    auto with = value(serve::with_adapter(context, {"", options.adapter}, loaded, asked));
    adapter = serve::adapter_hash(with);
    with.parameters.path = loaded.parameters.path;
    with.parameters.name = loaded.parameters.name;
    with.parameters.step = loaded.parameters.step;
    loaded = std::move(with);
  }
  return std::make_shared<LoadedHere>(std::move(context), std::move(loaded), where, std::move(asked),
                                      std::move(adapter));
}

}  // namespace ostro::native
