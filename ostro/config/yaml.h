// Reading YAML into a Node tree: !include, places for error messages, no types yet.
#pragma once

#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/config/node.h"

namespace ostro::config {

// Reads one file. `!include other.yaml` (relative to the file that says it) stands for that file's tree.
// Errors name file and line: syntax, duplicate keys, a missing or circular include, text that is not UTF-8.
Result<Node> read_yaml_file(const std::string& path);

// The same for text in memory; `name` stands for the file in messages, includes are relative to its folder.
Result<Node> parse_yaml(const std::string& text, const std::string& name);

// One dotted override from the command line: --path value.
struct Override {
  std::string path;   // "optimizer.learning_rate"
  std::string value;  // plain text, or YAML flow ("[{every: 100}]")
};

// Sets the path in the tree, creating sections on the way. A path that goes through a value that is not a
// section is an error.
Status apply_override(const Override& override, Node* tree);

}  // namespace ostro::config
