// load_options, resolved_yaml: reads a whole configuration from a file and overrides into a struct of
// options, and writes it back as text.
//
// Errors of reading name file and line, the path, both values and the nearest known name. All errors of a
// configuration are returned as one (mistakes.h).
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/config/mistakes.h"
#include "ostro/config/options.h"
#include "ostro/config/yaml.h"

namespace ostro::config {

// The tree of a YAML file with the overrides applied; later overrides win. An empty path means an empty file.
// Overrides that cannot be applied are added to `mistakes`, and the tree is without them. `read`: as of
// read_yaml_file.
Result<Node> load_tree(const std::string& path, std::span<const Override> overrides, Mistakes* mistakes,
                       const ReadText& read = {});

// The errors of `status`, each with the place of the option that it begins with, as far as the tree names it.
// Errors about options that `read`, the result of reading the tree, has an error about are left out: the
// values that they speak of are not those that were meant.
Status placed_errors(const Status& status, const Node& tree, const Status& read);

// Reads a file and overrides into `out`. Options that are not given keep their value.
template <OptionStruct T>
Status load_options(const std::string& path, std::span<const Override> overrides, T* out) {
  Mistakes mistakes;
  ASSIGN_OR_RETURN(const Node tree, load_tree(path, overrides, &mistakes));
  mistakes.add(read_value(tree, "", out));
  return mistakes.status();
}

// Reads a tree into `out` and calls resolve(). Where reading has errors, those of resolve() about other
// options are returned beside them. Errors of resolve() that begin with a path get its place in the tree.
template <OptionStruct T>
Status read_and_resolve(const Node& tree, T* out) {
  Mistakes mistakes;
  const Status read = read_value(tree, "", out);
  mistakes.add(read);
  mistakes.add(placed_errors(out->resolve(), tree, read));
  return mistakes.status();
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
