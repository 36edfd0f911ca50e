#include "ostro/corpus_check/verdicts/filter.h"

#include "ostro/base/parallel.h"
#include "ostro/base/sha256.h"
#include "ostro/corpus_check/check.h"
#include "ostro/corpus_check/eval_files.h"
#include "ostro/corpus_check/words.h"
#include "ostro/data/sources/row_reader.h"

namespace ostro::corpus_check {
namespace {

struct Figure {
  std::string name;
  double (*of)(const DocumentStats&);
};

const std::vector<Figure>& figures() {
  using S = const DocumentStats&;
  static const std::vector<Figure> kFigures = {{"bytes", [](S s) { return static_cast<double>(s.bytes); }},
                                               {"words", [](S s) { return static_cast<double>(s.words); }},
                                               {"mean_word_length", [](S s) { return s.mean_word_length; }},
                                               {"letters", [](S s) { return s.letters; }},
                                               {"digits", [](S s) { return s.digits; }},
                                               {"spaces", [](S s) { return s.spaces; }},
                                               {"symbols", [](S s) { return s.symbols; }},
                                               {"non_ascii", [](S s) { return s.non_ascii; }},
                                               {"symbol_ratio", [](S s) { return s.symbol_ratio; }},
                                               {"repeated_lines", [](S s) { return s.repeated_lines; }}};
  return kFigures;
}

// What follows from a text alone.
struct Facts {
  data::RowVerdict verdict;
  Sha256Digest hash{};
  bool has_signature = false;
  Signature signature{};
};

class Filter {
 public:
  Filter(io::FileSystem& fs, const TextRows& rows, const FilterRules& rules, const std::string& folder,
         int threads)
      : fs_(fs),
        rows_(rows),
        rules_(rules),
        threads_(threads),
        index_(static_cast<size_t>(settings_.ngram), static_cast<size_t>(settings_.shortest_ngram)),
        hasher_(static_cast<size_t>(settings_.shingle), static_cast<uint64_t>(settings_.seed)),
        finder_(fs, folder, settings_.near_threshold, settings_.memory),
        found_(rows.files.size()) {
    for (const FigureRule& rule : rules.figures)
      for (const Figure& figure : figures())
        if (figure.name == rule.figure) figures_.push_back(&figure);
    OSTRO_CHECK(figures_.size() == rules.figures.size(),
                "a rule on a figure that filter_figures() does not have");
  }

  Result<data::RowVerdicts> run() {
    RETURN_IF_ERROR(add_eval_files(fs_, rules_.evaluation, "", "evaluation", index_));
    index_.finish();
    ASSIGN_OR_RETURN(data::RowVerdicts out,
                     each_text(fs_, rows_, [this](std::vector<TextRow>& batch) { return take(batch); }));
    if (finds_copies()) {
      const auto copied =
          finder_.finish(0, [this](const DocumentPlace& copy, const DocumentPlace& first, bool exact) {
            const auto f = static_cast<size_t>(first.source);
            found_[static_cast<size_t>(copy.source)].push_back(
                {.row = copy.number,
                 .drop = exact ? "exact_duplicate" : "near_duplicate",
                 .of = data::row_place(rows_.names[f], rows_.files[f].format, first.number)});
          });
      if (!copied.ok()) return copied.error();
    }
    for (size_t i = 0; i < found_.size(); ++i) add_verdicts(out.files[i], std::move(found_[i]));
    return out;
  }

 private:
  bool finds_copies() const { return rules_.exact_duplicates || rules_.near_duplicates; }

  Facts facts(const TextRow& row) const {
    Facts out;
    out.verdict.row = row.row;
    if (!figures_.empty()) {
      const DocumentStats stats = text_stats(row.text);
      for (size_t i = 0; i < figures_.size(); ++i) {
        const double value = figures_[i]->of(stats);
        const FigureRule& rule = rules_.figures[i];
        if ((rule.low && value < *rule.low) || (rule.high && value > *rule.high)) {
          out.verdict.drop = rule.figure;
          out.verdict.value = value;
          return out;
        }
      }
    }
    std::vector<uint64_t> words;  // nothing else looks at them
    if (!rules_.evaluation.empty() || rules_.near_duplicates) words = word_hashes(row.text);
    if (const Contamination hit = index_.find(row.text, words); !hit.hits.empty()) {
      out.verdict.drop = "evaluation";
      out.verdict.of = name_of_eval(hit.hits.front().eval);
      return out;
    }
    if (!finds_copies()) return out;
    out.hash = sha256(row.text);
    out.has_signature = rules_.near_duplicates && hasher_.sign(words, out.signature);
    return out;
  }

  // "FILE:LINE" of an evaluation document, with the file's name for its path.
  std::string name_of_eval(size_t eval) const {
    const std::string& place = index_.documents()[eval].place;
    for (size_t i = 0; i < rules_.evaluation.size(); ++i)
      if (const std::string& path = rules_.evaluation[i].path; place == path || place.starts_with(path + ":"))
        return rules_.evaluation_names[i] + place.substr(path.size());
    return place;
  }

  Status take(const std::vector<TextRow>& batch) {
    std::vector<Facts> all(batch.size());
    RETURN_IF_ERROR(parallel_for(std::ssize(batch), threads_, [&](int64_t i) -> Status {
      all[static_cast<size_t>(i)] = facts(batch[static_cast<size_t>(i)]);
      return {};
    }));
    for (size_t i = 0; i < batch.size(); ++i) {
      if (!all[i].verdict.drop.empty()) {
        found_[batch[i].file].push_back(std::move(all[i].verdict));
      } else if (finds_copies()) {
        RETURN_IF_ERROR(finder_.add({static_cast<int64_t>(batch[i].file), batch[i].row},
                                    static_cast<int64_t>(batch[i].text.size()), all[i].hash,
                                    all[i].has_signature ? &all[i].signature : nullptr));
      }
    }
    return {};
  }

  io::FileSystem& fs_;
  const TextRows& rows_;
  const FilterRules& rules_;
  const CheckSettings settings_;  // what `ostro data check` does where it is not told otherwise
  const int threads_;
  EvalIndex index_;
  const MinHasher hasher_;
  DuplicateFinder finder_;
  std::vector<const Figure*> figures_;                // of the rules
  std::vector<std::vector<data::RowVerdict>> found_;  // by file
};

}  // namespace

const std::vector<std::string>& filter_figures() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const Figure& figure : figures()) names.push_back(figure.name);
    return names;
  }();
  return kNames;
}

Result<data::RowVerdicts> filter_rows(io::FileSystem& fs, const TextRows& rows, const FilterRules& rules,
                                      const std::string& folder, int threads) {
  RETURN_IF_ERROR(fs.make_dirs(folder));
  Result<data::RowVerdicts> out = Filter(fs, rows, rules, folder, threads).run();
  const Status removed = fs.remove_all(folder);
  if (out.ok() && !removed.ok()) return removed.error();
  return out;
}

}  // namespace ostro::corpus_check
