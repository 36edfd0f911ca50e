#include "ostro/corpus_check/quality/quality.h"

#include <algorithm>
#include <cmath>

#include "ostro/base/parallel.h"

namespace ostro::corpus_check {
namespace {

Status add_examples(io::FileSystem& fs, const TextRows& rows, bool is_good, int64_t buckets,
                    std::vector<Example>& out) {
  const size_t before = out.size();
  const auto read = each_text(fs, rows, [&](std::vector<TextRow>& batch) -> Status {
    for (const TextRow& row : batch) out.push_back({text_features(row.text, buckets), is_good});
    return {};
  });
  if (!read.ok()) return read.error();
  if (out.size() == before)
    return invalid_argument(is_good ? "positive: has no text" : "negative: has no text");
  return {};
}

}  // namespace

size_t rows_of_share(double share, size_t rows) {
  const auto all = static_cast<double>(rows);
  auto count = std::min(static_cast<size_t>(std::ceil(share * all)), rows);
  // The product may be rounded up: 0.07 * 100 is more than 7. The quotient of whole numbers is rounded as a
  // decimal share is, so that 7 of 100 are 0.07.
  while (count > 0 && static_cast<double>(count - 1) / all >= share) --count;
  while (count < rows && static_cast<double>(count) / all < share) ++count;
  return count;
}

Result<data::RowVerdicts> score_rows(io::FileSystem& fs, const TextRows& rows, const TextRows& good,
                                     const TextRows& other, const ClassifierOptions& options,
                                     const QualityRule& rule, int threads) {
  OSTRO_CHECK(rule.threshold.has_value() != rule.share.has_value(), "a rule of quality has one bound");
  std::vector<Example> examples;
  RETURN_IF_ERROR(add_examples(fs, good, true, options.buckets, examples));
  RETURN_IF_ERROR(add_examples(fs, other, false, options.buckets, examples));
  const TextClassifier classifier = TextClassifier::train(examples, options);
  examples.clear();
  struct Scored {
    size_t file;
    int64_t row;
    float score;
  };
  std::vector<Scored> all;
  const auto take = [&](std::vector<TextRow>& batch) -> Status {
    const size_t begin = all.size();
    for (const TextRow& row : batch) all.push_back({row.file, row.row, 0});
    return parallel_for(std::ssize(batch), threads, [&](int64_t i) -> Status {
      const auto at = static_cast<size_t>(i);
      all[begin + at].score = classifier.score(text_features(batch[at].text, options.buckets));
      return {};
    });
  };
  ASSIGN_OR_RETURN(data::RowVerdicts out, each_text(fs, rows, take));
  std::vector<bool> is_taken(all.size());
  if (rule.threshold) {
    for (size_t i = 0; i < all.size(); ++i)
      is_taken[i] = static_cast<double>(all[i].score) >= *rule.threshold;
  } else {
    std::vector<size_t> best(all.size());
    for (size_t i = 0; i < best.size(); ++i) best[i] = i;
    std::stable_sort(best.begin(), best.end(),
                     [&](size_t a, size_t b) { return all[a].score > all[b].score; });
    const size_t count = rows_of_share(*rule.share, all.size());
    for (size_t i = 0; i < count; ++i) is_taken[best[i]] = true;
  }
  std::vector<std::vector<data::RowVerdict>> said(out.files.size());
  for (size_t i = 0; i < all.size(); ++i)
    said[all[i].file].push_back({.row = all[i].row,
                                 .drop = is_taken[i] ? "" : "quality",
                                 .of = {},
                                 .value = static_cast<double>(all[i].score)});
  for (size_t i = 0; i < said.size(); ++i) add_verdicts(out.files[i], std::move(said[i]));
  return out;
}

}  // namespace ostro::corpus_check
