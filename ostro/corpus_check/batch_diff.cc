#include "ostro/corpus_check/batch_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace ostro::corpus_check {
namespace {

std::string shown(const std::string& name) { return name.empty() ? "the data set" : name; }

const batches::DataSet::Part* find_part(const batches::DataSet& stores, const std::string& name) {
  for (const batches::DataSet::Part& part : stores.parts())
    if (part.component.name == name) return &part;
  return nullptr;
}

std::string store_text(const batches::DataSet::Part& part) {
  const data::SplitLedger& train = part.store->ledger().split(data::Split::kTrain);
  return fmt::format("{} documents, {} tokens (ledger {:.12})", train.rows, train.tokens, part.store->hash());
}

void compare_components(const batches::DataSet& a, const batches::DataSet& b, std::string& out) {
  std::set<std::string> names;
  for (const batches::DataSet* side : {&a, &b})
    for (const batches::DataSet::Part& part : side->parts()) names.insert(part.component.name);
  for (const std::string& name : names) {
    const batches::DataSet::Part *x = find_part(a, name), *y = find_part(b, name);
    if (x == nullptr || y == nullptr)
      out += fmt::format("{}: only in {}: {}\n", shown(name), x != nullptr ? "A" : "B",
                         store_text(x != nullptr ? *x : *y));
    else if (x->store->hash() != y->store->hash())
      out +=
          fmt::format("{}: other content: {} in A, {} in B\n", shown(name), store_text(*x), store_text(*y));
  }
}

// The sequences of a run's first steps, by their content, with their component.
struct Seen {
  std::vector<std::vector<std::string>> steps;          // by step and row
  std::map<std::string, int64_t> counts;                // by component
  std::map<std::string, std::vector<std::string>> all;  // by component, sorted
};

Result<Seen> look(const batches::Loader& loader, int64_t steps) {
  Seen seen;
  for (int64_t step = 0; step < steps; ++step) {
    std::vector<std::string>& rows = seen.steps.emplace_back();
    for (int64_t row = 0; row < loader.schedule().size(step); ++row) {
      ASSIGN_OR_RETURN(const batches::Batch one, loader.rows(step, row, row + 1));
      const std::string& name = loader.component_name(one.components[0]);
      rows.push_back(batches::batch_fingerprint(one));
      ++seen.counts[name];
      seen.all[name].push_back(rows.back());
    }
  }
  for (auto& [name, digests] : seen.all) std::sort(digests.begin(), digests.end());
  return seen;
}

int64_t shared(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::vector<std::string> both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return static_cast<int64_t>(both.size());
}

}  // namespace

Result<BatchDiff> diff_batches(const DiffSide& a, const DiffSide& b, int64_t steps) {
  BatchDiff diff;
  std::string& out = diff.text;
  compare_components(a.stores, b.stores, out);
  const bool same_stores = out.empty();
  ASSIGN_OR_RETURN(Seen x, look(a.loader, steps));
  ASSIGN_OR_RETURN(Seen y, look(b.loader, steps));
  int64_t different_steps = 0, in_place = 0, total_a = 0, total_b = 0;
  std::string first;
  for (size_t s = 0; s < x.steps.size(); ++s) {
    const auto &p = x.steps[s], &q = y.steps[s];
    total_a += static_cast<int64_t>(p.size());
    total_b += static_cast<int64_t>(q.size());
    const size_t common = std::min(p.size(), q.size());
    size_t equal = 0, differs = common;
    for (size_t row = 0; row < common; ++row) {
      equal += p[row] == q[row];
      if (p[row] != q[row]) differs = std::min(differs, row);
    }
    in_place += static_cast<int64_t>(equal);
    if (p == q) continue;
    ++different_steps;
    if (first.empty() && p.size() != q.size() && differs == common)
      first = fmt::format("step {}: {} sequences in A, {} in B", s, p.size(), q.size());
    else if (first.empty())
      first =
          fmt::format("step {}, row {}: {} of {} sequences of the step are equal", s, differs, equal, common);
  }
  if (first.empty()) {
    out += fmt::format("the first {} steps are equal: {} sequences\n", steps, total_a);
    diff.equal = same_stores;
    return diff;
  }
  out += fmt::format("first difference: {}\n", first);
  out += fmt::format(
      "of the first {} steps {} differ; {} sequences are equal in place, of {} in A and {} in B\n", steps,
      different_steps, in_place, total_a, total_b);
  std::set<std::string> names;
  for (const Seen* side : {&x, &y})
    for (const auto& [name, count] : side->counts) names.insert(name);
  for (const std::string& name : names)
    out += fmt::format("  {}: {} sequences in A, {} in B, {} in both\n", shown(name), x.counts[name],
                       y.counts[name], shared(x.all[name], y.all[name]));
  return diff;
}

}  // namespace ostro::corpus_check
