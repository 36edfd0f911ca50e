#include "ostro/config/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "ostro/config/unknown_key.h"

namespace ostro::config {
namespace {

std::string place(const Node& node) { return node.where.empty() ? "" : node.where + ": "; }

// Another value for tests: true -> false, 4 -> 5, 0.5 -> 1.0. Where this is not legal, the declaration gives
// one with other().
std::string derived_other(const Node& value) {
  switch (value.kind) {
    case Node::Kind::kBool: return value.text == "true" ? "false" : "true";
    case Node::Kind::kInt: return std::to_string(std::stoll(value.text) + 1);
    case Node::Kind::kDouble: {
      const double v = std::stod(value.text);
      return format_double(v == 0 ? 0.5 : v * 2);
    }
    default: return "";
  }
}

// While it lives, the first table made on this thread is the outermost that is being read.
class OutermostTable {
 public:
  explicit OutermostTable(const OptionTable& table) : was_(outermost_) {
    if (was_ == nullptr) outermost_ = &table;
  }
  ~OutermostTable() { outermost_ = was_; }
  OutermostTable(const OutermostTable&) = delete;
  OutermostTable& operator=(const OutermostTable&) = delete;

  // The paths of all its options.
  static std::vector<std::string> paths() {
    std::vector<OptionInfo> options;
    outermost_->describe(OptionInfo{}, options);
    std::vector<std::string> out;
    for (OptionInfo& option : options) out.push_back(std::move(option.path));
    return out;
  }

 private:
  static thread_local const OptionTable* outermost_;
  const OptionTable* was_;
};
thread_local const OptionTable* OutermostTable::outermost_ = nullptr;

}  // namespace

const char* effect_name(Effect effect) {
  switch (effect) {
    case Effect::kBits: return "bits";
    case Effect::kSchedule: return "schedule";
    case Effect::kPlan: return "plan";
    case Effect::kOutput: return "output";
  }
  return "?";
}

Option& Option::other(std::string value) {
  other_value = std::move(value);
  return *this;
}

Option& Option::beside(std::vector<std::pair<std::string, std::string>> settings) {
  beside_values = std::move(settings);
  return *this;
}

Option& Option::by_content() {
  content = true;
  return *this;
}

Option& Option::since_default(std::string default_value) {
  left_out_at = std::move(default_value);
  return *this;
}

Option& Option::fixed(std::string why) {
  fixed_because = std::move(why);
  return *this;
}

bool is_inside_element(const std::string& path) {
  return path.find("[]") != std::string::npos || path.find(kAnyName) != std::string::npos;
}

void OptionTable::refuse(std::string name, std::string reason) {
  refused_.emplace_back(std::move(name), std::move(reason));
}

// Goes over the entries of the map, not over the options: an absent option keeps its value, and an entry that
// is no option gets a sentence of unknown_key(). The outermost table that is being read lists the options of
// the whole configuration for these sentences.
Status OptionTable::read(const Node& node, const std::string& path) const {
  if (node.kind == Node::Kind::kNull && path.empty()) return {};  // an empty file: all defaults
  if (node.kind != Node::Kind::kMap) return wrong_type(node, path, "a section (key: value lines)");
  const OutermostTable outermost(*this);
  Mistakes mistakes;
  for (const Node& item : node.items) {
    const auto option =
        std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == item.key; });
    const auto refused =
        std::find_if(refused_.begin(), refused_.end(), [&](const auto& r) { return r.first == item.key; });
    const std::string full = join_path(path, item.key);
    if (!mistakes.add(given_once(node, item, full))) continue;
    if (option != options_.end()) {
      mistakes.add(option->read(item, full));
    } else if (refused != refused_.end()) {
      mistakes.add(unsupported(fmt::format("{}{} is refused: {}", place(item), full, refused->second)));
    } else {
      std::vector<std::string> names;
      for (const Option& o : options_) names.push_back(o.name);
      mistakes.add(unknown_key(item, full, names, OutermostTable::paths()));
    }
  }
  return mistakes.status();
}

// The canonical form keeps only options that change bits or the schedule. It drops paths (by_content; the
// caller adds a hash), empty sections, and options with since_default() that have this default: so adding an
// option does not change the hash of an old run.
Node OptionTable::write(Write which) const {
  Node map = Node::map();
  for (const Option& option : options_) {
    const bool canonical =
        !option.content && (option.effect == Effect::kBits || option.effect == Effect::kSchedule);
    if (which == Write::kCanonical && !canonical) continue;
    Node value = option.write(which);
    if (which == Write::kCanonical && option.is_section && value.items.empty()) continue;
    if (which == Write::kCanonical && !option.left_out_at.empty() &&
        flow_text(option.write(Write::kAll)) == option.left_out_at)
      continue;
    map.put(option.name, std::move(value));
  }
  return map;
}

// A row starts as a copy of its parent's, so `selects` is inherited. Inside lists the effect is the list's,
// inside lists and maps `fixed` is the container's: an element cannot change without it.
void OptionTable::describe(const OptionInfo& self, std::vector<OptionInfo>& out) const {
  const bool in_list = self.path.find("[]") != std::string::npos;
  for (const Option& option : options_) {
    OptionInfo info = self;
    info.path = join_path(self.path, option.name);
    info.help = option.help;
    info.unit = option.unit;
    info.type = option.type;
    if (!in_list) info.effect = option.effect;  // list elements have the effect of their list
    info.by_content = option.content;
    info.left_out_at = option.left_out_at;
    // inside a map or list, the container decides
    if (!is_inside_element(self.path)) info.fixed = option.fixed_because;
    info.beside = option.beside_values;
    if (!option.is_section) {
      // Options of effect plan or output may always change, even inside a fixed map.
      if (info.effect > Effect::kSchedule) info.fixed.clear();
      const Node value = option.write(Write::kAll);
      info.default_value = flow_text(value);
      info.other_value = is_inside_element(info.path) ? ""
                         : option.other_value.empty() ? derived_other(value)
                                                      : option.other_value;
      out.push_back(info);
    }
    option.describe(info, out);
  }
}

std::string join_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates) {
  std::string best;
  size_t best_distance = 0;
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(name, candidate);
    if (best.empty() || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

Status given_once(const Node& map, const Node& item, const std::string& path) {
  const Node* first = map.find(item.key);
  if (first == &item) return {};
  return invalid_argument(
      fmt::format("{}key \"{}\" was given before, at {}", place(item), path, first->where));
}

Error wrong_type(const Node& node, const std::string& path, const std::string& expected) {
  const std::string got =
      node.is_scalar() && node.kind != Node::Kind::kNull ? "\"" + node.text + "\"" : kind_name(node.kind);
  return invalid_argument(fmt::format("{}{}: expected {}, got {}", place(node),
                                      path.empty() ? "configuration" : path, expected, got));
}

Error option_error(const std::string& path, const std::string& message) {
  return invalid_argument(fmt::format("{}: {}", path, message));
}

}  // namespace ostro::config
