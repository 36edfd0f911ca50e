// ostro check
#include <fmt/core.h>

#include "ostro/base/object_cache.h"
#include "ostro/cli/main/commands.h"
#include "ostro/grok/release/check.h"
#include "ostro/shell/shared/terminal.h"

namespace ostro::cli {
namespace {

// An error that names the first file that is not whole; success if there is none.
Status all_whole(const grok::ReleaseReport& report) {
  const auto whole = report.count(grok::FileState::kWhole);
  const auto files = static_cast<int64_t>(report.files.size());
  if (whole == files && !report.others.empty())
    return corrupt(
        fmt::format("{}: {} further tensor files, for which {} has no place; the first: {}. Is "
                    "num_hidden_layers of config.json right?",
                    report.directory, report.others.size(), shape_title(report.shape), report.others[0]));
  if (whole == files) return {};
  for (size_t i = 0; i < report.files.size(); ++i) {
    const grok::FileReport& file = report.files[i];
    if (file.state == grok::FileState::kWhole) continue;
    const std::string what = file.state == grok::FileState::kMissing
                                 ? fmt::format("{} is missing", report.leaves[i].file)
                                 : file.error;
    return corrupt(fmt::format("{}: {} of {} files are not whole; the first: {}", report.directory,
                               files - whole, files, what));
  }
  return {};
}

Status check(const Context& context, const std::string& directory, grok::CheckOptions options, bool all,
             bool json) {
  if (options.contents) {
    options.memory = default_cache_dir().string();
    options.progress = [&context](int64_t done, int64_t total) {
      context.progress.show("reading", static_cast<double>(done) / static_cast<double>(total));
    };
  }
  const auto report = grok::check_release(context.fs, directory, options);
  if (options.contents) context.progress.end();
  if (!report.ok()) return report.error();
  RETURN_IF_ERROR(write_stdout(json ? grok::check_json(*report) : grok::check_text(*report, all)));
  return all_whole(*report);
}

int check_grok(Args args) {
  std::string directory;
  grok::CheckOptions options;
  bool all = false, json = false;
  args.summary(
      "Says which files of a checkpoint in the layout of Grok-1's release are whole, missing, short or "
      "wrong. Of\n"
      "each file the pickle around the elements is read, a few hundred bytes; nothing in it is executed. So "
      "a\n"
      "directory that a download still fills can be checked as often as wanted. Exit code 0: all are whole; "
      "1:\n"
      "some are not, or there are files that the configuration has no place for.");
  args.positional("DIR", &directory, "the directory of tensor00000_000, or the one that has it as ckpt-0");
  args.option("--config", &options.config, "FILE",
              "config.json of another shape than Grok-1's; without it, DIR/config.json if there is one");
  args.flag(
      "--contents", &options.contents,
      "also read the elements: holes of downloads, numbers that are not finite; files that have not changed "
      "since are not read again (remembered in Ostro's cache folder, OSTRO_CACHE_DIR)");
  args.flag("--all", &all, "list all files, with names, dtypes and shapes");
  args.flag("--json", &json, "print JSON, with all files");
  if (const auto code = args.parse()) return *code;
  return exit_after(check(args.context(), directory, std::move(options), all, json));
}

}  // namespace

int check_command(Args args) {
  static constexpr Command kVerbs[] = {
      {"cluster", "whether a run can be started on some machines", check_cluster_command},
      {"grok", "which files of a Grok-1 checkpoint are whole", check_grok},
  };
  return run_verb(std::move(args), kVerbs);
}

}  // namespace ostro::cli
