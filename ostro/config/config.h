// load_options, resolved_yaml: reads a whole configuration from a file and overrides into a struct of
// options, and writes it back as text.
//
// Errors of reading name file and line, the path, both values and the nearest known name.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/config/options.h"
#include "ostro/config/yaml.h"

namespace ostro::config {

// The tree of a YAML file with the overrides applied; later overrides win. An empty path means an empty file.
Result<Node> load_tree(const std::string& path, std::span<const Override> overrides);

// Reads a file and overrides into `out`. Options that are not given keep their value.
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

// The canonical config: the options with effect bits or schedule as JSON with sorted keys. It has no paths
// and no names of runs.
template <OptionStruct T>
std::string canonical_config(const T& options) {
  return canonical_json(write_value(options, Write::kCanonical));
}

// Every declared option in the order of declaration. The options of all choices of a variant are listed one
// after another.
template <OptionStruct T>
std::vector<OptionInfo> list_options(const T& options) {
  std::vector<OptionInfo> all;
  describe_inside(options, OptionInfo{}, all);
  return all;
}

// Text for --help: one line per option with type, default and help.
std::string options_help(const std::vector<OptionInfo>& options);

// The tables of docs/reference/config.md: one per top-level section.
std::string options_markdown(const std::vector<OptionInfo>& options);

}  // namespace ostro::config
