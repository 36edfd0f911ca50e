// ServedModel: a trained model as it is served, and as the receipts of its answers are checked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/context/context.h"
#include "ostro/eval/score/chat_prompts.h"
#include "ostro/infer/layer_rows.h"
#include "ostro/infer/settle_later.h"
#include "ostro/infer/weights/weight_store.h"
#include "ostro/serve/json/tools.h"
#include "ostro/serve/model/adapters.h"
#include "ostro/trained/loaded_model.h"

namespace ostro::serve {

// Everything that decides what it says, by hash.
struct ModelFacts {
  std::string name;       // by which requests ask for it: the last part of the path that it was loaded from
  std::string state;      // name of the checkpoint's state
  std::string forward;    // infer::RowRunner::program_hash
  std::string tokenizer;  // tokenizer::Tokenizer::hash
  std::string chat_template;  // SHA-256 of eval::ChatPrompts::identity; empty: none
  std::string dtype;          // the word of the precision (train::precision_word); empty: as in training
  int64_t context = 0;        // positions at most
  int64_t width = 0;          // of embeddings; 0: it gives none
  std::string adapter = {};   // adapter_hash (adapters.h); empty: none
  std::string mp = {};        // the word of the precision, also where it is that of training

  // What the parameters are: the state, and with an adapter a space and its hash.
  std::string parameters() const { return adapter.empty() ? state : state + " " + adapter; }
};

struct ServedModel {
  ModelFacts facts;
  std::string checkpoint;  // where it was loaded from
  std::shared_ptr<const tokenizer::Tokenizer> tokenizer;
  eval::ChatPrompts chat;
  std::optional<ToolFormat> tool_format;  // how its answers call functions
  std::vector<int32_t> stops;             // generation ends after any of these ids
  int64_t vocab_leaves = 1;               // in which log-probabilities sum over the vocabulary
  std::shared_ptr<runtime::Engine> engine;
  std::shared_ptr<infer::WeightStore> store;  // of load_streamed; null: the parameters are in memory
  // Used by one thread at a time; the rest by any. With `rows`, one thread for all models that have the same.
  std::unique_ptr<infer::RowRunner> runner;
  std::unique_ptr<infer::SettleLater> settling;  // of the runner
  std::shared_ptr<infer::LayerRows> rows;  // through which its sequences go beside those of other models; or
                                           // null

  int64_t tokens() const { return tokenizer->vocab_size(); }
};

// Loads a checkpoint or a run's newest one, as trained::load_model does, and adapters of it: first the model
// itself, then one for each. They share the model's parameters and engine. `running`: answers that run at a
// time at most. `pages`: of 128 positions, of all of them together; 0: each has room for a whole context.
// Those of one group (row_groups) share steps, sequences and pages, of which `running` and `pages` are for
// all of them; each other one has its own. Errors: those of loading and of with_adapter; initial parameters,
// which no checkpoint has; a model without a cached step.
Result<std::vector<std::unique_ptr<ServedModel>>> load_with_adapters(
    const Context& context, const std::string& checkpoint, const std::string& tokenizer, trained::Trust trust,
    const trained::UseOptions& use, const std::vector<NamedAdapter>& adapters, int64_t running = 1,
    int64_t pages = 0);

// A model alone, whose parameters stay in the checkpoint and are read layer by layer, as
// trained::open_streamed does: at most `keep_bytes` of them are kept; nothing: half of the free memory.
// Programs are built when a step first needs them. Errors: those of trained::open_model and check_weights.
Result<std::unique_ptr<ServedModel>> load_streamed(const Context& context, const std::string& checkpoint,
                                                   const std::string& tokenizer, trained::Trust trust,
                                                   const trained::UseOptions& use,
                                                   std::optional<int64_t> keep_bytes, int64_t running = 1,
                                                   int64_t pages = 0);

// As load_with_adapters, of a model that is loaded already from `checkpoint`, with these options; they share
// its parameters.
Result<std::vector<std::unique_ptr<ServedModel>>> served_with_adapters(
    const Context& context, trained::LoadedModel loaded, const std::string& checkpoint,
    const AdapterOptions& options, const std::vector<NamedAdapter>& adapters, int64_t running = 1,
    int64_t pages = 0);

}  // namespace ostro::serve
