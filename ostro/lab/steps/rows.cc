// The steps filter and quality: verdicts on rows.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "ostro/base/sha256.h"
#include "ostro/config/codec.h"
#include "ostro/corpus_check/quality/quality.h"
#include "ostro/corpus_check/verdicts/filter.h"
#include "ostro/experiment/plan/evaluation_files.h"
#include "ostro/io/files/file_hash.h"
#include "ostro/io/files/path.h"
#include "ostro/lab/steps/kinds.h"

namespace ostro::lab {
namespace {

// The rows of an input, with what was said of them.
Result<corpus_check::TextRows> rows_of(const Work& work, const char* parameter) {
  const std::string& input = work.step.inputs.at(parameter);
  corpus_check::TextRows rows;
  ASSIGN_OR_RETURN(rows.files, files_of(work, input));
  const Made& made = work.made.at(step_with_files(work.plan, *work.plan.find(input)).name);
  for (size_t i = 0; i < rows.files.size(); ++i) {
    const std::string& path = rows.files[i].path;
    rows.names.push_back(name_of(work, input, path));
    const bool is_made = !made.folder.empty();
    std::string hash = is_made ? "" : made.pinned[i];
    if (is_made) {
      ASSIGN_OR_RETURN(hash, io::file_sha256(work.context.fs, path));
    }
    rows.sha256.push_back(std::move(hash));
  }
  rows.text_key = text_of(work.step, "text_key");
  ASSIGN_OR_RETURN(rows.before, verdicts_of(work, input));
  return rows;
}

// Content is which rows of which files are taken, and not why. The same bytes in another format are other
// rows.
Result<std::string> keep(const Work& work, const std::string& folder, const corpus_check::TextRows& rows,
                         const data::RowVerdicts& verdicts) {
  RETURN_IF_ERROR(data::write_row_verdicts(work.context.fs, io::join_path(folder, kVerdictsFile), verdicts));
  auto files = nlohmann::json::array();
  for (size_t i = 0; i < verdicts.files.size(); ++i)
    files.push_back({data::file_format_name(rows.files[i].format), verdicts.files[i].sha256});
  return sha256_hex(nlohmann::json({{"files", files}, {"left_out", verdicts.left_out()}}).dump());
}

std::optional<double> number(const config::Node& node) {
  double value = 0;
  return config::read_value(node, "", &value).ok() ? std::optional<double>(value) : std::nullopt;
}

Result<bool> is_drop(const Step& step, const char* parameter) {
  const std::string& text = text_of(step, parameter);
  if (text == "drop" || text == "keep") return text == "drop";
  return invalid_argument(fmt::format("{} is {}: use drop or keep", parameter, text));
}

}  // namespace

Result<std::string> make_filter(const Work& work, const std::string& folder) {
  const Step& step = work.step;
  corpus_check::FilterRules rules;
  for (const std::string& figure : corpus_check::filter_figures()) {
    const config::Node* range = step.parameters.find(figure);
    if (range->kind != config::Node::Kind::kNull)
      rules.figures.push_back({figure, number(range->items[0]), number(range->items[1])});
  }
  ASSIGN_OR_RETURN(rules.exact_duplicates, is_drop(step, "exact_duplicates"));
  ASSIGN_OR_RETURN(rules.near_duplicates, is_drop(step, "near_duplicates"));
  ASSIGN_OR_RETURN(const auto before, evaluation_hashes(work.context.fs, work.plan, step));
  ASSIGN_OR_RETURN(rules.evaluation, evaluation_files(work.context.fs, work.plan, step));
  for (const data::SourceFile& file : rules.evaluation)
    rules.evaluation_names.push_back(work.plan.relative(file.path));
  ASSIGN_OR_RETURN(const auto input, rows_of(work, "from"));
  ASSIGN_OR_RETURN(const data::RowVerdicts verdicts,
                   corpus_check::filter_rows(work.context.fs, input, rules, folder + ".sort",
                                             work.services.build.threads_or_all()));
  ASSIGN_OR_RETURN(const auto after, evaluation_hashes(work.context.fs, work.plan, step));
  if (before != after)
    return invalid_argument("an evaluation file was changed while it was read; run it again");
  return keep(work, folder, input, verdicts);
}

Result<std::string> make_quality(const Work& work, const std::string& folder) {
  const Step& step = work.step;
  const corpus_check::QualityRule rule{number(*step.parameters.find("threshold")),
                                       number(*step.parameters.find("share"))};
  if (rule.threshold.has_value() == rule.share.has_value())
    return invalid_argument("set one of threshold and share: they say which rows are taken");
  corpus_check::ClassifierOptions options;
  options.dim = std::stoll(text_of(step, "dim"));
  options.buckets = std::stoll(text_of(step, "buckets"));
  options.epochs = std::stoll(text_of(step, "epochs"));
  constexpr int64_t kMostNumbers = int64_t{1} << 32;
  if (options.buckets > kMostNumbers || options.dim > kMostNumbers / options.buckets)
    return invalid_argument(
        fmt::format("buckets times dim are {} times {}: at most {} numbers are held in memory",
                    options.buckets, options.dim, kMostNumbers));
  constexpr int64_t kMostEpochs = 1'000'000;
  if (options.epochs > kMostEpochs)
    return invalid_argument(fmt::format("epochs is {}: use 1 to {}", options.epochs, kMostEpochs));
  ASSIGN_OR_RETURN(const auto input, rows_of(work, "from"));
  ASSIGN_OR_RETURN(const auto good, rows_of(work, "positive"));
  ASSIGN_OR_RETURN(const auto other, rows_of(work, "negative"));
  ASSIGN_OR_RETURN(const data::RowVerdicts verdicts,
                   corpus_check::score_rows(work.context.fs, input, good, other, options, rule,
                                            work.services.build.threads_or_all()));
  return keep(work, folder, input, verdicts);
}

}  // namespace ostro::lab
