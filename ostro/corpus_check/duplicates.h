// DuplicateFinder: finds documents that occur more than once in a corpus: exact duplicates and near
// duplicates.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/base/sha256.h"
#include "ostro/corpus_check/minhash.h"
#include "ostro/corpus_check/spill_sort.h"
#include "ostro/io/files/file_system.h"

namespace ostro::corpus_check {

// The place of a document: file number over all components, and the document's number in the file.
struct DocumentPlace {
  int64_t source = 0, number = 0;
};

struct DuplicateCluster {
  std::vector<DocumentPlace> documents;  // the first documents of the cluster, in order
  int64_t size = 0;                      // number of documents in the cluster
  int64_t bytes = 0;                     // bytes of all documents except the first
  double least_jaccard = 1;  // smallest estimated Jaccard index between the first and another listed document
};

struct DuplicateReport {
  int64_t documents = 0;
  int64_t exact_copies = 0, exact_bytes = 0, exact_clusters = 0;
  std::vector<DuplicateCluster> exact;  // largest first
  int64_t near_copies = 0, near_bytes = 0, near_clusters = 0;
  std::vector<DuplicateCluster> near;  // without exact copies of earlier documents
  // A band is crowded when more than kMaxRepresentatives documents share it without being alike. The further
  // documents are not kept for comparison in this band: later ones are compared with them only if they share
  // another band. `not_compared` counts the documents that were not kept.
  int64_t crowded_bands = 0, not_compared = 0;
  static constexpr size_t kMaxRepresentatives = 32;
};

// Collects documents in order, then finds duplicates. Not thread-safe. Memory: `memory` bytes for sorting,
// one bit for every document and a few words for every near duplicate. Everything else is in files below
// `folder`, which must exist. Errors: those of these files.
class DuplicateFinder {
 public:
  DuplicateFinder(io::FileSystem& fs, std::string folder, double near_threshold, int64_t memory);

  // `signature` is null for a document without words; it cannot be a near duplicate.
  Status add(const DocumentPlace& place, int64_t bytes, const Sha256Digest& hash, const Signature* signature);

  int64_t documents() const { return static_cast<int64_t>(documents_); }  // added so far

  // Told of every document that repeats an earlier one: the first of its group, and whether the text is the
  // same. All exact copies come before the near duplicates.
  using OnCopy = std::function<void(const DocumentPlace& copy, const DocumentPlace& first, bool is_exact)>;
  // The report lists at most `list` clusters of each kind, with at most 20 documents each. Call it once.
  Result<DuplicateReport> finish(size_t list, OnCopy on_copy = {});

 private:
  struct HashRecord {
    std::array<uint64_t, 2> hash;
    uint64_t document;
    auto operator<=>(const HashRecord&) const = default;
  };
  struct BandRecord {
    uint64_t key, document;
    auto operator<=>(const BandRecord&) const = default;
  };
  struct Stored {
    DocumentPlace place;
    int64_t bytes;
    int64_t has_signature;
    Signature signature;
  };
  static constexpr size_t kListed = 20;

  Status flush();
  Status tell(uint64_t copy, uint64_t first, bool is_exact) const;
  Result<Stored> stored(uint64_t document) const;
  Status find_exact(size_t list, DuplicateReport& report);
  Status find_near(size_t list, DuplicateReport& report);
  Result<DuplicateCluster> cluster(const std::vector<uint64_t>& documents) const;

  io::FileSystem& fs_;
  std::string folder_;
  double threshold_;
  Bands bands_;
  SpillSorter<HashRecord> hashes_;
  SpillSorter<BandRecord> keys_;
  std::vector<Stored> buffer_;
  std::unique_ptr<io::WritableFile> out_;
  std::unique_ptr<io::RandomAccessFile> in_;
  uint64_t documents_ = 0;
  std::vector<bool> is_copy_;
  OnCopy on_copy_;
};

}  // namespace ostro::corpus_check
