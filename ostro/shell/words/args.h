// Args: the words after a command's name: flags, options, positional words and dotted overrides of the
// configuration. Only args.cc uses the command line library.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ostro/config/yaml.h"
#include "ostro/context/context.h"
#include "ostro/io/hub/hub_names.h"
#include "ostro/train/options/config.h"

namespace ostro::cli {

// The words that a command takes, as it declares them; completion is made from this.
struct CommandWords {
  struct Option {
    std::string name, value;  // "--out", "FILE"; a flag has no value
    bool is_list = false;     // takes every word up to the next option
  };
  std::string name;  // what is typed behind the program's name: "tokenizer train"
  std::vector<Option> options;
  bool has_positional = false, takes_overrides = false;
  std::vector<CommandWords> verbs;
};

// A command declares what it takes, then parses:
//
//   std::string out;
//   args.option("--out", &out, "FILE", "where to write", Args::kRequired);
//   if (auto code = args.parse()) return *code;
//
// The fields must outlive parse(). Not thread-safe; used once.
class Args {
 public:
  static constexpr bool kRequired = true;

  // `command` is what the user typed ("ostro tokenizer train"); `context` must outlive the arguments.
  Args(std::string command, std::vector<std::string> words, const Context& context);
  Args(Args&&) noexcept;
  ~Args();

  // One sentence above the list of options in --help.
  void summary(const std::string& text);
  void flag(const std::string& name, bool* out, const std::string& help);
  void option(const std::string& name, std::string* out, const std::string& value, const std::string& help,
              bool required = false);
  void option(const std::string& name, int64_t* out, const std::string& value, const std::string& help,
              bool required = false);
  void option(const std::string& name, double* out, const std::string& value, const std::string& help,
              bool required = false);
  void option(const std::string& name, std::optional<int64_t>* out, const std::string& value,
              const std::string& help);
  void option(const std::string& name, std::optional<std::string>* out, const std::string& value,
              const std::string& help);
  // Takes every word up to the next option, and may be repeated; so do the words of a list of positionals.
  void option(const std::string& name, std::vector<std::string>* out, const std::string& value,
              const std::string& help, bool required = false);
  void positional(const std::string& name, std::string* out, const std::string& help);
  void positional(const std::string& name, std::vector<std::string>* out, const std::string& help);
  // A word that may be left out.
  void positional(const std::string& name, std::optional<std::string>* out, const std::string& help);

  // --config FILE and --a.b.c VALUE: the configuration, whose options --help lists. Where the command has no
  // positional words, FILE may stand without --config, and a.b.c=VALUE without dashes.
  void config(bool required = kRequired);
  // --device NAME: the device on which the engines of context() run. For a command with a configuration it is
  // the same as --trainer.device, and load_config() sets the device of context() from that.
  void device();
  // --a.b.c VALUE alone, for a command that names its configurations in another way: see overrides().
  void config_overrides();

  // Reads the words. Returns nothing when the command may go on; otherwise its exit code, after help or an
  // error was printed.
  std::optional<int> parse();

  // After parse(): the configuration, read and resolved. Errors: those of reading and of resolving it.
  Result<train::TrainConfig> load_config() const;
  // After parse(): true when a configuration was named.
  bool has_config() const;

  // After parse(): the words that name overrides.
  const std::vector<config::Override>& overrides() const;

  const std::string& command() const;
  // The context that a command passes on. Its engines are on the device of --device or, after load_config(),
  // on that of the configuration.
  const Context& context() const;
  // Everything the user typed behind the command's name.
  const std::vector<std::string>& typed() const;

  // For a command with verbs: removes and returns the first word ("train" of `ostro tokenizer train`); empty
  // when the first word is an option or there is none.
  std::string take_word();
  bool asks_for_help() const;

  // Makes arguments with which a command describes itself instead of running: parse() writes the words that
  // it takes to `out`, which must outlive the arguments, and returns the exit code 0.
  static Args describing(std::string command, const Context& context, CommandWords* out);
  // The `out` of describing(); null for a command that runs.
  CommandWords* described() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Replaces a name of the hub by the folder that has its files. A path that cannot be found is left as it is,
// because not every command reads it; the code that does reports the error.
void resolve_hub_name(std::optional<std::string>& path, io::HubFiles files, const char* key);

// A user's configuration, resolved: the file, the overrides, and `device` in place of trainer.device.
Result<train::TrainConfig> read_config(const std::string& file,
                                       const std::vector<config::Override>& overrides,
                                       const std::optional<std::string>& device,
                                       const models::ModelChoices& models);

// Prints "error: message" to standard error: one line, or one for each error that the message holds
// (config/mistakes.h). Returns kExitUsage for invalid arguments and unsupported options, kExitFailed for
// everything else.
int report_error(const Error& error);
// kExitOk when all went well; else reports the error, and returns its code.
int exit_after(const Status& done);

}  // namespace ostro::cli
