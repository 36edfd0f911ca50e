#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "ostro/base/merkle.h"
#include "ostro/base/parallel.h"
#include "ostro/bundle/parts/ledger_files.h"
#include "ostro/chain/genesis_json.h"
#include "ostro/data/arrays/row_leaves.h"
#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/path.h"

namespace ostro::bundle {
namespace {

constexpr int64_t kBlocksAtOnce = 64;

// One component's rows, written block by block.
class RowsWriter {
 public:
  RowsWriter(const batches::DataSet::Part& part, const data::StoreLedger& ledger, int threads)
      : part_(part), ledger_(ledger), threads_(threads) {}

  Result<data::RowTree> write(io::WritableFile& file, const std::function<void(int64_t)>& done) {
    ASSIGN_OR_RETURN(const auto tables,
                     data::ChunkTables::open(*part_.fs, part_.folder, ledger_, part_.store->hash()));
    for (const data::Split split : data::kSplits) {
      const auto s = static_cast<size_t>(split);
      const int64_t rows = tree_.rows[s] = ledger_.split(split).rows;
      if (rows == 0) continue;
      ASSIGN_OR_RETURN(const data::RowLeaves leaves,
                       data::RowLeaves::open(*part_.fs, part_.folder, ledger_, *tables, split));
      constexpr int64_t kRows = data::RowTree::kBlockRows * kBlocksAtOnce;
      for (int64_t first = 0; first < rows; first += kRows) {
        RETURN_IF_ERROR(write_rows(leaves, first, std::min(kRows, rows - first), tree_.blocks[s], file));
        done(std::min(kRows, rows - first));
      }
    }
    return std::move(tree_);
  }

 private:
  Status write_rows(const data::RowLeaves& leaves, int64_t first, int64_t count,
                    std::vector<Sha256Digest>& blocks, io::WritableFile& file) const {
    constexpr int64_t kBlock = data::RowTree::kBlockRows;
    const int64_t number = (count + kBlock - 1) / kBlock;
    const size_t before = blocks.size();
    blocks.resize(before + static_cast<size_t>(number));
    std::string bytes(static_cast<size_t>(count * kRowBytes), '\0');
    RETURN_IF_ERROR(parallel_for(number, threads_, [&](int64_t b) -> Status {
      const int64_t begin = b * kBlock;
      ASSIGN_OR_RETURN(const auto rows, leaves.records(first + begin, std::min(kBlock, count - begin)));
      std::vector<Sha256Digest> hashes;
      char* to = bytes.data() + begin * kRowBytes;
      for (const data::RowRecord& row : rows) {
        std::memcpy(to, row.hash.data(), row.hash.size());
        std::memcpy(to + row.hash.size(), &row.tokens, sizeof(row.tokens));
        to += kRowBytes;
        hashes.push_back(data::row_leaf(row.hash, row.tokens));
      }
      blocks[before + static_cast<size_t>(b)] = merkle_root(hashes);
      return {};
    }));
    return file.append(bytes);
  }

  const batches::DataSet::Part& part_;
  const data::StoreLedger& ledger_;
  const int threads_;
  data::RowTree tree_;
};

std::vector<LedgerSource> sources_of(const data::StoreLedger& ledger) {
  std::vector<LedgerSource> out;
  std::array<int64_t, 2> first{};
  for (const data::FileLedger& file : ledger.files) {
    out.push_back({file.source.path, file.sha256, first, file.rows});
    for (size_t s = 0; s < 2; ++s) first[s] += file.rows[s];
  }
  return out;
}

}  // namespace

std::string sources_text(const std::vector<LedgerSource>& sources) {
  std::string out;
  for (const LedgerSource& s : sources)
    out += chain::canonical_text(nlohmann::json{
               {"file", s.file}, {"sha256", s.sha256}, {"first_row", s.first}, {"rows", s.rows}}) +
           "\n";
  return out;
}

Result<std::map<std::string, LedgerSum>> write_ledger_files(io::FileSystem& fs,
                                                            const batches::DataSet& stores,
                                                            const std::string& folder, int threads,
                                                            Progress& progress) {
  int64_t total = 0, done = 0;
  for (const batches::DataSet::Part& part : stores.parts())
    for (const data::Split split : data::kSplits) total += part.store->split(split).rows();
  std::map<std::string, LedgerSum> out;
  for (const batches::DataSet::Part& part : stores.parts()) {
    const std::string name = ledger_name(part.component.name), path = io::join_path(folder, name);
    ASSIGN_OR_RETURN(const data::StoreLedger ledger, data::read_ledger(*part.fs, part.folder));
    RETURN_IF_ERROR(fs.make_dirs(io::parent_path(path)));  // names of components may have parts
    ASSIGN_OR_RETURN(const auto file, fs.create(path + ".rows"));
    ASSIGN_OR_RETURN(const data::RowTree tree,
                     RowsWriter(part, ledger, threads).write(*file, [&](int64_t rows) {
                       done += rows;
                       progress.show("hashing rows", static_cast<double>(done) / static_cast<double>(total));
                     }));
    RETURN_IF_ERROR(file->close());
    out[name] = {data::store_root(tree), tree.rows};
    if (!ledger.root.empty() && ledger.root != out[name].root)
      return corrupt(fmt::format(
          "{}: its rows have the root {}, its ledger has {}: the store is damaged; see ostro data verify",
          part.folder, out[name].root, ledger.root));
    RETURN_IF_ERROR(fs.write_file(path + ".content.json", data::canonical(data::content_json(ledger))));
    RETURN_IF_ERROR(fs.write_file(path + ".sources", sources_text(sources_of(ledger))));
  }
  progress.end();
  return out;
}

}  // namespace ostro::bundle
