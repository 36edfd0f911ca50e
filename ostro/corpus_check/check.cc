#include "ostro/corpus_check/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <variant>

#include "ostro/base/sha256.h"
#include "ostro/corpus_check/eval_files.h"
#include "ostro/corpus_check/words.h"
#include "ostro/data/formats/row_formatter.h"
#include "ostro/data/rows/row_verdicts.h"
#include "ostro/data/sources/row_reader.h"
#include "ostro/data/sources/source_files.h"
#include "ostro/data/store/token_store.h"
#include "ostro/io/files/file_hash.h"

namespace ostro::corpus_check {
namespace {

constexpr size_t kBatchBytes = 8 << 20;
constexpr size_t kBatchRows = 4096;
constexpr size_t kBatchTokens = 2 << 20;        // of rows of a store
constexpr size_t kStoreCacheBytes = 32u << 20;  // for decoded chunks; the store is read in stored order

// The facts that a thread computes from one row alone.
struct RowFacts {
  Status error;
  data::FormattedRow row;  // its content is dropped
  DocumentStats stats;
  Sha256Digest hash{};
  bool has_signature = false;
  Signature signature{};
  int64_t words = 0;
  Contamination found;
};

// Turns a row of ids into text by decoding them. The tokens that begin and end a document are dropped, since
// rows of text have none.
Status decode_row(const tokenizer::Tokenizer& tokenizer, data::FormattedRow& row) {
  std::span<const uint32_t> ids = row.ids;
  if (!ids.empty() && tokenizer.eos_id() == ids.back()) ids = ids.first(ids.size() - 1);
  const std::vector<uint32_t>& before = tokenizer.spec().prefix;
  if (!before.empty() && ids.size() >= before.size() && std::equal(before.begin(), before.end(), ids.begin()))
    ids = ids.subspan(before.size());
  ASSIGN_OR_RETURN(row.content, tokenizer.decode(ids));
  if (row.content.empty()) row.skip = data::RowSkip::kEmpty;
  return {};
}

struct Workers {
  const tokenizer::Tokenizer& tokenizer;
  const MinHasher& hasher;
  const EvalIndex& index;

  RowFacts facts(const data::Row& row, const data::RowFormatter& formatter, bool decodes,
                 tokenizer::Encoder& encoder) const {
    if (!row.problem.empty()) return failed(invalid_argument(row.problem));
    auto formatted = formatter.format(row, encoder);
    if (!formatted.ok()) return failed(formatted.error());
    return facts(std::move(*formatted), decodes);
  }

  RowFacts facts(data::FormattedRow row, bool decodes) const {
    RowFacts out;
    out.row = std::move(row);
    if (out.row.skip == data::RowSkip::kNone && decodes) {
      if (const Status decoded = decode_row(tokenizer, out.row); !decoded.ok())
        return failed(decoded.error());
    }
    if (out.row.skip != data::RowSkip::kNone) return out;
    const std::string text = std::move(out.row.content);
    auto stats = document_stats(text);
    if (!stats.ok()) return failed(stats.error());
    out.stats = *stats;
    out.stats.tokens = static_cast<int64_t>(out.row.ids.size());
    out.row.ids = {};
    out.row.weights = {};
    out.hash = sha256(text);
    const std::vector<uint64_t> words = word_hashes(text);
    out.words = static_cast<int64_t>(words.size());
    out.has_signature = hasher.sign(words, out.signature);
    out.found = index.find(text, words);
    return out;
  }

  // Computes facts_of(i, encoder) for all i < count, in several threads. The results are in order of i.
  template <typename FactsOf>
  static std::vector<RowFacts> all(size_t count, std::vector<tokenizer::Encoder>& encoders,
                                   const FactsOf& facts_of) {
    std::vector<RowFacts> out(count);
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < encoders.size(); ++t)
      threads.emplace_back([&, t] {
        for (size_t i = t; i < count; i += encoders.size()) out[i] = facts_of(i, encoders[t]);
      });
    threads.clear();  // joins
    return out;
  }

 private:
  static RowFacts failed(Error error) {
    RowFacts out;
    out.error = std::move(error);
    return out;
  }
};

// All of them, or an error.
Result<std::vector<data::SourceFile>> all_sources(io::FileSystem& fs, const data::SourcePlaces& places,
                                                  const data::SourceKeys& keys) {
  ASSIGN_OR_RETURN(const data::FoundSources found, data::find_sources(fs, places, keys));
  return found.all();
}

class Check {
 public:
  Check(io::FileSystem& fs, const data::DataOptions& options, const tokenizer::Tokenizer& tokenizer,
        const CheckSettings& settings)
      : fs_(fs),
        options_(options),
        tokenizer_(tokenizer),
        settings_(settings),
        hasher_(static_cast<size_t>(settings.shingle), static_cast<uint64_t>(settings.seed)),
        workers_{tokenizer, hasher_, report_.index},
        finder_(fs, settings.folder, settings.near_threshold, settings.memory) {
    report_.settings = settings;
    report_.index =
        EvalIndex(static_cast<size_t>(settings.ngram), static_cast<size_t>(settings.shortest_ngram));
    report_.bands = Bands::for_threshold(settings.near_threshold);
    for (int i = 0; i < settings.threads; ++i) encoders_.emplace_back(tokenizer);
  }

  Result<CheckReport> run() {
    RETURN_IF_ERROR(read_evals());
    RETURN_IF_ERROR(find_inputs());
    for (const Input& input : inputs_) {
      report_.components.push_back({.name = input.name, .decoded = input.decodes});
      RETURN_IF_ERROR(input.store == nullptr ? read_texts(input) : read_store(*input.store));
    }
    if (finder_.documents() == 0) return invalid_argument(nothing_to_check());
    ASSIGN_OR_RETURN(report_.duplicates, finder_.finish(static_cast<size_t>(settings_.list)));
    for (size_t e = 0; e < seen_.size(); ++e)
      report_.evals[e].ngrams_found = std::count(seen_[e].begin(), seen_[e].end(), true);
    return std::move(report_);
  }

 private:
  Status read_evals() {
    if (!settings_.eval_files.empty()) {
      ASSIGN_OR_RETURN(const auto sources,
                       all_sources(fs_, {settings_.eval_files, {}, {settings_.folder}}, {.train = "--eval"}));
      RETURN_IF_ERROR(add_eval_files(fs_, sources, settings_.eval_field, "--eval", report_.index));
    }
    report_.index.finish();
    report_.evals.resize(report_.index.documents().size());
    for (const EvalDocument& d : report_.index.documents())
      seen_.emplace_back(static_cast<size_t>(d.ngrams), false);
    return {};
  }

  // A component to check: its texts, or its store when it has no texts.
  struct Input {
    std::string name;
    bool decodes = false;  // rows are ids
    std::unique_ptr<data::RowFormatter> formatter;
    std::vector<data::RowField> fields;
    std::vector<data::SourceFile> sources;
    data::RowVerdicts verdicts;  // on the first sources, which are those of train_urls
    std::shared_ptr<const data::TokenStore> store;
  };

  // The verdicts of a component, which must be those of its texts; none where it has none.
  Result<data::RowVerdicts> verdicts_of(const data::Component& component,
                                        const std::vector<data::SourceFile>& sources) {
    data::RowVerdicts out;
    if (!component.rows) return out;
    ASSIGN_OR_RETURN(out, data::read_row_verdicts(fs_, *component.rows));
    std::vector<std::pair<std::string, std::string>> files;
    for (const data::SourceFile& source : sources) {
      if (source.list != data::Split::kTrain) break;
      ASSIGN_OR_RETURN(std::string hash, io::file_sha256(fs_, source.path));
      files.emplace_back(source.path, std::move(hash));
    }
    RETURN_IF_ERROR(data::check_files_of_verdicts(out, *component.rows, component.key + ".rows", files));
    return out;
  }

  // Finds everything that can be wrong with a component, except for its rows, before the first row is read.
  Status find_inputs() {
    for (const data::Component& component : data::components_of(options_)) {
      if (component.is_in_place()) {
        RETURN_IF_ERROR(find_store(component));
        continue;
      }
      const std::string key = component.name.empty() ? component.key : component.key + ".format";
      ASSIGN_OR_RETURN(auto formatter,
                       data::make_row_formatter(
                           fs_, component.format, key, options_.tokenizer_path(), tokenizer_,
                           {.enforce_bos = options_.enforce_bos, .enforce_eos = options_.enforce_eos}));
      ASSIGN_OR_RETURN(auto sources, all_sources(fs_, data::source_places(options_, component),
                                                 data::SourceKeys::of(component.key)));
      ASSIGN_OR_RETURN(data::RowVerdicts verdicts, verdicts_of(component, sources));
      for (const data::SourceFile& source : sources) progress_.bytes_total += source.size;
      progress_.files_total += static_cast<int64_t>(sources.size());
      inputs_.push_back({component.name, std::holds_alternative<data::PrebuiltFormat>(component.format),
                         std::move(formatter), data::row_fields(component.format), std::move(sources),
                         std::move(verdicts), nullptr});
    }
    if (!inputs_.empty()) return {};
    std::string why;
    for (const LeftOutComponent& c : report_.left_out) why += fmt::format("; {}: {}", c.name, c.reason);
    return invalid_argument(
        "data: no component has texts (train_urls) or a finished store, so there is nothing to check" + why);
  }

  // A component without texts. Its store comes from another program, or was made by hand, and may not exist
  // yet.
  Status find_store(const data::Component& component) {
    auto store = data::TokenStore::open(fs_, options_, component, tokenizer_,
                                        std::make_shared<data::ChunkCache>(kStoreCacheBytes));
    if (!store.ok() && store.error().code() == ErrorCode::kNotFound) {
      report_.left_out.push_back({component.name.empty() ? component.key : component.name,
                                  "names no texts, and has no store to read: " + store.error().message()});
      return {};
    }
    if (!store.ok()) return store.error().with_context(component.key);
    for (const data::Split split : data::kSplits) {
      progress_.bytes_total += (*store)->split(split).tokens() * kBytesOfId;
      ++progress_.files_total;
    }
    inputs_.push_back({component.name, true, nullptr, {}, {}, {}, std::move(*store)});
    return {};
  }

  std::string nothing_to_check() const {
    int64_t rows = 0, bad = 0;
    for (const ComponentCheck& c : report_.components) {
      rows += c.rows;
      bad += c.bad;
    }
    return fmt::format(
        "data: the files of train_urls and validation_urls (and stores without texts) hold no text (files: "
        "{}, rows: {}, of them malformed: {}, the others empty)",
        report_.sources.size(), rows, bad);
  }

  Status read_texts(const Input& input) {
    data::RowOptions rows;
    rows.fields = input.fields;
    size_t number = 0;
    for (const data::SourceFile& source : input.sources) {
      report_.sources.push_back(source.path);
      report_.formats.push_back(source.format);
      const data::FileVerdicts* said =
          number < input.verdicts.files.size() ? &input.verdicts.files[number] : nullptr;
      ++number;
      ASSIGN_OR_RETURN(const auto reader, data::open_rows(fs_, source.path, source.format, rows));
      for (bool more = true; more;) {
        std::vector<data::Row> batch;
        for (size_t bytes = 0; bytes < kBatchBytes && batch.size() < kBatchRows;) {
          data::Row row;
          ASSIGN_OR_RETURN(more, reader->next(row));
          if (!more) break;
          if (row.is_blank()) continue;
          if (said != nullptr && said->drops(row.number)) {
            ++report_.components.back().left_out;
            continue;
          }
          bytes += row.bytes.size();
          batch.push_back(std::move(row));
        }
        const std::vector<RowFacts> facts =
            Workers::all(batch.size(), encoders_, [&](size_t i, tokenizer::Encoder& encoder) {
              return workers_.facts(batch[i], *input.formatter, input.decodes, encoder);
            });
        for (size_t i = 0; i < batch.size(); ++i) RETURN_IF_ERROR(take(batch[i].number, facts[i]));
        if (more) show_progress(reader->stored_bytes());
      }
      finished_bytes_ += source.size;
      ++progress_.files_done;
      show_progress(0);
    }
    return {};
  }

  // Checks all rows, with or without loss, since a run sees all of them.
  Status read_store(const data::TokenStore& store) {
    for (const data::Split split : data::kSplits) {
      const data::TokenStream& stream = store.split(split);
      report_.sources.push_back(stream.name());
      report_.formats.push_back(data::FileFormat::kParquet);  // "FOLDER/train: row 3"
      std::vector<int32_t> ids;
      for (int64_t row = 0; row < stream.rows();) {
        ASSIGN_OR_RETURN(const std::vector<int64_t> ends,
                         stream.row_ends(row, std::min<int64_t>(kBatchRows, stream.rows() - row)));
        size_t rows = 1;
        while (rows + 1 < ends.size() && static_cast<size_t>(ends[rows + 1] - ends[0]) <= kBatchTokens)
          ++rows;
        ids.resize(static_cast<size_t>(ends[rows] - ends[0]));
        RETURN_IF_ERROR(stream.read(ends[0], ids));
        const std::vector<RowFacts> facts = Workers::all(rows, encoders_, [&](size_t i, tokenizer::Encoder&) {
          data::FormattedRow one;
          one.ids.assign(ids.begin() + (ends[i] - ends[0]), ids.begin() + (ends[i + 1] - ends[0]));
          return workers_.facts(std::move(one), true);
        });
        for (size_t i = 0; i < rows; ++i) RETURN_IF_ERROR(take(row + static_cast<int64_t>(i) + 1, facts[i]));
        row += static_cast<int64_t>(rows);
        show_progress(ends[rows] * kBytesOfId);
      }
      finished_bytes_ += stream.tokens() * kBytesOfId;
      ++progress_.files_done;
      show_progress(0);
    }
    return {};
  }

  void show_progress(int64_t bytes_of_file) {
    if (!settings_.progress) return;
    progress_.bytes_done = finished_bytes_ + bytes_of_file;
    settings_.progress(progress_);
  }

  // A row of the last source.
  Status take(int64_t number, const RowFacts& facts) {
    const DocumentPlace place{static_cast<int64_t>(report_.sources.size()) - 1, number};
    ComponentCheck& component = report_.components.back();
    ++component.rows;
    if (!facts.error.ok()) {
      const Error error = facts.error.error().with_context(report_.place_text(place));
      if (options_.on_bad_row == data::OnBadRow::kError) return error;
      if (component.bad++ == 0) component.first_bad = error.message();
      return {};
    }
    component.repaired += facts.row.repaired ? 1 : 0;
    component.empty += facts.row.skip == data::RowSkip::kEmpty ? 1 : 0;
    component.no_loss += facts.row.skip == data::RowSkip::kNoLoss ? 1 : 0;
    if (facts.row.skip != data::RowSkip::kNone) return {};
    component.stats.add(facts.stats);
    ++progress_.documents;
    progress_.tokens += facts.stats.tokens;
    RETURN_IF_ERROR(
        finder_.add(place, facts.stats.bytes, facts.hash, facts.has_signature ? &facts.signature : nullptr));
    if (!facts.found.hits.empty()) take_contamination(place, facts);
    return {};
  }

  void take_contamination(const DocumentPlace& place, const RowFacts& facts) {
    ++report_.contaminated_documents;
    for (const ContaminationHit& hit : facts.found.hits) {
      EvalResult& eval = report_.evals[hit.eval];
      if (eval.documents++ == 0) eval.example = hit.ngrams.front();
      for (const size_t first : hit.ngrams) seen_[hit.eval][first] = true;
    }
    auto& worst = report_.contaminated;
    const auto at = std::upper_bound(
        worst.begin(), worst.end(), facts.found.words_covered,
        [](int64_t covered, const ContaminatedDocument& d) { return covered > d.found.words_covered; });
    if (at == worst.end() && static_cast<int64_t>(worst.size()) >= settings_.list) return;
    worst.insert(at, ContaminatedDocument{place, facts.words, facts.found});
    if (static_cast<int64_t>(worst.size()) > settings_.list) worst.pop_back();
  }

  io::FileSystem& fs_;
  const data::DataOptions& options_;
  const tokenizer::Tokenizer& tokenizer_;
  const CheckSettings& settings_;
  const MinHasher hasher_;
  const Workers workers_;
  DuplicateFinder finder_;
  std::vector<tokenizer::Encoder> encoders_;
  std::vector<std::vector<bool>> seen_;  // by eval document: its n-grams that were found
  std::vector<Input> inputs_;
  data::BuildProgress progress_;
  // bytes that the progress counts for each token of a store
  static constexpr int64_t kBytesOfId = 4;
  int64_t finished_bytes_ = 0;
  CheckReport report_;
};

}  // namespace

Status CheckSettings::validate() const {
  const auto at_least = [](const char* name, int64_t value, int64_t least) -> Status {
    if (value >= least) return {};
    return invalid_argument(fmt::format("{} {}: use {} or more", name, value, least));
  };
  RETURN_IF_ERROR(at_least("--ngram", ngram, 1));
  RETURN_IF_ERROR(at_least("--shortest_ngram", shortest_ngram, 1));
  RETURN_IF_ERROR(at_least("--shingle", shingle, 1));
  RETURN_IF_ERROR(at_least("--list", list, 0));
  RETURN_IF_ERROR(at_least("--memory_mib", memory >> 20, 1));
  if (!(near_threshold > 0 && near_threshold <= 1))
    return invalid_argument(
        fmt::format("--near_threshold {}: use more than 0 and at most 1", near_threshold));
  return {};
}

std::string CheckReport::place_text(const DocumentPlace& place) const {
  const auto i = static_cast<size_t>(place.source);
  return data::row_place(sources[i], formats[i], place.number);
}

Result<CheckReport> run_check(io::FileSystem& fs, const data::DataOptions& options,
                              const tokenizer::Tokenizer& tokenizer, const CheckSettings& settings) {
  RETURN_IF_ERROR(settings.validate());
  ASSIGN_OR_RETURN(const bool there, fs.exists(settings.folder));
  if (there)
    return invalid_argument(fmt::format(
        "{}: is in the way of temporary files; remove it, or name another --out", settings.folder));
  RETURN_IF_ERROR(fs.make_dirs(settings.folder));
  Result<CheckReport> report = Check(fs, options, tokenizer, settings).run();
  const Status removed = fs.remove_all(settings.folder);
  if (report.ok() && !removed.ok()) return removed.error();
  return report;
}

}  // namespace ostro::corpus_check
