#include "ostro/shell/words/args.h"

#include <doctest/doctest.h>

#include "ostro/io/files/memory_file_system.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

const std::string kConfig = OSTRO_SOURCE_DIR "/bench/dense.yaml";

// Of a program that parses words and does nothing.
const Context& context() {
  static io::MemoryFileSystem fs;
  static NoProgress progress;
  static const Context made{.fs = fs,
                            .models = models::builtin_models(),
                            .engine = {},
                            .engine_for_a_moment = {},
                            .progress = progress};
  return made;
}

TEST_CASE("a command with a configuration takes its own words, the file, and overrides anywhere") {
  Args args("ostro train",
            {"--optimizer.learning_rate", "1e-3", "--dry_run", "--config", kConfig, "--trainer.id=a=b.c",
             "--step", "-4", "--trainer.tracker", "[{type: json}]", "--trainer.log_dir", "--odd"},
            context());
  bool dry_run = false;
  int64_t step = 0;
  std::optional<int64_t> limit;
  args.flag("--dry_run", &dry_run, "");
  args.option("--step", &step, "N", "");
  args.option("--limit", &limit, "N", "");
  args.config();
  REQUIRE(!args.parse());
  CHECK(dry_run);
  CHECK(step == -4);
  CHECK(!limit);
  const Result<train::TrainConfig> config = args.load_config();
  REQUIRE_MESSAGE(config.ok(), config.error().message());
  CHECK(std::get<optim::AdamOptions>(config->optimizer).learning_rate == 1e-3);
  CHECK(config->trainer.id == "a=b.c");
  CHECK(config->trainer.log_dir == "--odd");
  CHECK(config->trainer.tracker.size() == 1);
}

TEST_CASE("a command that is to describe itself tells what it declares, and does not run") {
  CommandWords words;
  Args args = Args::describing("tokenizer train", context(), &words);
  std::vector<std::string> places, inputs;
  std::string out;
  bool force = false;
  args.positional("PLACE", &places, "");
  args.option("--input", &inputs, "GLOB", "");
  args.option("--out", &out, "FILE", "", Args::kRequired);
  args.flag("--force", &force, "");
  args.config();
  CHECK(args.parse() == kExitOk);
  CHECK(words.name == "tokenizer train");
  CHECK(words.has_positional);
  CHECK(words.takes_overrides);
  std::string all;
  for (const CommandWords::Option& o : words.options)
    all += o.name + " " + o.value + (o.is_list ? "... " : " ");
  CHECK(all == "--input GLOB... --out FILE --force  --config FILE ");
}

TEST_CASE("options hold numbers, lists and words that begin with a bracket") {
  Args args("ostro x",
            {"--files", "a", "[b]", "[[c,d]]", "--files=[e]", "--prompt", "[1, 2] \"x\"", "--rate", "0.5",
             "--limit", "3", "RUN"},
            context());
  std::vector<std::string> files;
  std::string prompt, run;
  double rate = 0;
  std::optional<int64_t> limit;
  args.option("--files", &files, "F", "");
  args.option("--prompt", &prompt, "S", "");
  args.option("--rate", &rate, "R", "");
  args.option("--limit", &limit, "N", "");
  args.positional("RUN", &run, "");
  REQUIRE(!args.parse());
  CHECK(files == std::vector<std::string>{"a", "[b]", "[[c,d]]", "[e]"});
  CHECK(prompt == "[1, 2] \"x\"");
  CHECK(rate == 0.5);
  CHECK(limit == 3);
  CHECK(run == "RUN");
}

TEST_CASE("an override without a value, or for a command without a configuration, is a usage error") {
  Args last("ostro train", {"--config", kConfig, "--trainer.id"}, context());
  last.config();
  CHECK(last.parse() == kExitUsage);
  Args none("ostro hash", {"--trainer.id", "x"}, context());
  CHECK(none.parse() == kExitUsage);
}

}  // namespace
}  // namespace ostro::cli
