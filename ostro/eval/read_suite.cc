#include <fmt/format.h>

#include <algorithm>

#include "ostro/base/sha256.h"
#include "ostro/config/options.h"
#include "ostro/eval/measure.h"
#include "ostro/eval/tasks/documents.h"
#include "ostro/eval/tasks/match.h"

namespace ostro::eval {
namespace {

// Texts with their lengths, so that no two lists of texts have the same bytes.
class TextHash {
 public:
  void add(const std::string& text) {
    hash_.update(fmt::format("{}:", text.size()));
    hash_.update(text);
  }
  std::string hex() { return to_hex(hash_.finish()); }

 private:
  Sha256 hash_;
};

std::string hash_of(const Questions& questions) {
  TextHash hash;
  for (const Question& q : questions.questions) {
    hash.add(q.prompt);
    for (const std::string& choice : q.choices) hash.add(choice);
    for (const std::string& answer : q.answers) hash.add(answer);
    hash.add(std::to_string(q.gold));
  }
  return hash.hex();
}

// The names that are wanted.
class Selection {
 public:
  Selection(const TaskFile& file, const std::vector<std::string>& only) : only_(only) {
    for (const auto& [name, corpus] : file.corpora) names_.push_back(name);
    for (const auto& [name, task] : file.tasks) names_.push_back(name);
  }
  Status check() const {
    std::vector<std::string> known = names_;
    for (const std::string& name : names_)
      for (size_t at = name.find('/'); at != std::string::npos; at = name.find('/', at + 1))
        known.push_back(name.substr(0, at));
    for (const std::string& wanted : only_)
      if (std::find(known.begin(), known.end(), wanted) == known.end())
        return not_found(fmt::format("no corpus or task is named \"{}\"; the nearest is \"{}\"", wanted,
                                     config::nearest_name(wanted, known)));
    return {};
  }
  bool has(const std::string& name) const {
    return only_.empty() || std::any_of(only_.begin(), only_.end(),
                                        [&](const std::string& wanted) { return is_below(name, wanted); });
  }

 private:
  static bool is_below(const std::string& name, const std::string& node) {
    return name == node || name.starts_with(node + "/");
  }
  const std::vector<std::string>& only_;
  std::vector<std::string> names_;
};

std::optional<int64_t> smaller(std::optional<int64_t> a, std::optional<int64_t> b) {
  return a && b ? std::min(*a, *b) : a ? a : b;
}

}  // namespace

Result<Suite> read_suite(io::FileSystem& fs, const TaskFile& file, const std::vector<std::string>& only,
                         std::optional<int64_t> limit) {
  const Selection selection(file, only);
  RETURN_IF_ERROR(selection.check());
  Suite out;
  for (const auto& [name, options] : file.corpora) {
    if (!selection.has(name)) continue;
    ASSIGN_OR_RETURN(auto texts, read_texts(fs, options.files, options.text_key,
                                            smaller(options.limit, limit), "corpora." + name));
    TextHash hash;
    for (const std::string& text : texts) hash.add(text);
    out.corpora.push_back({name, options, std::move(texts), hash.hex()});
  }
  for (const auto& [name, task] : file.tasks) {
    if (!selection.has(name)) continue;
    TaskOptions options = task;
    std::visit([&](auto& t) { t.limit = smaller(t.limit, limit); }, options);
    if (const auto* generate = std::get_if<GenerateOptions>(&options)) {
      const auto usable = Matcher::create("tasks." + name, *generate);
      if (!usable.ok()) return usable.error();
    }
    ASSIGN_OR_RETURN(Questions questions, make_questions(fs, name, options));
    std::string hash = hash_of(questions);
    out.tasks.push_back({std::move(questions), std::move(hash)});
  }
  return out;
}

}  // namespace ostro::eval
