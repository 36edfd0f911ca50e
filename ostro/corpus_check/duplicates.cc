#include "ostro/corpus_check/duplicates.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "ostro/io/files/path.h"

namespace ostro::corpus_check {
namespace {

// Inserts an item into a list that keeps only the `limit` best, by `better`.
template <typename Item, typename Better>
void keep_best(std::vector<Item>& best, Item item, size_t limit, const Better& better) {
  const auto at = std::upper_bound(best.begin(), best.end(), item, better);
  best.insert(at, std::move(item));
  if (best.size() > limit) best.pop_back();
}

struct Group {
  std::vector<uint64_t> documents;  // the first ones
  int64_t size = 0;
};
bool larger(const Group& a, const Group& b) {
  if (a.size != b.size) return a.size > b.size;
  return a.documents < b.documents;
}

// Union-find over documents that are near duplicates. The smallest number represents its set.
class Sets {
 public:
  uint64_t root(uint64_t x) {
    const auto it = parent_.find(x);
    if (it == parent_.end() || it->second == x) return x;
    const uint64_t r = root(it->second);
    parent_[x] = r;
    return r;
  }
  void join(uint64_t a, uint64_t b) {
    const uint64_t x = root(a), y = root(b);
    parent_[std::max(x, y)] = std::min(x, y);
    parent_.try_emplace(std::min(x, y), std::min(x, y));
  }
  // Every set of two or more documents, with members ascending.
  std::map<uint64_t, std::vector<uint64_t>> all() {
    std::map<uint64_t, std::vector<uint64_t>> out;
    std::vector<uint64_t> members;
    for (const auto& [x, up] : parent_) members.push_back(x);
    std::sort(members.begin(), members.end());
    for (const uint64_t x : members) out[root(x)].push_back(x);
    return out;
  }

 private:
  std::unordered_map<uint64_t, uint64_t> parent_;
};

}  // namespace

DuplicateFinder::DuplicateFinder(io::FileSystem& fs, std::string folder, double near_threshold,
                                 int64_t memory)
    : fs_(fs),
      folder_(std::move(folder)),
      threshold_(near_threshold),
      bands_(Bands::for_threshold(near_threshold)),
      hashes_(fs, io::join_path(folder_, "hashes"), memory / 4),
      keys_(fs, io::join_path(folder_, "bands"), memory / 2) {}

Status DuplicateFinder::add(const DocumentPlace& place, int64_t bytes, const Sha256Digest& hash,
                            const Signature* signature) {
  HashRecord record{{0, 0}, documents_};
  for (size_t i = 0; i < 16; ++i) record.hash[i / 8] = record.hash[i / 8] << 8 | hash[i];
  RETURN_IF_ERROR(hashes_.add(record));
  buffer_.push_back(
      {place, bytes, signature != nullptr ? 1 : 0, signature != nullptr ? *signature : Signature{}});
  ++documents_;
  return buffer_.size() < 4096 ? Status() : flush();
}

Status DuplicateFinder::flush() {
  if (!out_) {
    ASSIGN_OR_RETURN(out_, fs_.create(io::join_path(folder_, "signatures")));
  }
  RETURN_IF_ERROR(out_->append(std::as_bytes(std::span(buffer_))));
  buffer_.clear();
  return {};
}

Result<DuplicateFinder::Stored> DuplicateFinder::stored(uint64_t document) const {
  Stored out;
  RETURN_IF_ERROR(
      in_->read(static_cast<int64_t>(document * sizeof(Stored)), std::as_writable_bytes(std::span(&out, 1))));
  return out;
}

Result<DuplicateCluster> DuplicateFinder::cluster(const std::vector<uint64_t>& documents) const {
  DuplicateCluster out;
  Stored first;
  for (const uint64_t document : documents) {
    ASSIGN_OR_RETURN(const Stored one, stored(document));
    if (out.documents.empty())
      first = one;
    else if (first.has_signature != 0 && one.has_signature != 0)
      out.least_jaccard = std::min(out.least_jaccard, estimated_jaccard(first.signature, one.signature));
    out.documents.push_back(one.place);
  }
  return out;
}

Status DuplicateFinder::tell(uint64_t copy, uint64_t first, bool is_exact) const {
  if (!on_copy_) return {};
  ASSIGN_OR_RETURN(const Stored later, stored(copy));
  ASSIGN_OR_RETURN(const Stored earlier, stored(first));
  on_copy_(later.place, earlier.place, is_exact);
  return {};
}

Result<DuplicateReport> DuplicateFinder::finish(size_t list, OnCopy on_copy) {
  on_copy_ = std::move(on_copy);
  DuplicateReport report;
  report.documents = static_cast<int64_t>(documents_);
  if (documents_ == 0) return report;
  RETURN_IF_ERROR(flush());
  RETURN_IF_ERROR(out_->close());
  ASSIGN_OR_RETURN(in_, fs_.open(io::join_path(folder_, "signatures")));
  is_copy_.assign(documents_, false);
  RETURN_IF_ERROR(find_exact(list, report));
  RETURN_IF_ERROR(find_near(list, report));
  return report;
}

// Records come sorted by hash, then by document, so copies are neighbours and the first of a group is the
// original. Only copies are marked; their bytes are summed in a second pass over the documents.
Status DuplicateFinder::find_exact(size_t list, DuplicateReport& report) {
  std::vector<Group> best;
  Group group;
  std::array<uint64_t, 2> hash{};
  const auto end_group = [&] {
    if (group.size > 1) {
      ++report.exact_clusters;
      report.exact_copies += group.size - 1;
      keep_best(best, group, list, larger);
    }
    group = {};
  };
  RETURN_IF_ERROR(hashes_.drain([&](const HashRecord& record) -> Status {
    if (group.size > 0 && record.hash != hash) end_group();
    hash = record.hash;
    if (group.size > 0) {
      is_copy_[record.document] = true;
      RETURN_IF_ERROR(tell(record.document, group.documents.front(), true));
    }
    if (group.documents.size() < kListed) group.documents.push_back(record.document);
    ++group.size;
    return {};
  }));
  end_group();
  for (uint64_t d = 0; d < documents_; ++d) {
    if (!is_copy_[d]) continue;
    ASSIGN_OR_RETURN(const Stored one, stored(d));
    report.exact_bytes += one.bytes;
  }
  for (const Group& g : best) {
    ASSIGN_OR_RETURN(DuplicateCluster c, cluster(g.documents));
    ASSIGN_OR_RETURN(const Stored first, stored(g.documents.front()));
    c.size = g.size;
    c.bytes = first.bytes * (g.size - 1);
    report.exact.push_back(std::move(c));
  }
  return {};
}

// Sorts the keys of all bands of the documents that are not exact copies, and compares those that share a
// key. Similar documents are joined to sets, over all bands.
Status DuplicateFinder::find_near(size_t list, DuplicateReport& report) {
  std::vector<Stored> block(1024);
  for (uint64_t begin = 0; begin < documents_; begin += block.size()) {
    block.resize(std::min<uint64_t>(1024, documents_ - begin));
    RETURN_IF_ERROR(
        in_->read(static_cast<int64_t>(begin * sizeof(Stored)), std::as_writable_bytes(std::span(block))));
    for (uint64_t i = 0; i < block.size(); ++i)
      if (block[i].has_signature != 0 && !is_copy_[begin + i])
        for (size_t band = 0; band < bands_.count; ++band)
          RETURN_IF_ERROR(keys_.add({bands_.key(block[i].signature, band), begin + i}));
  }
  // Documents with an equal band come one after the other. Each is compared with earlier ones, of which one
  // is kept for each set of similar documents (`representatives`). Most bands belong to a single document, so
  // its signature is read only when a second document comes.
  Sets sets;
  bool crowded = false;
  std::optional<BandRecord> first;
  std::vector<std::pair<uint64_t, Signature>> representatives;
  RETURN_IF_ERROR(keys_.drain([&](const BandRecord& record) -> Status {
    if (!first || record.key != first->key) {
      first = record;
      representatives.clear();
      crowded = false;
      return {};
    }
    if (representatives.size() <= 1 && sets.root(first->document) == sets.root(record.document)) return {};
    if (representatives.empty()) {
      ASSIGN_OR_RETURN(const Stored one, stored(first->document));
      representatives.emplace_back(first->document, one.signature);
    }
    ASSIGN_OR_RETURN(const Stored one, stored(record.document));
    for (const auto& [document, signature] : representatives) {
      if (sets.root(document) == sets.root(record.document)) return {};
      if (estimated_jaccard(signature, one.signature) < threshold_) continue;
      sets.join(document, record.document);
      return {};
    }
    if (representatives.size() < DuplicateReport::kMaxRepresentatives) {
      representatives.emplace_back(record.document, one.signature);
      return {};
    }
    report.crowded_bands += crowded ? 0 : 1;
    crowded = true;
    ++report.not_compared;
    return {};
  }));
  std::vector<Group> best;
  std::unordered_map<uint64_t, int64_t> bytes;  // by first document: bytes of the others in its set
  for (const auto& [root, members] : sets.all()) {
    if (members.size() < 2) continue;
    ++report.near_clusters;
    report.near_copies += static_cast<int64_t>(members.size()) - 1;
    for (size_t i = 1; i < members.size(); ++i) {
      ASSIGN_OR_RETURN(const Stored one, stored(members[i]));
      bytes[root] += one.bytes;
      RETURN_IF_ERROR(tell(members[i], root, false));
    }
    report.near_bytes += bytes[root];
    Group g{members, static_cast<int64_t>(members.size())};
    g.documents.resize(std::min(g.documents.size(), kListed));
    keep_best(best, std::move(g), list, larger);
  }
  for (const Group& g : best) {
    ASSIGN_OR_RETURN(DuplicateCluster c, cluster(g.documents));
    c.size = g.size;
    c.bytes = bytes[g.documents.front()];
    report.near.push_back(std::move(c));
  }
  return {};
}

}  // namespace ostro::corpus_check
