// ostro data diff A B
#include <fmt/core.h>

#include "ostro/cli/main/commands.h"
#include "ostro/corpus_check/batch_diff.h"
#include "ostro/corpus_check/document_diff.h"
#include "ostro/prepare/tokenizer/trained_tokenizer.h"
#include "ostro/run/loop/batch_causes.h"
#include "ostro/shell/shared/terminal.h"
#include "ostro/shell/words/exit_code.h"
#include "ostro/train/options/config.h"
#include "ostro/train/step/batches.h"

namespace ostro::cli {
namespace {

struct Side {
  train::TrainConfig config;
  std::string tokenizer;  // SHA-256
  std::shared_ptr<const batches::DataSet> stores;
  batches::Loader loader;
};

Result<Side> open_side(const std::string& path, const Args& args) {
  ASSIGN_OR_RETURN(train::TrainConfig config,
                   train::load_train_config(path, args.overrides(), args.context().models));
  io::FileSystem& fs = args.context().fs;
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer, prepare::open_tokenizer(fs, config.data));
  ASSIGN_OR_RETURN(auto stores, batches::DataSet::open(fs, config.data, tokenizer));
  ASSIGN_OR_RETURN(batches::Loader loader, train::make_loader(config, stores));
  return Side{std::move(config), tokenizer.hash(), std::move(stores), std::move(loader)};
}

// The last line of run::batch_causes, of options that change no batch: it is no difference of the data.
constexpr std::string_view kOthersLine = "other options that differ, without a part in the batches: ";

// The report, and whether the two differ.
Result<std::pair<std::string, bool>> compare_sides(const std::string& a, const std::string& b, int64_t steps,
                                                   int64_t list, const Args& args) {
  ASSIGN_OR_RETURN(const Side x, open_side(a, args));
  ASSIGN_OR_RETURN(const Side y, open_side(b, args));
  std::string out;
  if (x.tokenizer != y.tokenizer)
    out +=
        fmt::format("data.tokenizer: other content: {} ({:.12}) in A, {} ({:.12}) in B\n",
                    x.config.data.tokenizer_path(), x.tokenizer, y.config.data.tokenizer_path(), y.tokenizer);
  const std::string causes = run::batch_causes(x.config, y.config);
  const bool same_data = out.empty() && (causes.empty() || causes.starts_with(kOthersLine));
  out += causes;
  ASSIGN_OR_RETURN(const corpus_check::BatchDiff batches,
                   corpus_check::diff_batches({*x.stores, x.loader}, {*y.stores, y.loader}, steps));
  ASSIGN_OR_RETURN(const std::string documents, corpus_check::document_diff_text(*x.stores, *y.stores, list));
  return std::pair{out + batches.text + documents, !same_data || !batches.equal};
}

}  // namespace

int data_diff_command(Args args) {
  std::string a, b;
  int64_t steps = 20, list = 100;
  args.summary(
      "Compares what two configurations train on: every option that batches depend on, components, the first "
      "step that differs,\n"
      "and how many sequences of the first steps they share; and names the documents that only one side has, "
      "or that changed.\n"
      "The stores must be built. Overrides hold for both. Exit code 0: nothing differs, 1: an option, a "
      "component or a step does,\n"
      "2: they cannot be compared.");
  args.positional("A", &a, "configuration file");
  args.positional("B", &b, "configuration file");
  args.option("--steps", &steps, "N", "how many steps to compare");
  args.option("--list", &list, "N", "how many documents to name for each component (100)");
  args.config_overrides();
  if (const auto code = args.parse()) return *code;
  if (steps < 1) return report_error(invalid_argument(fmt::format("--steps {}: use 1 or more", steps)));
  if (list < 0) return report_error(invalid_argument(fmt::format("--list {}: use 0 or more", list)));
  const auto compared = compare_sides(a, b, steps, list, args);
  if (!compared.ok()) {
    report_error(compared.error());
    return kExitUsage;
  }
  const Status written = write_stdout(compared->first);
  if (!written.ok()) return report_error(written.error());
  return compared->second ? kExitFailed : kExitOk;
}

}  // namespace ostro::cli
