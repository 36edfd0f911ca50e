#include "ostro/config/yaml.h"

#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "ostro/config/utf8.h"
#include "ostro/config/yaml_syntax.h"

namespace ostro::config {
namespace {

constexpr int kMaxDepth = 64;          // also stops an alias that contains itself
constexpr int64_t kMaxNodes = 100000;  // aliases can multiply a small file without bound

// Converts one file. `stack_` holds the files that are being read, to refuse circular includes.
class Reader {
 public:
  explicit Reader(bool includes = true, ReadText read = {}) : includes_(includes), read_(std::move(read)) {}

  Result<Node> file(const std::string& path) {
    ASSIGN_OR_RETURN(const std::string text, read_ ? read_(path) : content(path));
    std::error_code ignored;
    const std::string real = std::filesystem::weakly_canonical(path, ignored).string();
    if (std::find(stack_.begin(), stack_.end(), real) != stack_.end())
      return invalid_argument(fmt::format("{}: includes itself (through {})", path, stack_.back()));
    stack_.push_back(real);
    Result<Node> tree = this->text(text, path);
    stack_.pop_back();
    return tree;
  }

  Result<Node> text(const std::string& text, const std::string& name) {
    if (!is_utf8(text)) return invalid_argument(fmt::format("{}: not valid UTF-8", name));
    if (text.find('\0') != std::string::npos)
      return invalid_argument(fmt::format("{}: contains a NUL byte", name));
    try {
      const std::vector<YAML::Node> documents = YAML::LoadAll(text);
      if (documents.size() > 1)
        return invalid_argument(
            fmt::format("{}: holds {} YAML documents, expected one", name, documents.size()));
      if (documents.empty()) return plain_scalar("", fmt::format("{}:1", name));
      return convert(documents[0], name, 0);
    } catch (const YAML::Exception& e) {
      return explain_syntax(text, name, e.mark.line, e.msg);
    }
  }

 private:
  static Result<std::string> content(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored))
      return invalid_argument(fmt::format("{}: is a directory, expected a YAML file", path));
    std::ifstream in(path, std::ios::binary);
    if (!in) return not_found(fmt::format("{}: cannot open the configuration file", path));
    std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    if (in.bad()) return io_error(fmt::format("{}: cannot read", path));
    return text;
  }

  // Converts a yaml-cpp node. Too many nodes are an error. A key that is given twice stays twice: the reader
  // of the section says so, beside what else is wrong. A YAML::Exception is passed on.
  Result<Node> convert(const YAML::Node& yaml, const std::string& name, int depth) {
    const std::string where = fmt::format("{}:{}", name, yaml.Mark().line + 1);
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes)
      return invalid_argument(
          fmt::format("{}: nested too deeply or too large (an alias inside itself?)", where));
    if (yaml.Tag() == "!include") {
      if (!includes_)
        return invalid_argument(fmt::format("{}: !include is not for the configuration of a record", where));
      if (!yaml.IsScalar()) return invalid_argument(fmt::format("{}: !include takes a file name", where));
      const auto path = std::filesystem::path(name).parent_path() / yaml.Scalar();
      Result<Node> tree = file(path.string());
      if (!tree.ok()) return tree.error().with_context(fmt::format("{}: !include", where));
      return tree;
    }
    if (!yaml.Tag().empty() && yaml.Tag() != "?" && yaml.Tag() != "!")
      return invalid_argument(fmt::format("{}: unknown tag {} (only !include is known)", where, yaml.Tag()));
    Node node;
    node.where = where;
    if (yaml.IsSequence()) {
      node.kind = Node::Kind::kList;
      for (const YAML::Node& item : yaml) {
        ASSIGN_OR_RETURN(Node child, convert(item, name, depth + 1));
        node.items.push_back(std::move(child));
      }
    } else if (yaml.IsMap()) {
      node.kind = Node::Kind::kMap;
      for (const auto& entry : yaml) {
        const YAML::Node& key = entry.first;
        const YAML::Node& value = entry.second;
        if (!key.IsScalar()) return invalid_argument(fmt::format("{}: a key must be a plain name", where));
        const std::string place = fmt::format("{}:{}", name, key.Mark().line + 1);
        ASSIGN_OR_RETURN(Node child, convert(value, name, depth + 1));
        // Use the line of the key, where a reader looks first. Nodes of an included file keep that file's
        // lines.
        if (value.Tag() != "!include") child.where = place;
        node.put(key.Scalar(), std::move(child));
      }
    } else if (yaml.IsScalar() && yaml.Tag() == "!") {  // quoted
      node.kind = Node::Kind::kString;
      node.text = yaml.Scalar();
    } else {
      node = plain_scalar(yaml.IsScalar() ? yaml.Scalar() : "", where);
    }
    return node;
  }

  const bool includes_;
  const ReadText read_;
  std::vector<std::string> stack_;
  int64_t nodes_ = 0;
};

// The value of an override. It is read as YAML if it begins like a collection, a quoted string or an include.
// Otherwise the text is taken literally; '#' or ': ' in it has no meaning.
Result<Node> override_value(const Override& override) {
  const std::string where = "--" + override.path;
  if (!is_utf8(override.value)) return invalid_argument(fmt::format("{}: not valid UTF-8", where));
  if (override.value.find_first_of("[{\"'!") != 0) return plain_scalar(override.value, where);
  ASSIGN_OR_RETURN(Node value, parse_yaml(override.value, where));
  value.where = where;
  return value;
}

}  // namespace

Result<Node> read_yaml_file(const std::string& path, const ReadText& read) {
  return Reader(/*includes=*/true, read).file(path);
}

Result<Node> parse_yaml(const std::string& text, const std::string& name, bool includes) {
  return Reader(includes).text(text, name);
}

// Walks the dotted path from the root, and makes a section where the path names a null or nothing. The last
// name's value is replaced as a whole: an override of a section does not merge with the old one.
Status apply_override(const Override& override, Node* tree) {
  ASSIGN_OR_RETURN(Node value, override_value(override));
  const std::string where = "--" + override.path;
  Node* at = tree;
  size_t begin = 0;
  while (true) {
    if (at->kind == Node::Kind::kNull) {
      at->kind = Node::Kind::kMap;
      at->text.clear();
    }
    if (at->kind != Node::Kind::kMap)
      return invalid_argument(fmt::format("{}: \"{}\" is {} in {}, not a section", where,
                                          override.path.substr(0, begin ? begin - 1 : 0), kind_name(at->kind),
                                          at->where.empty() ? "the configuration" : at->where));
    const size_t dot = override.path.find('.', begin);
    const std::string name = override.path.substr(begin, dot == std::string::npos ? dot : dot - begin);
    if (name.empty()) return invalid_argument(fmt::format("{}: empty name in the path", where));
    Node* child = at->find(name);
    if (!child) {
      Node section = Node::map();
      section.where = where;
      child = &at->put(name, std::move(section));
    }
    if (dot == std::string::npos) {
      value.key = name;
      *child = std::move(value);
      return {};
    }
    at = child;
    begin = dot + 1;
  }
}

}  // namespace ostro::config
