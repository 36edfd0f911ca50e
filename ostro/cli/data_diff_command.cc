// ostro data diff A B
#include <fmt/core.h>

#include "ostro/cli/commands.h"
#include "ostro/cli/exit_code.h"
#include "ostro/cli/standard_streams.h"
#include "ostro/data/batch_diff.h"
#include "ostro/io/routing_file_system.h"
#include "ostro/tokenizer/files.h"
#include "ostro/train/config.h"

namespace ostro::cli {
namespace {

struct Side {
  train::TrainConfig config;
  std::shared_ptr<const data::DataSet> stores;
  data::Loader loader;
};

Result<Side> open_side(const std::string& path, const train::ModelChoices& models) {
  ASSIGN_OR_RETURN(train::TrainConfig config, train::load_train_config(path, {}, models));
  io::FileSystem& fs = io::default_file_system();
  ASSIGN_OR_RETURN(const tokenizer::Tokenizer tokenizer,
                   tokenizer::load_tokenizer(fs, config.data.tokenizer));
  ASSIGN_OR_RETURN(auto stores, data::DataSet::open(fs, config.data, tokenizer));
  ASSIGN_OR_RETURN(
      data::Loader loader,
      data::Loader::create(stores, config.data, config.model_options().seq_len(),
                           config.trainer.train_batch_size, static_cast<uint64_t>(config.trainer.seed)));
  return Side{std::move(config), std::move(stores), std::move(loader)};
}

Status run(const std::string& a, const std::string& b, int64_t steps, const train::ModelChoices& models) {
  ASSIGN_OR_RETURN(const Side x, open_side(a, models));
  ASSIGN_OR_RETURN(const Side y, open_side(b, models));
  ASSIGN_OR_RETURN(const std::string text, data::diff_text({x.config.data, *x.stores, x.loader},
                                                           {y.config.data, *y.stores, y.loader}, steps));
  return write_stdout(text);
}

}  // namespace

int data_diff_command(Args args) {
  std::string a, b;
  int64_t steps = 20;
  args.summary(
      "Compares what two configurations train on: components, shares and order, the first step that "
      "differs,\n"
      "and how many sequences of the first steps they share. The stores must be built.");
  args.positional("A", &a, "configuration file");
  args.positional("B", &b, "configuration file");
  args.option("--steps", &steps, "N", "how many steps to compare");
  if (const auto code = args.parse()) return *code;
  if (steps < 1) return report_error(invalid_argument(fmt::format("--steps {}: use 1 or more", steps)));
  const Status done = run(a, b, steps, args.models());
  return done.ok() ? kExitOk : report_error(done.error());
}

}  // namespace ostro::cli
