// ArraySource: says where the elements of a store's arrays are.
//
// They are in one Zarr array, or in the Zarr arrays of several folders, one after the other
// (docs/reference/formats/token_store.md, "Parts"). A value; its functions may be called by several threads.
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

// Elements [first, first + count) of the Zarr array in folder `path`. In the whole array they are elements
// [begin, begin + count).
struct ArrayPiece {
  std::string path;
  size_t part = 0;  // index into StoreLedger::parts
  int64_t begin = 0, first = 0, count = 0;
  int64_t added = 0;  // added to each element; for offsets: where the part begins in the whole
};

struct ArraySource {
  StoreName store;
  std::string path;                // of the array; for an array in parts, its name in errors
  std::vector<ArrayPiece> pieces;  // only for an array in parts
  std::optional<int64_t> head;     // for offsets in parts: element 0, which comes before the pieces
  bool in_parts = false;

  // Fills `out` with elements from `start` on, of `item` bytes each. Calls read(piece number, element of the
  // piece's array, bytes) for each piece that holds some of them. Only for arrays in parts. kCorrupt for row
  // ends that are impossible.
  Status read(int64_t start, size_t item, std::span<std::byte> out,
              const std::function<Status(size_t, int64_t, std::span<std::byte>)>& read) const;
  // Names elements [start, start + count) for an error: the array and the pieces that hold them.
  std::string describe(int64_t start, int64_t count) const;

 private:
  // The piece that holds an element; for the head, the first piece.
  size_t piece_of(int64_t element) const;
};

// The source of an array of the store whose ledger is in `cache_dir`.
ArraySource array_source(const std::string& cache_dir, const StoreLedger& ledger, Split split,
                         const ArrayPlace& place);

// The name in errors of the store whose ledger is in `cache_dir`.
StoreName store_name(const std::string& cache_dir, const StoreLedger& ledger);

// The path of a part's folder, with ".." removed where possible. The ".." in a ledger refers to names in the
// path, and not to the targets of symbolic links.
std::string part_folder(const std::string& cache_dir, const StoreLedger& ledger, const StorePart& part);

// StorePart::folder for the store in `folder`. A path that is relative to the working directory becomes
// relative to `cache_dir`, so that both folders can be moved together. Other paths stay as they are.
std::string folder_of_part(const std::string& folder, const std::string& cache_dir);

// Checks that the stores of all parts exist and are unchanged. kInvalidArgument names the first one that is
// not.
Status check_parts(io::FileSystem& fs, const std::string& cache_dir, const StoreLedger& ledger);

}  // namespace ostro::data
