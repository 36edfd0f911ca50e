// ostro inspect
#include <fmt/format.h>

#include <algorithm>

#include "ostro/audit/bare_model.h"
#include "ostro/audit/inspect.h"
#include "ostro/base/text_parts.h"
#include "ostro/cli/main/commands.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/page/html/run_page.h"
#include "ostro/page/numbers/history.h"
#include "ostro/page/terminal/text_plot.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// The curves of all metrics that the words of `wanted` (loss,grad_norm) name.
Result<std::string> plot(io::FileSystem& fs, const std::string& path, const std::string& wanted,
                         const page::Terminal& terminal) {
  ASSIGN_OR_RETURN(const chain::Chain chain, chain::read_chain(fs, io::join_path(path, chain::kChainFile)));
  ASSIGN_OR_RETURN(
      const page::History history,
      page::read_history(fs, path, chain, 2 * static_cast<size_t>(std::max(terminal.columns, 40))));
  std::vector<page::Curve> curves;
  if (!history.metrics.empty())
    for (const std::string& part : comma_parts(wanted)) {
      ASSIGN_OR_RETURN(const std::vector<std::string> names, page::find_metrics(history, part));
      for (const std::string& name : names)
        curves.push_back({name, &history.metrics.at(name), name.starts_with("eval/")});
    }
  const bool all_in_chain = std::all_of(curves.begin(), curves.end(),
                                        [](const page::Curve& c) { return c.name == page::kTrainLoss; });
  return fmt::format("{} of {}, {} steps\n", wanted, path, chain.last_step()) +
         page::text_plot(curves, history.first_step, history.last_step, terminal) +
         (all_in_chain ? "" : "only train/loss is in the chain (others: metrics.jsonl)\n");
}

Status check_is_run(io::FileSystem& fs, const std::string& path) {
  ASSIGN_OR_RETURN(const bool is_run, fs.exists(io::join_path(path, chain::kChainFile)));
  if (is_run) return {};
  return audit::no_run(
      fs, path,
      not_found(fmt::format("{} is no run directory: it has no {}; --plot and --html show a run", path,
                            chain::kChainFile)));
}

}  // namespace

int inspect_command(Args args) {
  std::vector<std::string> paths;
  std::string metric, html;
  bool draw = false, ascii = false;
  audit::InspectOptions options;
  args.summary(
      "Shows what a run directory (record, chain, checkpoints) or a checkpoint (tree with shapes, axis "
      "names,\n"
      "counts and hashes) holds. Checks the chain, the manifests, and these against the chain; reads no "
      "arrays. Exit code 1: something is damaged, or is not what the chain says.");
  args.positional("PATH", &paths,
                  "run directory, or one checkpoint of it; with --html several runs, over each other");
  args.flag("--json", &options.json, "all of it, as one JSON object");
  args.flag("--unchecked", &options.unchecked,
            "show a checkpoint that is not what the chain of its run says");
  args.flag("--plot", &draw, "draw a run's loss, of training and held-out text, with characters");
  args.option("--metric", &metric, "NAME[,NAME]",
              "what --plot draws: names of metrics.jsonl, or their last part, as grad_norm or bits_per_byte "
              "(loss)");
  args.flag("--ascii", &ascii, "--plot uses no character beyond ASCII, as where the locale has no UTF-8");
  args.option("--html", &html, "FILE",
              "write a run's page: curves, samples, data, hashes and config in one file that a browser opens "
              "from disk; of several runs: their curves over each other, results and differences");
  if (const auto code = args.parse()) return *code;
  options.models = args.context().models;
  if (options.json && (draw || !html.empty()))
    return report_error(invalid_argument("--json: leave it out, or --plot and --html"));
  if (options.unchecked && (draw || !html.empty()))
    return report_error(
        invalid_argument("--unchecked is for one checkpoint; leave it out, or --plot and --html"));
  if (!draw && (ascii || !metric.empty()))
    return report_error(invalid_argument("--metric and --ascii say what --plot draws; add --plot"));

  if (paths.empty()) return report_error(invalid_argument("name a run directory, or one checkpoint of it"));
  if (paths.size() > 1 && (html.empty() || draw))
    return report_error(
        invalid_argument("several runs are shown by --html alone; name one, or leave out --plot"));

  io::FileSystem& fs = args.context().fs;
  const std::string& path = paths[0];
  std::string text;
  if (draw || !html.empty())
    for (const std::string& one : paths)
      if (const Status run = check_is_run(fs, one); !run.ok()) return report_error(run.error());
  if (!html.empty()) {
    const auto page = paths.size() == 1 ? page::run_page(fs, path, args.context().models)
                                        : page::comparison_page(fs, paths, args.context().models);
    if (!page.ok()) return report_error(page.error());
    if (const Status written = io::write_file_atomically(fs, html, *page); !written.ok())
      return report_error(written.error());
    text = paths.size() == 1 ? fmt::format("{}: the page of {}\n", html, path)
                             : fmt::format("{}: the page of {} runs\n", html, paths.size());
  }
  if (draw) {
    const auto drawn = plot(fs, path, metric.empty() ? "loss" : metric, stdout_terminal(ascii));
    if (!drawn.ok()) return report_error(drawn.error());
    text += *drawn;
  }
  bool sound = true;
  if (!draw && html.empty()) {
    auto seen = audit::inspect(fs, path, options);
    if (!seen.ok()) return report_error(seen.error());
    text = std::move(seen->text);
    sound = seen->sound;
  }
  const Status written = write_stdout(text);
  if (!written.ok()) return report_error(written.error());
  return sound ? kExitOk : kExitFailed;
}

}  // namespace ostro::cli
