// ArrayReader: reads ranges of an array of a store, whether it is one Zarr array or several in the parts of
// the store. It gives the elements as they are on disk and does not check them; VerifiedArray does. Errors
// are those of reading. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "ostro/data/ledger/element_type.h"
#include "ostro/data/ledger/store_parts.h"
#include "ostro/io/arrays/zarr_1d.h"

namespace ostro::data {

// Thread-safe. The file system must outlive it.
class ArrayReader {
 public:
  // Opens an array of `elements` elements of this type. An array that is not in parts must have chunks of
  // `chunk` elements. The arrays of parts are opened only when they are first read, since a cache may have
  // thousands.
  static Result<ArrayReader> open(io::FileSystem& fs, ArraySource source, ElementType type, int64_t elements,
                                  int64_t chunk);
  ArrayReader(ArrayReader&&) noexcept;
  ~ArrayReader();

  const ArraySource& source() const;
  // Reads elements [start, start + out.size() / element size) as they are on disk. Elements that were never
  // written are an error with `must_exist`, else 0.
  Status read(int64_t start, std::span<std::byte> out, bool must_exist) const;

 private:
  struct State;
  explicit ArrayReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::data
