#include "ostro/eval/report/results.h"

#include <algorithm>
#include <set>

namespace ostro::eval {
namespace {

std::vector<Entry> entry_differences(const std::vector<Entry>& from, const std::vector<Entry>& to) {
  std::vector<Entry> out;
  for (const Entry& b : to) {
    const auto a = std::find_if(from.begin(), from.end(), [&](const Entry& e) { return e.name == b.name; });
    if (a == from.end() || a->documents_hash != b.documents_hash || a->type != b.type) continue;
    Entry entry = b;
    entry.measures.clear();
    for (const Measure& measure : b.measures) {
      const Measure* other = a->find(measure.name);
      Samples samples;
      if (other != nullptr && difference(other->samples, measure.samples, samples))
        entry.measures.push_back({measure.name, std::move(samples)});
    }
    if (!entry.measures.empty()) out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace

const Measure* Entry::find(const std::string& measure) const {
  for (const Measure& m : measures)
    if (m.name == measure) return &m;
  return nullptr;
}

std::map<std::string, std::vector<size_t>> tag_nodes(const std::vector<Entry>& entries) {
  std::map<std::string, std::vector<size_t>> nodes;
  for (size_t i = 0; i < entries.size(); ++i) {
    std::set<std::string> above = {""};
    const auto add_parts = [&](const std::string& path, bool itself) {
      for (size_t at = path.find('/'); at != std::string::npos; at = path.find('/', at + 1))
        above.insert(path.substr(0, at));
      if (itself) above.insert(path);
    };
    add_parts(entries[i].name, false);
    for (const std::string& tag : entries[i].tags) add_parts(tag, true);
    for (const std::string& node : above) nodes[node].push_back(i);
  }
  std::erase_if(nodes, [](const auto& node) { return node.second.size() < 2; });
  return nodes;
}

std::vector<std::pair<std::string, std::vector<const Samples*>>> measures_at(
    const std::vector<Entry>& entries, const std::vector<size_t>& members) {
  std::vector<std::pair<std::string, std::vector<const Samples*>>> out;
  for (const size_t member : members)
    for (const Measure& measure : entries[member].measures) {
      auto found =
          std::find_if(out.begin(), out.end(), [&](const auto& m) { return m.first == measure.name; });
      if (found == out.end()) found = out.insert(out.end(), {measure.name, {}});
      found->second.push_back(&measure.samples);
    }
  return out;
}

Evaluated differences(const Evaluated& from, const Evaluated& to) {
  Evaluated out;
  out.corpora = entry_differences(from.corpora, to.corpora);
  out.tasks = entry_differences(from.tasks, to.tasks);
  return out;
}

}  // namespace ostro::eval
