// A whole configuration: from a file and overrides to a struct of options, and back to text.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/config/options.h"
#include "ostro/config/yaml.h"

namespace ostro::config {

// The tree of a file with the overrides applied, later ones winning. An empty path is an empty file.
Result<Node> load_tree(const std::string& path, std::span<const Override> overrides);

// Reads a file (and overrides) into `out`; keys that are absent keep the value they have there.
template <OptionStruct T>
Status load_options(const std::string& path, std::span<const Override> overrides, T* out) {
  ASSIGN_OR_RETURN(const Node tree, load_tree(path, overrides));
  return read_value(tree, "", out);
}

// Every option as YAML; reading it back gives equal options.
template <OptionStruct T>
std::string resolved_yaml(const T& options) {
  return block_text(write_value(options, Write::kAll));
}

// The options with effect bits or schedule as JSON: sorted keys, no paths and no names of runs.
template <OptionStruct T>
std::string canonical_config(const T& options) {
  return canonical_json(write_value(options, Write::kCanonical));
}

// Every declared option, in order of declaration, the choices of variants one after the other.
template <OptionStruct T>
std::vector<OptionInfo> list_options(const T& options) {
  std::vector<OptionInfo> all;
  describe_inside(options, OptionInfo{}, all);
  return all;
}

// Text for --help: one option a line with type, default and help.
std::string options_help(const std::vector<OptionInfo>& options);

// The tables of docs/config.md, one for every top-level section.
std::string options_markdown(const std::vector<OptionInfo>& options);

}  // namespace ostro::config
