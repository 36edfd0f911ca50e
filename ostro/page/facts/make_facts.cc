#include "ostro/page/facts/make_facts.h"

#include <algorithm>
#include <numbers>

#include "ostro/chain/chain.h"
#include "ostro/corpus_check/baseline.h"
#include "ostro/infer/generate.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/model/text_ends.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/step/run_data.h"
#include "ostro/trained/opened_model.h"

namespace ostro::page {
namespace {

constexpr size_t kSamples = 3;
constexpr int64_t kPromptTokens = 24, kNewTokens = 48;
constexpr double kTemperature = 0.8;  // at 0 small models repeat themselves
constexpr int64_t kSeed = 0;

Result<train::DataAccess> data_of(io::FileSystem& fs, const std::string& run_directory,
                                  const train::TrainConfig& config) {
  ASSIGN_OR_RETURN(const chain::Chain chain,
                   chain::read_chain(fs, io::join_path(run_directory, chain::kChainFile)));
  return train::open_run_data(fs, run_directory, config, chain, "");
}

// A document's first tokens: those of a prompt and some that follow.
struct Beginning {
  std::string component;
  data::RowSource source;
  std::vector<int32_t> tokens;
};

// Of a component: documents with more than `prompt` tokens, at most kSamples, of the first few.
Result<std::vector<Beginning>> beginnings(const batches::DataSet::Part& part, int64_t prompt,
                                          int64_t length) {
  constexpr int64_t kLooked = 1000;
  const data::TokenStream& stream = part.store->split(data::Split::kValidation);
  const int64_t rows = std::min(stream.rows(), kLooked);
  std::vector<Beginning> out;
  if (rows == 0) return out;
  ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(0, rows));
  for (int64_t row = 0; row < rows && out.size() < kSamples; ++row) {
    const int64_t first = ends[static_cast<size_t>(row)], end = ends[static_cast<size_t>(row) + 1];
    if (end - first <= prompt) continue;
    Beginning one{
        part.component.name, {}, std::vector<int32_t>(static_cast<size_t>(std::min(length, end - first)))};
    RETURN_IF_ERROR(stream.read(first, one.tokens));
    ASSIGN_OR_RETURN(one.source, stream.source(row));
    out.push_back(std::move(one));
  }
  return out;
}

// The first of every component, then the second, and so on.
Result<std::vector<Beginning>> choose(const batches::DataSet& stores, int64_t prompt, int64_t length) {
  std::vector<std::vector<Beginning>> all;
  for (const batches::DataSet::Part& part : stores.parts()) {
    ASSIGN_OR_RETURN(std::vector<Beginning> some, beginnings(part, prompt, length));
    all.push_back(std::move(some));
  }
  std::vector<Beginning> out;
  for (size_t turn = 0; turn < kSamples; ++turn)
    for (std::vector<Beginning>& some : all)
      if (turn < some.size() && out.size() < kSamples) out.push_back(std::move(some[turn]));
  return out;
}

// The text of the tokens from `from` on: what a token adds can depend on those before it.
Result<std::string> text_behind(const tokenizer::Tokenizer& tokenizer, const std::vector<int32_t>& tokens,
                                size_t from) {
  const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
  ASSIGN_OR_RETURN(const std::string all, tokenizer.decode_bytes(ids));
  ASSIGN_OR_RETURN(const std::string before, tokenizer.decode_bytes(std::span(ids).first(from)));
  return all.substr(std::min(before.size(), all.size()));
}

// Counting takes about a second for so many tokens.
std::optional<Unigram> unigram_of(const data::TokenStore& store) {
  constexpr int64_t kMostTokens = 200'000'000;
  if (store.split(data::Split::kTrain).tokens() > kMostTokens) return std::nullopt;
  const auto baseline = corpus_check::unigram_baseline(store);
  if (!baseline.ok()) return std::nullopt;  // nothing is held out
  return Unigram{baseline->bits_per_token * std::numbers::ln2, baseline->bits_per_byte};
}

// The files that the store was made from; none where its ledger cannot be read, which is told elsewhere.
std::vector<FileFacts> files_of(const batches::DataSet::Part& part) {
  constexpr size_t kMostFiles = 10'000;
  std::vector<FileFacts> out;
  if (part.fs == nullptr) return out;
  const Result<data::StoreLedger> ledger = data::read_ledger(*part.fs, part.folder);
  if (!ledger.ok() || ledger->files.size() > kMostFiles) return out;
  for (const data::FileLedger& file : ledger->files) out.push_back({file.source.path, file.sha256});
  return out;
}

}  // namespace

Result<std::vector<ComponentFacts>> data_facts(io::FileSystem& fs, const std::string& run_directory,
                                               const train::TrainConfig& config) {
  ASSIGN_OR_RETURN(const train::DataAccess data, data_of(fs, run_directory, config));
  std::vector<ComponentFacts> out;
  const auto counts = [](const data::TokenStream& stream) {
    return SplitFacts{stream.ledger().rows, stream.ledger().tokens, stream.ledger().bytes};
  };
  for (const batches::DataSet::Part& part : data.stores->parts()) {
    std::vector<FileFacts> files = files_of(part);
    out.push_back({part.component.name, counts(part.store->split(data::Split::kTrain)),
                   counts(part.store->split(data::Split::kValidation)), unigram_of(*part.store),
                   std::move(files)});
  }
  return out;
}

Status add_samples(io::FileSystem& fs, runtime::Engine& engine, const std::string& run_directory,
                   const train::TrainConfig& config, const std::function<bool()>& stop, Facts& facts) {
  ASSIGN_OR_RETURN(const train::DataAccess data, data_of(fs, run_directory, config));
  ASSIGN_OR_RETURN(
      trained::LoadedModel model,
      trained::load_model(fs, run_directory, "", config.model.choices(), trained::Trust::kChain));
  if (facts.checkpoint == model.parameters.name && !facts.samples.empty()) return {};
  Facts made;
  made.data = facts.data;
  made.checkpoint = model.parameters.name;
  made.step = model.parameters.step;
  made.temperature = kTemperature;
  made.seed = kSeed;
  const int64_t context = model.config.model_options().seq_len();
  const int64_t prompt = std::clamp<int64_t>(context / 3, 1, kPromptTokens);
  const int64_t length = std::min(context, prompt + kNewTokens);
  ASSIGN_OR_RETURN(std::vector<Beginning> chosen, choose(*data.stores, prompt, length));
  ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(*model.tokenizer));
  if (chosen.empty() && ends.alone) chosen.resize(kSamples);
  ASSIGN_OR_RETURN(
      const auto runner,
      infer::make_runner(model.functions, trained::layers_of(model), std::move(model.parameters.values),
                         engine, {std::max<int64_t>(length, 2)}, train::inference_leaf_table(model.config)));
  infer::SampleOptions options;
  options.temperature = kTemperature;
  options.tokens = model.tokenizer->vocab_size();
  options.stops.assign(ends.stops.begin(), ends.stops.end());
  const auto go_on = [&](size_t, int32_t) { return !(stop && stop()); };
  for (size_t i = 0; i < chosen.size(); ++i) {
    const Beginning& one = chosen[i];
    Sample sample{one.component, one.source.file, one.source.document, "", "", ""};
    std::vector<int32_t> tokens;
    if (one.tokens.empty()) {
      tokens = {static_cast<int32_t>(*ends.alone)};  // what begins a document
    } else {
      tokens.assign(one.tokens.begin(), one.tokens.begin() + prompt);
      const bool begins = !ends.before.empty() && static_cast<uint32_t>(tokens[0]) == ends.before[0];
      ASSIGN_OR_RETURN(sample.prompt, text_behind(*model.tokenizer, tokens, begins ? ends.before.size() : 0));
      ASSIGN_OR_RETURN(sample.text, text_behind(*model.tokenizer, one.tokens, tokens.size()));
    }
    options.seed = static_cast<uint64_t>(kSeed) + (one.tokens.empty() ? i : 0);
    options.max_new_tokens = length - static_cast<int64_t>(tokens.size());
    ASSIGN_OR_RETURN(const auto next, infer::generate(*runner, {&tokens, 1}, options, go_on));
    if (stop && stop()) return io_error("stopped by a signal");
    const size_t begin = tokens.size();
    tokens.insert(tokens.end(), next[0].begin(), next[0].end());
    ASSIGN_OR_RETURN(sample.model, text_behind(*model.tokenizer, tokens, begin));
    made.samples.push_back(std::move(sample));
  }
  facts = std::move(made);
  return {};
}

}  // namespace ostro::page
