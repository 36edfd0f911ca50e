#include "ostro/prepare/store/join_in_place.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <type_traits>

#include "ostro/base/parallel.h"
#include "ostro/data/arrays/recorded_sums.h"
#include "ostro/data/arrays/row_tree.h"
#include "ostro/data/ledger/store_parts.h"

namespace ostro::prepare {
namespace {

using Recorded = data::PerArray<std::optional<std::vector<data::ChunkSum>>>;

// Reads checked elements of a part and converts them to their type on disk, since ids have another type in
// memory.
Status read_as_stored(const data::VerifiedArray& array, data::ElementType type, int64_t first,
                      std::span<std::byte> out) {
  return data::visit_elements(type, out, [&](auto elements) -> Status {
    using T = std::remove_const_t<typename decltype(elements)::element_type>;
    return array.read(first, std::span(reinterpret_cast<T*>(out.data()), elements.size()));
  });
}

template <typename T>
auto& of_array(T& arrays, data::Split split, data::ArrayId id) {
  return arrays[static_cast<size_t>(split)][static_cast<size_t>(id)];
}

class Join {
 public:
  Join(const std::vector<PartStore>& parts, const data::BuildSettings& settings, data::StoreLedger& ledger)
      : parts_(parts), settings_(settings), ledger_(ledger) {}

  // Fills in the splits of the ledger and returns the sums of all chunks. `first` are the recorded sums of
  // the first part.
  Result<data::PerArray<std::vector<data::ChunkSum>>> run(const Recorded& first) {
    for (const PartStore& part : parts_) {
      data::StorePart entry{.folder = part.folder, .hash = part.store->hash()};
      for (size_t s = 0; s < 2; ++s) {
        const data::SplitLedger& own = part.store->ledger().splits[s];
        ledger_.splits[s].rows += entry.rows[s] = own.rows;
        ledger_.splits[s].tokens += entry.tokens[s] = own.tokens;
        ledger_.splits[s].bytes += own.bytes;
      }
      ledger_.parts.push_back(std::move(entry));
    }
    data::PerArray<Task> tasks;
    for (const data::Split split : data::kSplits)
      for (const data::ArrayPlace& place : ledger_.places()) {
        ASSIGN_OR_RETURN(of_array(tasks, split, place.id),
                         plan(split, place, of_array(first, split, place.id)));
      }
    data::PerArray<std::vector<data::ChunkSum>> sums;
    for (const data::Split split : data::kSplits)
      for (const data::ArrayPlace& place : ledger_.places()) {
        ASSIGN_OR_RETURN(of_array(sums, split, place.id),
                         sum(split, place.id, of_array(tasks, split, place.id)));
      }
    return sums;
  }

 private:
  // An array of the joined store.
  struct Task {
    data::ArraySource source;
    data::ElementType type = data::ElementType::kInt64;
    int64_t elements = 0, chunk = 0;
    std::vector<data::ChunkSum> known;  // of its first chunks
  };

  Result<Task> plan(data::Split split, const data::ArrayPlace& place,
                    const std::optional<std::vector<data::ChunkSum>>& first) {
    const data::SplitLedger& all = ledger_.split(split);
    const data::ArrayLedger& own = parts_[0].store->ledger().split(split).array(place.id);
    Task task{.source = data::array_source("", ledger_, split, place),
              .type = own.type,
              .elements =
                  data::array_elements(place.id, all.rows, all.tokens, ledger_.preprocessing.fields.weights),
              .chunk = own.chunk,
              .known = {}};
    for (const PartStore& part : parts_)
      if (const data::ElementType type = part.store->ledger().split(split).array(place.id).type;
          type != own.type)
        return unsupported(
            fmt::format("{}: {} are {} there and {} in {}; a store whose arrays stay where they are has one "
                        "type of ids. Copy the rows instead, or build the parts with one data.id_type",
                        part.folder, place.path, data::element_name(type), data::element_name(own.type),
                        parts_[0].folder));
    // The full chunks of the first part are also chunks of the joined store, so their sums are known.
    if (first)
      task.known.assign(first->begin(), first->begin() + static_cast<ptrdiff_t>(own.elements / own.chunk));
    progress_.bytes_total += task.elements * static_cast<int64_t>(data::element_bytes(task.type));
    return task;
  }

  Result<std::vector<data::ChunkSum>> sum(data::Split split, data::ArrayId id, Task& task) {
    std::vector<data::ChunkSum> sums = std::move(task.known);
    const size_t known = sums.size();
    sums.resize(static_cast<size_t>((task.elements + task.chunk - 1) / task.chunk));
    const auto is_known = [&](int64_t chunk) {
      return chunk < static_cast<int64_t>(known) &&
             !(task.source.head && chunk == 0);  // has the number of rows
    };
    std::mutex mutex;
    RETURN_IF_ERROR(
        parallel_for(static_cast<int64_t>(sums.size()), settings_.threads_or_all(), [&](int64_t i) -> Status {
          const int64_t begin = i * task.chunk, size = std::min(task.chunk, task.elements - begin);
          if (!is_known(i)) {
            std::vector<std::byte> bytes(static_cast<size_t>(size) * data::element_bytes(task.type));
            RETURN_IF_ERROR(read(split, id, task, begin, bytes));
            sums[static_cast<size_t>(i)] = data::sum_chunk(task.type, bytes);
          }
          const std::lock_guard lock(mutex);
          progress_.count_chunk(id, i, size, data::element_bytes(task.type));
          if (settings_.progress) settings_.progress(progress_);
          return {};
        }));
    ledger_.split(split).array(id) = data::array_ledger(id, task.type, task.elements, task.chunk, sums);
    return sums;
  }

  Status read(data::Split split, data::ArrayId id, const Task& task, int64_t begin,
              std::span<std::byte> out) const {
    return task.source.read(begin, data::element_bytes(task.type), out,
                            [&](size_t piece, int64_t first, std::span<std::byte> own) {
                              const PartStore& part = parts_[task.source.pieces[piece].part];
                              return read_as_stored(part.store->split(split).array(id), task.type, first,
                                                    own);
                            });
  }

  const std::vector<PartStore>& parts_;
  const data::BuildSettings& settings_;
  data::StoreLedger& ledger_;
  data::BuildProgress progress_;
};

}  // namespace

std::vector<data::StorePart> parts_of_whole(const std::vector<PartStore>& parts,
                                            const std::string& cache_dir) {
  std::vector<data::StorePart> out;
  for (const PartStore& part : parts) {
    const data::StoreLedger& own = part.store->ledger();
    for (data::StorePart inner : own.parts) {
      inner.folder = data::folder_of_part(data::part_folder(part.folder, own, inner), cache_dir);
      out.push_back(std::move(inner));
    }
    if (own.parts.empty())
      out.push_back({.folder = data::folder_of_part(part.folder, cache_dir),
                     .hash = part.store->hash(),
                     .rows = {own.splits[0].rows, own.splits[1].rows},
                     .tokens = {own.splits[0].tokens, own.splits[1].tokens}});
  }
  return out;
}

Result<data::StoreLedger> join_in_place(io::FileSystem& fs, const std::vector<PartStore>& parts,
                                        const std::string& cache_dir, std::vector<data::FileLedger> files,
                                        const std::string& left_out, const data::BuildSettings& settings) {
  data::StoreLedger whole;
  whole.parts = parts_of_whole(parts, cache_dir);
  // Checks that the written paths lead to the parts again. A path with ".." after a symbolic link would not.
  RETURN_IF_ERROR(data::check_parts(fs, cache_dir, whole));
  const PartStore& first = parts[0];
  ASSIGN_OR_RETURN(const auto tables,
                   data::ChunkTables::open(fs, first.folder, first.store->ledger(), first.store->hash()));
  ASSIGN_OR_RETURN(const Recorded recorded,
                   data::recorded_sums(fs, first.folder, first.store->ledger(), *tables));
  data::StoreLedger ledger;
  ledger.preprocessing = first.store->ledger().preprocessing;
  ledger.preprocessing.left_out = left_out;
  ledger.files = std::move(files);
  ASSIGN_OR_RETURN(const auto sums, Join(parts, settings, ledger).run(recorded));
  ledger.parts = std::move(whole.parts);
  RETURN_IF_ERROR(data::record_sums(fs, cache_dir, ledger, sums));
  // The first rows are those of the first part.
  Result<data::RowTree> known = data::kept_row_tree(fs, first.folder);
  if (!known.ok() || data::store_root(*known) != first.store->ledger().root) known = data::RowTree();
  RETURN_IF_ERROR(data::finish_store(fs, cache_dir, ledger, settings.threads_or_all(), *known, known->rows));
  return ledger;
}

}  // namespace ostro::prepare
