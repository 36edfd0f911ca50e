// ostro completion bash
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ostro/cli/main/commands.h"
#include "ostro/config/options.h"
#include "ostro/shell/words/args.h"
#include "ostro/shell/words/exit_code.h"

namespace ostro::cli {
namespace {

// Values that are files or folders.
bool is_file(const std::string& value) {
  static const std::set<std::string> kFiles = {"FILE", "FILES", "FOLDER...", "DIR", "GLOB", "K", "T"};
  return kFiles.contains(value);
}

// The words of a type like "silu | gelu"; none where any text may stand.
std::vector<std::string> choices(const std::string& type) {
  if (type == "true or false") return {"true", "false"};
  std::vector<std::string> out;
  for (size_t begin = 0; begin <= type.size();) {
    const size_t end = std::min(type.find(" | ", begin), type.size());
    out.push_back(type.substr(begin, end - begin));
    begin = end + 3;
  }
  const bool are_words = std::all_of(out.begin(), out.end(), [](const std::string& word) {
    return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
  });
  return are_words && out.size() > 1 ? out : std::vector<std::string>();
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

// One arm of a `case`; none where there are no words.
std::string arm(const std::string& pattern, const std::vector<std::string>& words) {
  return words.empty() ? "" : fmt::format("    '{}') words='{}' ;;\n", pattern, joined(words));
}

// A function of the script that prints the words for what it is asked.
std::string function(const std::string& name, const std::string& arms) {
  return fmt::format("{}() {{\n  local words=\n  case \"$1\" in\n{}  esac\n  printf '%s' \"$words\"\n}}\n",
                     name, arms.empty() ? "    *) ;;\n" : arms);
}

std::vector<std::string> names_of(const std::vector<CommandWords>& commands) {
  std::vector<std::string> out;
  for (const CommandWords& c : commands) out.push_back(c.name.substr(c.name.rfind(' ') + 1));
  return out;
}

// What the functions of the script know of all commands.
struct Arms {
  std::string verbs, options, values, keys, positionals;

  void add(const CommandWords& c) {
    verbs += arm(c.name, names_of(c.verbs));
    for (const CommandWords& verb : c.verbs) add(verb);
    if (!c.verbs.empty()) return;
    std::vector<std::string> names = {"--help"};
    for (const CommandWords::Option& option : c.options) {
      names.push_back(option.name);
      const std::string what = option.value.empty() ? "flag" : is_file(option.value) ? "file" : "text";
      values += arm(c.name + " " + option.name, {what + (option.is_list ? "s" : "")});
    }
    options += arm(c.name, names);
    if (c.takes_overrides) keys += arm(c.name, {"yes"});
    if (c.has_positional) positionals += arm(c.name, {"file"});
  }
};

// Where the words are, and which of them are wanted. What stands behind --key= comes as words of its own, as
// "=" ends a word in bash.
constexpr const char* kMain = R"bash(<fn>_complete() {
  local cur=${COMP_WORDS[COMP_CWORD]} option= i word kind command=${COMP_WORDS[1]-} first=2
  COMPREPLY=()
  if (( COMP_CWORD == 1 )); then
    mapfile -t COMPREPLY < <(compgen -W "$(<fn>_verbs '') --help --version" -- "$cur")
    return
  fi
  while [[ -n $(<fn>_verbs "$command") ]]; do
    if (( COMP_CWORD == first )); then
      mapfile -t COMPREPLY < <(compgen -W "$(<fn>_verbs "$command") --help" -- "$cur")
      return
    fi
    command+=" ${COMP_WORDS[first]-}"
    (( ++first ))
  done
  # The option whose value is typed, if any.
  if [[ $cur == "=" ]]; then
    cur= option=${COMP_WORDS[COMP_CWORD-1]}
  elif [[ ${COMP_WORDS[COMP_CWORD-1]} == "=" ]]; then
    option=${COMP_WORDS[COMP_CWORD-2]}
  else
    for (( i = COMP_CWORD - 1; i >= first; --i )); do
      word=${COMP_WORDS[i]}
      [[ $word == --* ]] || continue
      kind=$(<fn>_values "$command $word")
      if [[ $kind == *s || ( $kind != flag && i -eq COMP_CWORD-1 ) ]]; then option=$word; fi
      break
    done
  fi
  if [[ $cur == -* && ( -z $option || $(<fn>_values "$command $option") == *s ) ]]; then
    local all=$(<fn>_options "$command") key
    if [[ -n $(<fn>_keys "$command") ]]; then
      # Keys up to the dot behind what is typed.
      for key in $(<fn>_all_keys ''); do
        [[ $key == "$cur"* ]] || continue
        word=${key#"$cur"}
        if [[ $word == *.* ]]; then all+=" $cur${word%%.*}."; else all+=" $key"; fi
      done
    fi
    mapfile -t COMPREPLY < <(compgen -W "$all" -- "$cur" | sort -u)
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *. ]]; then compopt -o nospace 2>/dev/null; fi
    return
  fi
  if [[ $option == --*.* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(<fn>_choices "$option")" -- "$cur")
    [[ $(<fn>_key_files "$option") == file ]] || return
  elif [[ -n $option ]]; then
    [[ $(<fn>_values "$command $option") == file* ]] || return
  else
    [[ -n $(<fn>_positionals "$command") ]] || return
  fi
  compopt -o filenames 2>/dev/null
  mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$cur")
}
complete -F <fn>_complete <program>
)bash";

std::string replaced(std::string text, const std::string& program) {
  std::string name = "_" + program;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  for (const auto& [mark, word] : {std::pair<std::string, std::string>{"<fn>", name}, {"<program>", program}})
    for (size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += word.size())
      text.replace(at, mark.size(), word);
  return text;
}

// Returns the script for the program `program` with these commands and keys of the configuration. It
// completes commands, verbs, options, keys up to the next dot, values that are one of several words, and
// files. It does not call the program, and needs bash alone.
std::string bash_completion(const std::string& program, const std::vector<CommandWords>& commands,
                            const std::vector<config::OptionInfo>& keys) {
  Arms arms;
  arms.verbs = arm("", names_of(commands));
  for (const CommandWords& c : commands) arms.add(c);
  std::set<std::string> names;
  std::string values, files;
  for (const config::OptionInfo& key : keys) {
    if (config::is_inside_element(key.path)) continue;
    const std::string name = "--" + key.path;
    if (!names.insert(name).second) continue;
    values += arm(name, choices(key.type));
    if (key.unit == "path") files += arm(name, {"file"});
  }
  const std::vector<std::string> all(names.begin(), names.end());
  std::string out = replaced(
      "# Completes the words of <program> in bash; `<program> completion bash` wrote it.\n", program);
  out += function("<fn>_verbs", arms.verbs) + function("<fn>_options", arms.options) +
         function("<fn>_values", arms.values) + function("<fn>_positionals", arms.positionals) +
         function("<fn>_keys", arms.keys) + function("<fn>_choices", values) +
         function("<fn>_key_files", files) + function("<fn>_all_keys", arm("", all));
  return replaced(out + kMain, program);
}

int bash(Args args) {
  args.summary(
      "Prints a script for bash that completes commands, options, keys of the configuration and files:\n"
      "  source <(ostro completion bash)\n"
      "An installed ostro has it in share/bash-completion/completions, where bash finds it by itself.");
  if (const auto code = args.parse()) return *code;
  const std::string script = bash_completion("ostro", describe(commands(), "", args.context()),
                                             config::list_options(train::TrainConfig(args.context().models)));
  std::fputs(script.c_str(), stdout);
  return kExitOk;
}

constexpr Command kShells[] = {{"bash", "for bash 4 and later", bash}};

}  // namespace

int completion_command(Args args) { return run_verb(std::move(args), kShells); }

}  // namespace ostro::cli
