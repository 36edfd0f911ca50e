// ostro data check
#include <fmt/core.h>

#include "ostro/base/machine.h"
#include "ostro/cli/main/commands.h"
#include "ostro/corpus_check/check.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/prepare/tokenizer/trained_tokenizer.h"
#include "ostro/shell/shared/progress.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {
namespace {

Status check_and_report(io::FileSystem& fs, const train::TrainConfig& config,
                        corpus_check::CheckSettings settings, const std::string& out,
                        const std::string& json_path) {
  for (const std::string& path : {out, json_path})
    if (const auto info = fs.stat(path); info.ok() && info->is_directory)
      return invalid_argument(fmt::format("--out: {} is a directory; name a file", path));
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer, prepare::open_tokenizer(fs, config.data));
  BuildProgressLine line("checking");
  settings.progress = line.callback();
  const Result<corpus_check::CheckReport> checked =
      corpus_check::run_check(fs, config.data, tokenizer, settings);
  line.end();
  if (!checked.ok()) return checked.error();
  const corpus_check::CheckReport& report = *checked;
  RETURN_IF_ERROR(io::write_file_atomically(fs, out, corpus_check::check_html(report)));
  RETURN_IF_ERROR(io::write_file_atomically(fs, json_path, corpus_check::check_json(report)));
  const corpus_check::DuplicateReport& d = report.duplicates;
  std::string text = fmt::format("documents          {}\n", d.documents);
  if (!report.index.documents().empty())
    text +=
        fmt::format("with eval data     {} (of {} eval documents, {} too short)\n",
                    report.contaminated_documents, report.index.documents().size(), report.index.too_short());
  text += fmt::format("exact copies       {} in {} clusters, {} bytes\n", d.exact_copies, d.exact_clusters,
                      d.exact_bytes);
  text += fmt::format("near copies        {} in {} clusters, {} bytes\n", d.near_copies, d.near_clusters,
                      d.near_bytes);
  if (d.not_compared > 0)
    text +=
        fmt::format("                   at least: {} bands have more than {} documents unlike each other\n",
                    d.crowded_bands, corpus_check::DuplicateReport::kMaxRepresentatives);
  int64_t bad = 0;
  for (const corpus_check::ComponentCheck& c : report.components) bad += c.bad;
  if (bad > 0) text += fmt::format("malformed rows     {}\n", bad);
  for (const corpus_check::LeftOutComponent& c : report.left_out)
    text += fmt::format("not looked at      {}: {}\n", c.name, c.reason);
  return write_stdout(text + fmt::format("report             {}\nfigures            {}\n", out, json_path));
}

}  // namespace

int data_check_command(Args args) {
  corpus_check::CheckSettings settings;
  std::string out = "data_check.html";
  int64_t memory_mib = settings.memory >> 20;
  args.summary(
      "Reads every text of the configuration (rows of ids decoded, stores without texts too) and reports "
      "evaluation data in it, exact and near duplicates, and\n"
      "distributions of lengths and of figures of quality: an HTML file, and a .json with all figures beside "
      "it.");
  args.option("--eval", &settings.eval_files, "FILES", "evaluation sets: files, directories or globs");
  args.option("--eval_field", &settings.eval_field, "NAME",
              "field of their rows to take; default: every string");
  args.option("--out", &out, "FILE", "the report (data_check.html)");
  args.option("--ngram", &settings.ngram, "WORDS", "length of the n-grams looked for (13)");
  args.option("--shortest_ngram", &settings.shortest_ngram, "WORDS",
              "shorter eval documents count as one n-gram from this length on (8)");
  args.option("--shingle", &settings.shingle, "WORDS", "stretches that near duplicates share (5)");
  args.option("--near_threshold", &settings.near_threshold, "JACCARD",
              "from which on documents are near duplicates (0.8)");
  args.option("--seed", &settings.seed, "N", "of MinHash (0)");
  args.option("--list", &settings.list, "N", "documents and clusters to list (100)");
  args.option("--memory_mib", &memory_mib, "MIB",
              "memory for sorting; the rest goes to files beside the report (512)");
  args.config();
  if (const auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  const Result<int> threads = default_threads();
  if (!threads.ok()) return report_error(threads.error());
  settings.threads = *threads;
  settings.memory = memory_mib << 20;
  settings.folder = out + ".tmp";
  const std::string json_path =
      out.ends_with(".html") ? out.substr(0, out.size() - 5) + ".json" : out + ".json";
  return exit_after(check_and_report(args.context().fs, *config, settings, out, json_path));
}

}  // namespace ostro::cli
