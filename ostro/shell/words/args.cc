#include "ostro/shell/words/args.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

#include "ostro/base/one_line.h"
#include "ostro/base/watch/said.h"
#include "ostro/config/mistakes.h"
#include "ostro/runtime/device_name.h"
#include "ostro/shell/words/config_help.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// "--a.b" or "--a.b=x": a name with a dot.
bool is_override(const std::string& word) {
  if (word.rfind("--", 0) != 0) return false;
  const size_t dot = word.find('.');
  return dot != std::string::npos && dot < word.find('=');
}

// "a.b=x", without dashes: a dotted name of small letters before "=".
bool is_bare_override(const std::string& word) {
  const size_t equals = word.find('=');
  const std::string path = word.substr(0, equals);
  return equals != std::string::npos && path.find('.') != std::string::npos && std::isalpha(path[0]) != 0 &&
         path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == std::string::npos;
}

bool is_config_file(const std::string& word) {
  return word.ends_with(".yaml") || word.ends_with(".yml") || word.ends_with(".json");
}

// "1e3" and "1_000" as 1000; other texts stay as they are.
std::string plain_integer(const std::string& text) {
  config::Node node = config::plain_scalar(text, "");
  int64_t value = 0;
  return config::read_value(node, "", &value).ok() ? std::to_string(value) : text;
}

}  // namespace

struct Args::State {
  State(std::string name, std::vector<std::string> rest, const Context& given)
      : command(std::move(name)), words(std::move(rest)), typed(words), context(given), app("", command) {
    app.get_formatter()->column_width(34);
    app.set_help_flag("-h,--help", "print this and exit");
  }

  // Moves the overrides out of `words`; an override takes the following word whatever it looks like.
  Status take_overrides() {
    std::vector<std::string> rest;
    for (size_t i = 0; i < words.size(); ++i) {
      if (!is_override(words[i])) {
        rest.push_back(words[i]);
        continue;
      }
      const size_t equals = words[i].find('=');
      const std::string path = words[i].substr(2, equals == std::string::npos ? equals : equals - 2);
      if (equals != std::string::npos) {
        overrides.push_back({path, words[i].substr(equals + 1)});
      } else if (++i < words.size()) {
        overrides.push_back({path, words[i]});
      } else {
        return invalid_argument(fmt::format("--{} needs a value", path));
      }
    }
    words = std::move(rest);
    return {};
  }

  // Takes bare words out of `words` that are meant as the configuration's file or as an override; for
  // commands without positional words. A word that an option takes is none of these.
  Status take_bare_words() {
    if (declared.has_positional) return {};
    std::vector<std::string> rest;
    bool is_taken = false, all_taken = false;
    // `typed` gets what was meant, so that a launcher's workers get it, too.
    const auto mean = [this](const std::string& word, std::vector<std::string> meant) {
      const auto at = std::find(typed.begin(), typed.end(), word);
      if (at != typed.end()) typed.insert(typed.erase(at), meant.begin(), meant.end());
    };
    for (const std::string& word : words) {
      if (word.starts_with("-")) {
        const std::string name = word.substr(0, word.find('='));
        const auto option = std::find_if(declared.options.begin(), declared.options.end(),
                                         [&](const CommandWords::Option& o) { return o.name == name; });
        const bool takes = option != declared.options.end() && !option->value.empty() && name == word;
        all_taken = takes && option->is_list;
        is_taken = takes && !all_taken;
      } else if (!is_taken && !all_taken && takes_overrides && is_bare_override(word)) {
        overrides.push_back({word.substr(0, word.find('=')), word.substr(word.find('=') + 1)});
        mean(word, {"--" + word});
        continue;
      } else if (!is_taken && !all_taken && takes_config && config_file.empty() && is_config_file(word)) {
        rest.emplace_back("--config");
        config_file = word;
        mean(word, {"--config", word});
      } else if (!is_taken && !all_taken && takes_config && word.ends_with(".py")) {
        return invalid_argument(fmt::format(
            "unexpected word \"{}\": a configuration is a YAML file (--config FILE), no Python; ostro "
            "init and ostro config import write one",
            word));
      } else {
        is_taken = false;
      }
      rest.push_back(word);
    }
    words = std::move(rest);
    return {};
  }

  // --help KEY and --help-all, which only commands with a configuration have.
  std::optional<int> key_help() {
    for (size_t i = 0; i < words.size() && takes_overrides; ++i) {
      const bool all = words[i] == "--help-all" || words[i] == "--help_all";
      const bool key = (words[i] == "--help" || words[i] == "-h") && i + 1 < words.size() &&
                       (!words[i + 1].starts_with("-") || is_override(words[i + 1]));
      if (!all && !key) continue;
      const std::string text = keys_help(all ? "" : words[i + 1], context.models);
      if (text.empty())
        return report_error(invalid_argument(fmt::format(
            "--help {}: no key has this name; {} --help-all lists all keys", words[i + 1], command)));
      std::fputs(text.c_str(), stdout);
      return kExitOk;
    }
    return std::nullopt;
  }

  // A list's word "[a,b]" would be taken apart by the library. A NUL behind it, which no word has, keeps it
  // whole, until show_brackets().
  void hide_brackets() {
    bool in_list = false;
    for (std::string& word : words) {
      if (word.starts_with("--")) in_list = lists.contains(word.substr(0, word.find('=')));
      if (in_list && word.ends_with(']')) word += '\0';
    }
  }
  void show_brackets() {
    for (const auto& [name, list] : lists)
      for (std::string& word : *list)
        if (word.ends_with('\0')) word.pop_back();
  }

  // How this command is told to use a GPU; where it uses none, which commands do.
  std::string gpu_hint() {
    if (app.get_option_no_throw("--device") == nullptr)
      return "; a GPU is chosen with --device cuda:N of train, sample, eval, grad, score, selftest and "
             "verify";
    if (takes_overrides) return "; a GPU is chosen with --trainer.device cuda:N";
    return "; a GPU is chosen with --device cuda:N";
  }

  // The error for a word that no option takes.
  Error unknown_word() {
    for (const std::string& word : app.remaining()) {
      if (word.rfind('-', 0) != 0) continue;
      std::vector<std::string> names;
      for (const CLI::Option* option : app.get_options()) names.push_back(option->get_name());
      const std::string nearest = config::nearest_name(word, names);
      std::string hint;
      if (config::edit_distance(word, nearest) > 2 && takes_overrides)
        hint = key_for_option(word, context.models);
      for (const char* gpu : {"--device", "--gpus", "--gpu", "--cuda", "--num_gpus"})
        if (word.substr(0, word.find('=')) == gpu) hint = gpu_hint();
      if (hint.empty()) hint = fmt::format("; the nearest is \"{}\"", nearest);
      return invalid_argument(fmt::format("unknown option \"{}\"{} (see {} --help)", word, hint, command));
    }
    return invalid_argument(
        fmt::format("unexpected word \"{}\" (see {} --help)", app.remaining().front(), command));
  }

  std::string command;
  std::vector<std::string> words;
  std::vector<std::string> typed;
  const Context& context;
  CLI::App app;
  bool takes_config = false, takes_overrides = false;
  std::string config_file;
  std::vector<config::Override> overrides;
  std::map<std::string, std::vector<std::string>*> lists;  // options that take several words
  std::optional<std::string> device;                       // of --device
  std::optional<Context> on_device;  // `context`, with engines on the device that was chosen
  CommandWords declared;
  CommandWords* described = nullptr;
};

Args::Args(std::string command, std::vector<std::string> words, const Context& context)
    : state_(std::make_unique<State>(std::move(command), std::move(words), context)) {}
Args::Args(Args&&) noexcept = default;
Args::~Args() = default;

void Args::summary(const std::string& text) { state_->app.description(text); }

void Args::flag(const std::string& name, bool* out, const std::string& help) {
  state_->declared.options.push_back({name, ""});
  state_->app.add_flag(name, *out, help);
}

void Args::option(const std::string& name, std::string* out, const std::string& value,
                  const std::string& help, bool required) {
  state_->declared.options.push_back({name, value});
  state_->app.add_option(name, *out, help)->type_name(value)->required(required);
}
void Args::option(const std::string& name, int64_t* out, const std::string& value, const std::string& help,
                  bool required) {
  state_->declared.options.push_back({name, value});
  CLI::Option* option = state_->app.add_option(name, *out, help)->type_name(value)->required(required);
  option->transform(std::function<std::string(std::string)>(plain_integer));
  if (!required) option->capture_default_str();
}
void Args::option(const std::string& name, double* out, const std::string& value, const std::string& help,
                  bool required) {
  state_->declared.options.push_back({name, value});
  CLI::Option* option = state_->app.add_option(name, *out, help)->type_name(value)->required(required);
  if (!required) option->capture_default_str();
}
void Args::option(const std::string& name, std::optional<int64_t>* out, const std::string& value,
                  const std::string& help) {
  state_->declared.options.push_back({name, value});
  state_->app.add_option(name, *out, help)
      ->type_name(value)
      ->transform(std::function<std::string(std::string)>(plain_integer));
}
void Args::option(const std::string& name, std::optional<std::string>* out, const std::string& value,
                  const std::string& help) {
  state_->declared.options.push_back({name, value});
  state_->app.add_option(name, *out, help)->type_name(value);
}
void Args::option(const std::string& name, std::vector<std::string>* out, const std::string& value,
                  const std::string& help, bool required) {
  state_->declared.options.push_back({name, value, true});
  state_->app.add_option(name, *out, help)->type_name(value)->required(required);
  state_->lists[name] = out;
}
void Args::positional(const std::string& name, std::string* out, const std::string& help) {
  state_->declared.has_positional = true;
  state_->app.add_option(name, *out, help)->type_name("")->required();
}
void Args::positional(const std::string& name, std::vector<std::string>* out, const std::string& help) {
  state_->declared.has_positional = true;
  state_->app.add_option(name, *out, help)->type_name("");
}

void Args::positional(const std::string& name, std::optional<std::string>* out, const std::string& help) {
  state_->declared.has_positional = true;
  state_->app.add_option(name, *out, help)->type_name("");
}

void Args::device() { option("--device", &state_->device, "NAME", runtime::kDeviceHelp); }

void Args::config_overrides() { state_->takes_overrides = true; }

void Args::config(bool required) {
  state_->takes_config = true;
  config_overrides();
  option("--config", &state_->config_file, "FILE", "configuration (YAML)", required);
}

std::optional<int> Args::parse() {
  State& s = *state_;
  if (s.described != nullptr) {
    s.declared.name = s.command;
    s.declared.takes_overrides = s.takes_overrides;
    *s.described = s.declared;
    return kExitOk;
  }
  if (const auto done = s.key_help()) return *done;
  if (s.takes_overrides) {
    if (const Status status = s.take_overrides(); !status.ok()) return report_error(status.error());
  }
  if (const Status taken = s.take_bare_words(); !taken.ok()) return report_error(taken.error());
  s.hide_brackets();
  try {
    s.app.parse(
        std::vector<std::string>(s.words.rbegin(), s.words.rend()));  // the library pops from the back
    s.show_brackets();
  } catch (const CLI::CallForHelp&) {
    std::fputs(s.app.help().c_str(), stdout);
    if (s.takes_overrides) {
      const std::string text = short_keys_help(s.command, s.context.models);
      std::printf("\n--a.b.c VALUE overrides a key of the configuration. Those that are sought first:\n%s",
                  text.c_str());
    }
    return kExitOk;
  } catch (const CLI::ExtrasError&) {
    return report_error(s.unknown_word());
  } catch (const CLI::ParseError& e) {
    return report_error(invalid_argument(fmt::format("{} (see {} --help)", e.what(), s.command)));
  }
  if (s.device) {
    if (const auto name = runtime::parse_device("--device", *s.device); !name.ok())
      return report_error(name.error());
    s.on_device.emplace(s.context.on(*s.device));
  }
  return std::nullopt;
}

void resolve_hub_name(std::optional<std::string>& path, io::HubFiles files, const char* key) {
  if (!path) return;
  if (auto found = io::local_or_hub(*path, files, key); found.ok()) path = std::move(*found);
}

Result<train::TrainConfig> read_config(const std::string& file,
                                       const std::vector<config::Override>& overrides,
                                       const std::optional<std::string>& device,
                                       const models::ModelChoices& models) {
  ASSIGN_OR_RETURN(train::TrainConfig config, train::load_train_config(file, overrides, models));
  if (device) config.trainer.device = *device;
  resolve_hub_name(config.data.tokenizer, io::HubFiles::kTokenizer, "data.tokenizer");
  resolve_hub_name(config.trainer.initialize_from, io::HubFiles::kModel, "trainer.initialize_from");
  return config;
}

Result<train::TrainConfig> Args::load_config() const {
  OSTRO_CHECK(state_->takes_config, "load_config() of a command that takes no configuration");
  ASSIGN_OR_RETURN(train::TrainConfig config, read_config(state_->config_file, state_->overrides,
                                                          state_->device, state_->context.models));
  state_->on_device.emplace(state_->context.on(config.trainer.device));
  return config;
}

bool Args::has_config() const { return !state_->config_file.empty(); }

const std::vector<config::Override>& Args::overrides() const { return state_->overrides; }

const Context& Args::context() const { return state_->on_device ? *state_->on_device : state_->context; }

const std::vector<std::string>& Args::typed() const { return state_->typed; }

const std::string& Args::command() const { return state_->command; }

std::string Args::take_word() {
  State& s = *state_;
  if (s.words.empty() || s.words.front().rfind('-', 0) == 0) return "";
  std::string word = std::move(s.words.front());
  s.words.erase(s.words.begin());
  s.command += " " + word;
  s.app.name(s.command);
  return word;
}

bool Args::asks_for_help() const {
  return std::any_of(state_->words.begin(), state_->words.end(),
                     [](const std::string& word) { return word == "-h" || word == "--help"; });
}

Args Args::describing(std::string command, const Context& context, CommandWords* out) {
  Args args(std::move(command), {}, context);
  args.state_->described = out;
  return args;
}

CommandWords* Args::described() const { return state_->described; }

int report_error(const Error& error) {
  std::fflush(stdout);
  for (const std::string& line : config::split_errors(error.message())) {
    const std::string text = fmt::format("error: {}\n", one_line(line));  // names of strangers are in it, too
    std::fputs(text.c_str(), stderr);
    add_said(text);
  }
  return error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported ? kExitUsage
                                                                                                : kExitFailed;
}

int exit_after(const Status& done) { return done.ok() ? kExitOk : report_error(done.error()); }

}  // namespace ostro::cli
