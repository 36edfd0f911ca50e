#include "ostro/corpus_check/document_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <vector>

#include "ostro/base/one_line.h"

namespace ostro::corpus_check {
namespace {

using batches::DataSet;
using data::Split;

// A source file of a store: where its rows begin in each split.
struct File {
  std::string path, sha256;  // sha256 is empty where the ledger has no files
  std::array<int64_t, 2> first{}, rows{};
  int64_t documents = 0;
};

// A store without a list of files (a Levanter cache) is one file.
Result<std::vector<File>> files_of(const DataSet::Part& part) {
  std::vector<File> out;
  ASSIGN_OR_RETURN(const std::vector<data::FileLedger>* files, part.store->files());
  std::array<int64_t, 2> next{};
  for (const data::FileLedger& f : *files) {
    out.push_back({f.source.path, f.sha256, next, f.rows, f.documents});
    for (size_t s = 0; s < 2; ++s) next[s] += f.rows[s];
  }
  if (!out.empty()) return out;
  File all{part.folder, "", {}, {}, 0};
  for (const Split split : data::kSplits)
    all.documents += all.rows[static_cast<size_t>(split)] = part.store->split(split).rows();
  return std::vector<File>{all};
}

// The documents of a file by what was made of them; of each the numbers, ascending.
using Documents = std::map<Sha256Digest, std::vector<int64_t>>;

Result<Documents> documents_of(const DataSet::Part& part, const File& file) {
  Documents out;
  for (const Split split : data::kSplits) {
    const data::TokenStream& stream = part.store->split(split);
    const auto s = static_cast<size_t>(split);
    for (int64_t row = file.first[s]; row < file.first[s] + file.rows[s]; ++row) {
      ASSIGN_OR_RETURN(const Sha256Digest hash, stream.row_hash(row));
      ASSIGN_OR_RETURN(const data::RowSource source, stream.source(row));
      out[hash].push_back(source.document);
    }
  }
  for (auto& [hash, numbers] : out) std::sort(numbers.begin(), numbers.end());
  return out;
}

// A document that the one has more often than the other.
struct Surplus {
  int64_t document = 0;
  int64_t before = 0;  // how many documents that both have stand before it
};

// Of documents that are there several times, those at a number that the other has, too, are the common ones
// first, then the first ones.
std::vector<Surplus> surplus(const Documents& of, const Documents& over) {
  std::vector<int64_t> all, only;
  for (const auto& [hash, numbers] : of) {
    all.insert(all.end(), numbers.begin(), numbers.end());
    const auto other = over.find(hash);
    const std::vector<int64_t> others = other == over.end() ? std::vector<int64_t>() : other->second;
    std::vector<int64_t> elsewhere;
    std::set_difference(numbers.begin(), numbers.end(), others.begin(), others.end(),
                        std::back_inserter(elsewhere));
    const size_t in_place = numbers.size() - elsewhere.size(),
                 common = std::min(numbers.size(), others.size()) - in_place;
    only.insert(only.end(), elsewhere.begin() + static_cast<int64_t>(common), elsewhere.end());
  }
  std::sort(all.begin(), all.end());
  std::sort(only.begin(), only.end());
  std::vector<Surplus> out;
  for (const int64_t document : only) {
    const int64_t before = std::lower_bound(all.begin(), all.end(), document) - all.begin();
    out.push_back({document, before - static_cast<int64_t>(out.size())});
  }
  return out;
}

// Counts all differences, and lists the first ones.
struct Report {
  int64_t removed = 0, added = 0, changed = 0, listed = 0;
  int64_t list = 0;
  std::string lines;

  void add(int64_t& count, int64_t documents, const std::string& line) {
    count += documents;
    if (listed++ < list) lines += "  " + one_line(line) + "\n";
  }
};

// Two documents at the same place among those that both files have are one that changed. Where several are at
// one place, the first ones are.
Status compare_files(const DataSet::Part& a, const File& x, const DataSet::Part& b, const File& y,
                     Report& report) {
  ASSIGN_OR_RETURN(const Documents in_a, documents_of(a, x));
  ASSIGN_OR_RETURN(const Documents in_b, documents_of(b, y));
  const std::vector<Surplus> only_a = surplus(in_a, in_b), only_b = surplus(in_b, in_a);
  for (auto i = only_a.begin(), j = only_b.begin(); i != only_a.end() || j != only_b.end();) {
    const bool has_a = i != only_a.end(), has_b = j != only_b.end();
    if (has_a && has_b && i->before == j->before) {
      report.add(report.changed, 1,
                 fmt::format("changed: {}, document {}{}", x.path, i->document,
                             i->document == j->document ? "" : fmt::format(" ({} in B)", j->document)));
      ++i, ++j;
    } else if (has_a && (!has_b || i->before < j->before)) {
      report.add(report.removed, 1, fmt::format("only in A: {}, document {}", x.path, i++->document));
    } else {
      report.add(report.added, 1, fmt::format("only in B: {}, document {}", y.path, j++->document));
    }
  }
  return {};
}

// Pairs files by path, then by content, then, where each side has one left, with each other.
Result<std::string> compare_stores(const std::string& name, const DataSet::Part& a, const DataSet::Part& b,
                                   int64_t list) {
  const auto& of_a = a.store->ledger().preprocessing;
  if (const auto other = data::differences(of_a, b.store->ledger().preprocessing); !other.empty())
    return fmt::format("{}documents were not compared: {}\n", name, fmt::join(other, "; "));
  ASSIGN_OR_RETURN(std::vector<File> left, files_of(a));
  ASSIGN_OR_RETURN(std::vector<File> right, files_of(b));
  Report report;
  report.list = list;
  const auto pair_up = [&](const auto& same) -> Status {
    for (auto x = left.begin(); x != left.end();) {
      const auto y = std::find_if(right.begin(), right.end(), [&](const File& f) { return same(*x, f); });
      if (y == right.end()) {
        ++x;
        continue;
      }
      if (x->sha256.empty() || x->sha256 != y->sha256 || x->rows != y->rows)
        RETURN_IF_ERROR(compare_files(a, *x, b, *y, report));
      x = left.erase(x);
      right.erase(y);
    }
    return {};
  };
  RETURN_IF_ERROR(pair_up([](const File& x, const File& y) { return x.path == y.path; }));
  RETURN_IF_ERROR(
      pair_up([](const File& x, const File& y) { return !x.sha256.empty() && x.sha256 == y.sha256; }));
  if (left.size() == 1 && right.size() == 1)
    RETURN_IF_ERROR(pair_up([](const File&, const File&) { return true; }));
  for (const File& f : left)
    report.add(report.removed, f.documents, fmt::format("only in A: {}, {} documents", f.path, f.documents));
  for (const File& f : right)
    report.add(report.added, f.documents, fmt::format("only in B: {}, {} documents", f.path, f.documents));
  if (report.listed == 0) return fmt::format("{}the documents are the same, in another order\n", name);
  std::string out = fmt::format("{}{} documents only in A, {} only in B, {} changed\n", name, report.removed,
                                report.added, report.changed);
  out += report.lines;
  if (report.listed > list) out += fmt::format("  and {} lines more\n", report.listed - list);
  return out;
}

}  // namespace

Result<std::string> document_diff_text(const DataSet& a, const DataSet& b, int64_t list) {
  std::string out;
  for (const DataSet::Part& x : a.parts())
    for (const DataSet::Part& y : b.parts()) {
      if (x.component.name != y.component.name || x.store->hash() == y.store->hash()) continue;
      const std::string& name = x.component.name;
      ASSIGN_OR_RETURN(const std::string text, compare_stores(name.empty() ? "" : name + ": ", x, y, list));
      out += text;
    }
  return out;
}

}  // namespace ostro::corpus_check
