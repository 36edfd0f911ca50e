// ostro config import, ostro config check
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "ostro/cli/main/commands.h"
#include "ostro/init/import_config.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

using config::Mistakes;

std::string comment_list(const char* title, const std::vector<std::string>& lines) {
  if (lines.empty()) return "";
  std::string out = fmt::format("# {}:\n", title);
  for (const std::string& line : lines) {
    out += "#   ";
    for (const char c : line) out += c == '\n' ? ' ' : c;
    out += "\n";
  }
  return out;
}

Result<init::Imported> read_foreign(const std::string& file, const std::string& from) {
  ASSIGN_OR_RETURN(const config::Node tree, config::read_yaml_file(file));
  if (tree.kind != config::Node::Kind::kMap)
    return invalid_argument(fmt::format("{}: holds no keys and values", file));
  const bool arguments = from.empty() ? init::is_training_arguments(tree) : from == "training_arguments";
  if (!from.empty() && !arguments && from != "levanter")
    return invalid_argument(fmt::format("--from {}: use levanter or training_arguments", from));
  return arguments ? init::import_training_arguments(tree) : init::import_levanter(tree);
}

// The errors of what cannot be taken over; none if it is to be left out.
Status check_lacks(init::Imported& imported, const Args& args, bool leave_out) {
  for (const config::Override& override : args.overrides())
    if (override.path == "trainer.num_train_steps")
      std::erase_if(imported.missing, [](const std::string& m) { return m.starts_with("num_train_epochs"); });
  Mistakes mistakes;
  for (const std::string& text : imported.missing)
    if (!leave_out) mistakes.add(unsupported(text));
  if (!mistakes.empty())
    mistakes.add(invalid_argument(
        fmt::format("{} of these change what is trained and have no counterpart here; --leave_out writes the "
                    "configuration without them",
                    imported.missing.size())));
  return mistakes.status();
}

int config_import(Args args) {
  std::string file, from, out;
  bool leave_out = false;
  args.summary(
      "Turns a configuration of Levanter (YAML) or transformers.TrainingArguments (JSON) into one of Ostro, "
      "with a "
      "list of what was converted and what has no counterpart. --a.b.c VALUE sets keys of the result.");
  args.positional("FILE", &file, "the configuration to read");
  args.option("--from", &from, "FORMAT", "levanter or training_arguments; without it the keys decide");
  args.option("--out", &out, "FILE", "where to write; must not exist (without it: standard output)");
  args.flag("--leave_out", &leave_out,
            "leave out what changes the training and has no counterpart, and list it");
  args.config_overrides();
  if (const auto code = args.parse()) return *code;
  auto imported = read_foreign(file, from);
  if (!imported.ok()) return report_error(imported.error());
  if (const Status known = check_lacks(*imported, args, leave_out); !known.ok())
    return report_error(known.error());
  Mistakes mistakes;
  for (const config::Override& override : args.overrides())
    mistakes.add(config::apply_override(override, &imported->tree));
  train::TrainConfig config(args.context().models);
  mistakes.add(config::read_value(imported->tree, "", &config));
  if (!mistakes.empty()) return report_error(mistakes.status().error());
  std::vector<std::string> to_do;
  if (const Status complete = config.resolve(); !complete.ok())
    to_do = config::split_errors(complete.error().message());
  const std::string text = fmt::format("# From {}.\n", file) +
                           comment_list("converted", imported->converted) +
                           comment_list("left out, it changes no number here", imported->left_out) +
                           comment_list("left out, it has no counterpart", imported->missing) +
                           comment_list("to do", to_do) + config::block_text(imported->tree);
  if (out.empty()) {
    std::fputs(text.c_str(), stdout);
  } else {
    io::FileSystem& fs = args.context().fs;
    const auto exists = fs.exists(out);
    if (!exists.ok()) return report_error(exists.error());
    if (*exists)
      return report_error(
          invalid_argument(fmt::format("--out {}: is there already; name another file", out)));
    if (const Status written = io::write_file_atomically(fs, out, text); !written.ok())
      return report_error(written.error());
  }
  for (const std::string& line : imported->missing) fmt::print(stderr, "no counterpart: {}\n", line);
  for (const std::string& line : imported->left_out) fmt::print(stderr, "left out: {}\n", line);
  for (const std::string& line : to_do) fmt::print(stderr, "to do: {}\n", line);
  return kExitOk;
}

int config_check(Args args) {
  args.summary("Reads a configuration and names every mistake in it; no data are read.");
  args.config();
  if (const auto code = args.parse()) return *code;
  const auto config = args.load_config();
  if (!config.ok()) return report_error(config.error());
  std::puts("the configuration makes sense");
  return kExitOk;
}

constexpr Command kVerbs[] = {
    {"import", "make a configuration of one of Levanter or of TrainingArguments", config_import},
    {"check", "name every mistake of a configuration", config_check},
};

}  // namespace

int config_command(Args args) { return run_verb(std::move(args), kVerbs); }

}  // namespace ostro::cli
