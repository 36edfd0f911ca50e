// LoadedHere: the Model of `native.h`, and what the functions of this folder share.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "native.h"
#include "ostro/context/context.h"
#include "ostro/eval/score/text_model.h"
#include "ostro/serve/model/served_model.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::native {

// The Context of this process, with engines on that device, and without progress. Thread-safe.
Context context_on(const std::string& device);

[[noreturn]] void fail(const Error& error);

template <typename T>
T value(Result<T> result) {
  if (!result.ok()) fail(result.error());
  return std::move(result).value();
}
inline void check(const Status& status) {
  if (!status.ok()) fail(status.error());
}

// A model that answers one sequence at a time. What needs an engine is made when it is first needed.
class LoadedHere final : public Model, public std::enable_shared_from_this<LoadedHere> {
 public:
  // `options` are those it was loaded with, and `adapter` the hash of their adapter.
  LoadedHere(Context context, trained::LoadedModel loaded, std::string where, serve::AdapterOptions options,
             std::string adapter);

  const std::string& path() const override { return loaded_.parameters.path; }
  const std::string& state() const override { return loaded_.parameters.name; }
  int64_t step() const override { return loaded_.parameters.step; }
  const std::string& adapter() const override { return adapter_; }
  int64_t context() const override { return loaded_.config.model_options().seq_len(); }
  int64_t vocab_size() const override { return loaded_.tokenizer->vocab_size(); }
  const std::string& tokenizer_hash() const override { return loaded_.tokenizer->hash(); }

  const std::vector<std::string>& arrays() const override { return loaded_.functions.paths; }
  Values array(const std::string& name) const override;

  std::vector<uint32_t> encode(const std::string& text) const override;
  std::string decode(const std::vector<uint32_t>& ids, bool skip_special) const override;
  std::vector<int32_t> prompt(const std::string& text) const override;
  std::string chat_prompt(const std::string& messages, const std::string& tools) const override;

  Values logits(const std::vector<int32_t>& ids) override;
  Values log_probs(const std::vector<int32_t>& ids) override;
  std::vector<Score> score(const std::vector<std::string>& texts, int64_t stride,
                           const Interrupt& interrupt) override;
  std::unique_ptr<Answer> answer(std::vector<int32_t> prompt, const Sampling& sampling) override;

  // Models of their own for a server, with the same parameters: this one, and with each of these adapters.
  std::vector<std::unique_ptr<serve::ServedModel>> served_beside(
      const std::vector<serve::NamedAdapter>& adapters, int64_t running, int64_t pages) const;

  std::mutex& mutex() { return mutex_; }
  // The rest needs the mutex.
  serve::ServedModel& served();
  // The logits of a sequence's last token. `sequence` is its number (new_sequence); sequences may take turns.
  // 0: nothing follows it, and the logits of all its tokens are wanted.
  runtime::Buffer rows(uint64_t sequence, const std::vector<int32_t>& ids);

 private:
  void check_ids(const std::vector<int32_t>& ids) const;

  const Context context_;
  const trained::LoadedModel loaded_;
  const std::string where_;
  const serve::AdapterOptions options_;
  const std::string adapter_;
  const eval::ChatPrompts chat_;

  std::mutex mutex_;
  std::unique_ptr<runtime::Engine> scoring_engine_;
  std::optional<eval::TextModel> text_model_;
  std::unique_ptr<serve::ServedModel> served_;
  std::optional<int64_t> open_;  // the runner's sequence
  uint64_t sequence_ = 0;        // whose tokens it has
  size_t length_ = 0;            // how many
};

}  // namespace ostro::native
