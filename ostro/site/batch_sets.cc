#include "ostro/site/batch_sets.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/batches/loader/document_uses.h"
#include "ostro/batches/loader/row_places.h"
#include "ostro/chain/chain.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/io/files/path.h"
#include "ostro/train/step/batches.h"

namespace ostro::site {
namespace {

constexpr int64_t kMostSequences = 2000;  // that are listed for a run
constexpr size_t kMostUses = 60;          // that are listed for a document
constexpr int64_t kStretches = 60;        // of the mixture
constexpr int64_t kTextTokens = 1000;
constexpr size_t kTextBytes = 2000;
constexpr size_t kKeyDigits = 16;

// Reads the batches of one run.
class Reader {
 public:
  Reader(const Context& context, const lab::RunData& data, std::shared_ptr<const batches::DataSet> stores,
         const batches::Loader& loader)
      : context_(context), data_(data), stores_(std::move(stores)), loader_(loader) {}

  // The steps (first, last], as a loader counts from `first` on.
  Result<BatchSet> read(int64_t first, int64_t last, const tokenizer::Tokenizer* tokenizer) {
    begin(first, last);
    for (const batches::ComponentUse& use : loader_.use(last))
      out_.components[use.component].sequences = use.sequences;
    count_mixture(first, last);
    const int64_t sequences =
        loader_.schedule().first_example(last) - loader_.schedule().first_example(first);
    out_.every = std::max<int64_t>(1, (sequences - 1) / kMostSequences + 1);
    for (int64_t step = first; step < last; step += out_.every) RETURN_IF_ERROR(read_step(step));
    return finish(first, last, tokenizer);
  }

  // One of these steps, as the chain counts.
  Result<BatchSet> read_one(int64_t first, int64_t last, int64_t step,
                            const tokenizer::Tokenizer* tokenizer) {
    begin(first, last);
    RETURN_IF_ERROR(read_step(step - 1));
    return finish(first, last, tokenizer);
  }

 private:
  void begin(int64_t first, int64_t last) {
    out_.seq_len = data_.config.model_options().seq_len();
    out_.first = first + 1, out_.last = last;
    for (const batches::DataSet::Part& part : stores_->parts())
      out_.components.push_back({part.component.name, store_of(part.component.name).step, 0, 0, false});
  }

  Result<BatchSet> finish(int64_t first, int64_t last, const tokenizer::Tokenizer* tokenizer) {
    RETURN_IF_ERROR(describe(first, last));
    if (tokenizer != nullptr) RETURN_IF_ERROR(add_texts(*tokenizer));
    return std::move(out_);
  }

  const lab::StoreFrom& store_of(const std::string& component) const { return data_.stores.at(component); }

  void count_mixture(int64_t first, int64_t last) {
    const int64_t stretch = (last - first - 1) / kStretches + 1;
    for (int64_t from = first; from < last; from += stretch) {
      const int64_t to = std::min(last, from + stretch);
      const int64_t begin = loader_.schedule().first_example(from);
      std::vector<int64_t> counts(out_.components.size());
      for (const auto& place : loader_.places(begin, loader_.schedule().first_example(to) - begin))
        ++counts[place.component];
      for (size_t c = 0; c < counts.size(); ++c) out_.components[c].examples += counts[c];
      out_.mixture.emplace_back(to, std::move(counts));
    }
  }

  Status read_step(int64_t step) {
    StepOf& to = out_.steps.emplace_back(StepOf{step + 1, {}});
    const auto& schedule = loader_.schedule();
    for (const auto& place : loader_.places(schedule.first_example(step), schedule.size(step))) {
      SequenceOf& sequence = to.sequences.emplace_back(SequenceOf{place.component, place.sequence, {}});
      ASSIGN_OR_RETURN(const auto spans, loader_.reader(place.component).documents(place.sequence));
      for (const batches::DocumentSpan& span : spans)
        sequence.spans.push_back({number_of(place.component, span), span.begin, span.end, span.first_token});
    }
    return {};
  }

  size_t number_of(size_t component, const batches::DocumentSpan& span) {
    const auto [known, is_new] = numbers_.emplace(std::pair(component, span.row), out_.documents.size());
    if (!is_new) return known->second;
    DocumentOf& document = out_.documents.emplace_back();
    document.component = component, document.row = span.row, document.number = span.source.document;
    document.text_bytes = span.source.bytes;
    sources_.push_back(span.source);
    return known->second;
  }

  Status describe(int64_t first, int64_t last) {
    for (DocumentOf& document : out_.documents) {
      const data::TokenStream& stream = loader_.reader(document.component).stream();
      ASSIGN_OR_RETURN(const Sha256Digest hash, stream.row_hash(document.row));
      document.sha256 = to_hex(hash);
      ASSIGN_OR_RETURN(const batches::UsedRow used,
                       batches::row_uses(loader_, document.component, document.row, first, last));
      document.tokens = used.tokens;
      document.all_uses = static_cast<int64_t>(used.uses.size());
      for (size_t i = 0; i < used.uses.size() && i < kMostUses; ++i) {
        const batches::DocumentUse& use = used.uses[i];
        document.uses.push_back({use.step + 1, use.row, use.epoch, use.part.begin, use.part.end});
      }
    }
    for (size_t c = 0; c < out_.components.size(); ++c) RETURN_IF_ERROR(find_places(c));
    return {};
  }

  // Files may have been elsewhere when the store was made; they are looked up where they are now.
  Status find_places(size_t component) {
    const batches::DataSet::Part& part = stores_->parts()[component];
    const std::vector<lab::NamedFile>& now = store_of(part.component.name).files;
    ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* were, part.store->files());
    std::vector<data::FileLedger> ledgers = *were;
    for (size_t i = 0; i < ledgers.size() && i < now.size(); ++i) ledgers[i].source.path = now[i].path;
    std::vector<data::RowSource> rows;
    std::vector<DocumentOf*> documents;
    for (size_t i = 0; i < out_.documents.size(); ++i) {
      if (out_.documents[i].component != component) continue;
      data::RowSource row = sources_[i];
      const ptrdiff_t file = row.ledger == nullptr ? -1 : row.ledger - were->data();
      if (file < 0 || file >= static_cast<ptrdiff_t>(std::min(now.size(), ledgers.size()))) continue;
      row.ledger = &ledgers[static_cast<size_t>(file)];
      row.file = row.ledger->source.path;
      out_.documents[i].file = now[static_cast<size_t>(file)].name;
      rows.push_back(row);
      documents.push_back(&out_.documents[i]);
    }
    batches::SourceCheck check(context_.fs);
    const auto places = batches::find_rows(context_.fs, rows, data::row_fields(part.component.format), check);
    for (size_t i = 0; i < places.size(); ++i) {
      documents[i]->begin = places[i].begin, documents[i]->end = places[i].end;
      if (!places[i].page.empty())
        documents[i]->page = places[i].page + ", bytes " + std::to_string(places[i].page_begin) + " to " +
                             std::to_string(places[i].page_end - 1) + ", SHA-256 " + places[i].page_sha256;
    }
    return {};
  }

  Status add_texts(const tokenizer::Tokenizer& tokenizer) {
    for (ComponentOf& component : out_.components)
      component.shows_texts = store_of(component.name).may_be_shown;
    for (DocumentOf& document : out_.documents) {
      if (!out_.components[document.component].shows_texts) continue;
      const data::TokenStream& stream = loader_.reader(document.component).stream();
      ASSIGN_OR_RETURN(const std::vector<int64_t> ends, stream.row_ends(document.row, 1));
      std::vector<int32_t> tokens(static_cast<size_t>(std::min(kTextTokens, ends[1] - ends[0])));
      RETURN_IF_ERROR(stream.read(ends[0], tokens));
      const std::vector<uint32_t> ids(tokens.begin(), tokens.end());
      ASSIGN_OR_RETURN(document.text, tokenizer.decode(ids, /*skip_special_tokens=*/true));
      if (document.text.size() > kTextBytes) document.text.resize(kTextBytes);
    }
    return {};
  }

  const Context& context_;
  const lab::RunData& data_;
  std::shared_ptr<const batches::DataSet> stores_;
  const batches::Loader& loader_;
  BatchSet out_;
  std::map<std::pair<size_t, int64_t>, size_t> numbers_;  // component and row -> document
  std::vector<data::RowSource> sources_;                  // of the documents
};

// All listed steps of a run, or one.
Result<std::optional<BatchSet>> batches_of(const Context& context, const lab::Plan& plan,
                                           const lab::LabState& state, const std::string& run, bool texts,
                                           std::optional<int64_t> step = std::nullopt) {
  ASSIGN_OR_RETURN(const auto data, lab::run_data(context, plan, state.made, *state.find(run)->step));
  if (!data) return std::optional<BatchSet>();
  const std::string chain_file = io::join_path(state.made.at(run).folder, chain::kChainFile);
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(context.fs, chain_file));
  ASSIGN_OR_RETURN(const auto tokenizer, train::open_tokenizer(context.fs, data->config));
  ASSIGN_OR_RETURN(const auto stores, batches::DataSet::open(context.fs, data->config.data, *tokenizer));
  ASSIGN_OR_RETURN(const batches::Loader loader, train::make_loader(data->config, stores));
  const int64_t first = chain.genesis().step(), last = chain.last_step();
  if (last <= first || !loader.schedule().is_countable(last)) return std::optional<BatchSet>();
  if (step && (*step <= first || *step > last)) return std::optional<BatchSet>();
  Reader reader(context, *data, stores, loader);
  const tokenizer::Tokenizer* shown = texts ? tokenizer.get() : nullptr;
  ASSIGN_OR_RETURN(BatchSet out,
                   step ? reader.read_one(first, last, *step, shown) : reader.read(first, last, shown));
  return std::optional<BatchSet>(std::move(out));
}

std::string dumped(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

}  // namespace

bool BatchSet::has_texts() const {
  return std::any_of(components.begin(), components.end(),
                     [](const ComponentOf& component) { return component.shows_texts; });
}

std::string BatchSet::json() const {
  nlohmann::json out = {
      {"seq_len", seq_len}, {"first", first}, {"last", last}, {"every", every}, {"texts", has_texts()}};
  if (on_demand) out["demand"] = key;
  for (const ComponentOf& c : components) out["components"].push_back({c.name, c.store, c.shows_texts});
  for (const StepOf& step : steps) {
    auto sequences = nlohmann::json::array();
    for (const SequenceOf& s : step.sequences) {
      auto spans = nlohmann::json::array();
      for (const SpanOf& span : s.spans)
        spans.push_back({span.document, span.begin, span.end, span.first_token});
      sequences.push_back({s.component, s.sequence, spans});
    }
    out["steps"].push_back({step.step, sequences});
  }
  for (const DocumentOf& d : documents) {
    auto uses = nlohmann::json::array();
    for (const UseOf& use : d.uses) uses.push_back({use.step, use.row, use.epoch, use.begin, use.end});
    out["documents"].push_back({{"component", d.component},
                                {"file", d.file},
                                {"number", d.number},
                                {"row", d.row},
                                {"bytes", {d.begin, d.end}},
                                {"text_bytes", d.text_bytes},
                                {"tokens", d.tokens},
                                {"sha256", d.sha256},
                                {"page", d.page},
                                {"uses", uses},
                                {"all_uses", d.all_uses}});
  }
  return dumped(out);
}

std::string BatchSet::texts_json() const {
  auto out = nlohmann::json::array();
  for (const DocumentOf& d : documents)
    out.push_back(components[d.component].shows_texts ? nlohmann::json(d.text) : nlohmann::json());
  return dumped(out);
}

Result<std::vector<BatchSet>> find_batch_sets(const Context& context, LabFacts& facts, bool texts) {
  std::vector<BatchSet> out;
  std::map<std::string, size_t> known;  // by hash of what a page has
  for (RunFacts& run : facts.runs) {
    auto found = batches_of(context, facts.plan, facts.state, run.name, texts);
    if (!found.ok()) return found.error().with_context(run.name);
    if (!*found) continue;
    const std::string hash = sha256_hex((*found)->json());
    const auto [place, is_new] = known.emplace(hash, out.size());
    if (is_new) {
      out.push_back(std::move(**found));
      out.back().id = "batches-" + std::to_string(out.size());
      out.back().key = hash.substr(0, kKeyDigits);
    }
    BatchSet& set = out[place->second];
    set.runs.push_back(run.name);
    run.batches = set.id;
  }
  return out;
}

Result<std::optional<BatchSet>> find_batch(const Context& context, const lab::Plan& plan,
                                           const lab::LabState& state, const std::string& run, int64_t step,
                                           bool texts) {
  auto found = batches_of(context, plan, state, run, texts, step);
  if (!found.ok()) return found.error().with_context(run);
  return found;
}

}  // namespace ostro::site
