// read_yaml_file, apply_override: reads YAML into a Node tree. It handles !include and keeps file and line of
// every node for error messages. Types are checked later.
#pragma once

#include <functional>
#include <string>

#include "ostro/base/error.h"
#include "ostro/config/node.h"

namespace ostro::config {

// Gives the text of a file, or says why it may not be read.
using ReadText = std::function<Result<std::string>(const std::string& path)>;

// Reads one file. `!include other.yaml` is replaced by the tree of that file; its path is relative to the
// including file. Errors name file and line: syntax, a missing or circular include, text that is not UTF-8.
// A key that is given twice is twice in the tree; reading the section is an error then (given_once). With
// `read`, it gives the text of each file: for files of strangers, which can include any other one.
Result<Node> read_yaml_file(const std::string& path, const ReadText& read = {});

// Reads YAML from text in memory. Error messages use `name` in place of the file, and includes are relative
// to its folder. With `includes` false they are an error: a text that comes from outside opens no files.
Result<Node> parse_yaml(const std::string& text, const std::string& name, bool includes = true);

// One dotted override from the command line: --path value.
struct Override {
  std::string path;   // "optimizer.learning_rate"
  std::string value;  // plain text, or YAML flow ("[{every: 100}]")
};

// Sets the path in the tree and creates missing sections on the way. It is an error if the path goes through
// a value that is not a section.
Status apply_override(const Override& override, Node* tree);

}  // namespace ostro::config
