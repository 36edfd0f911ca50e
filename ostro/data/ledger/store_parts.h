// Where the elements of a store's arrays lie: in one Zarr array, or in those of several folders, one after
// the other (docs/formats/token_store.md, "Parts").
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/data/ledger/ledger.h"
#include "ostro/data/ledger/store_damage.h"
#include "ostro/io/files/file_system.h"

namespace ostro::data {

// Elements [first, first + count) of the Zarr array in the folder `path`, from element `begin` of the whole
// on.
struct ArrayPiece {
  std::string path;
  size_t part = 0;  // of StoreLedger::parts
  int64_t begin = 0, first = 0, count = 0;
  int64_t added = 0;  // to each element: rows end so much later in the whole
};

struct ArraySource {
  StoreName store;
  std::string path;                // of the array, or, of one in parts, what errors call it
  std::vector<ArrayPiece> pieces;  // of an array in parts
  std::optional<int64_t> head;     // element 0 of offsets in parts, before the pieces
  bool in_parts = false;

  // Reads elements [start, ...) of `item` bytes, calling read(piece number, element of the piece's array,
  // bytes) for each piece that has some of them. Only for arrays in parts. kCorrupt for ends of rows that no
  // array has.
  Status read(int64_t start, size_t item, std::span<std::byte> out,
              const std::function<Status(size_t, int64_t, std::span<std::byte>)>& read) const;
  // What to call elements [start, start + count) in an error: the array and the pieces that have them.
  std::string describe(int64_t start, int64_t count) const;

 private:
  // The piece that has an element, or the one behind the head.
  size_t piece_of(int64_t element) const;
};

// The source of an array of the store whose ledger is in `cache_dir`.
ArraySource array_source(const std::string& cache_dir, const StoreLedger& ledger, Split split,
                         const ArrayPlace& place);

// What errors call the store whose ledger is in `cache_dir`.
StoreName store_name(const std::string& cache_dir, const StoreLedger& ledger);

// The folder of a part, without ".." where it can be: those that stand in a store's ledger mean names, not
// what symbolic links make of them.
std::string part_folder(const std::string& cache_dir, const StoreLedger& ledger, const StorePart& part);

// What StorePart::folder is of the store in `folder`: a relative path, which is one from the working
// directory on, is relative to `cache_dir` there, so that both can be moved together; others are kept.
std::string folder_of_part(const std::string& folder, const std::string& cache_dir);

// That the stores that are parts are there and are what they were. kInvalidArgument names the first that is
// not.
Status check_parts(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger);

}  // namespace ostro::data
