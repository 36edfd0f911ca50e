// WeightDifferences: finds the weights that differ between the files that an export would write and those
// that are there, and what the differences have in common.
//
// It gets the pieces of files that differ (provenance/compared_files.h), so it costs nothing when none do.
// Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/io/arrays/safetensors.h"
#include "ostro/io/files/file_system.h"

namespace ostro::convert {

// The place of a tensor in a file. `dtype`: "F32", "BF16", "F16" or "I8".
struct TensorPlace {
  std::string name, dtype;
  io::Extents shape;
  int64_t begin = 0, end = 0;  // bytes of the file
};

// The tensors of a safetensors file whose first bytes, the header, are these.
std::vector<TensorPlace> places_of_header(std::string_view header);

// The differences of one tensor. "written" is what the export gives, "there" what the directory has.
struct TensorDifference {
  std::string file;
  TensorPlace tensor;
  std::string other;  // why its elements cannot be compared: it is not there, or has another type or shape
  int64_t differing = 0, first = -1;  // the number of elements that differ; the number of the first of them
  double written = 0, there = 0;      // the values of that element
  // Counts of differing elements. cut_off: the one there is the next number towards zero from the one
  // written; neighbours: a neighbouring number. as_bf16, as_f16: for f32, the written number rounded to that
  // type. other_bits: nearly the written number, when the bits are read as the other type of 16 bits.
  int64_t cut_off = 0, neighbours = 0, as_bf16 = 0, as_f16 = 0, other_bits = 0;
};

class WeightDifferences {
 public:
  // `places` returns the tensors of a file that is written, from its name and its first bytes.
  using Places = std::function<std::vector<TensorPlace>(const std::string& file, const std::string& begin)>;
  WeightDifferences(io::FileSystem& fs, std::string directory, Places places)
      : fs_(fs), directory_(std::move(directory)), places_(std::move(places)) {}

  // Adds a piece of a file that differs, at `offset`. `begin` has the first bytes of the file as written.
  void add(const std::string& file, const std::string& begin, int64_t offset,
           std::span<const std::byte> written, std::span<const std::byte> there);

  // The tensors that differ, in the order of the files and of their tensors.
  std::vector<TensorDifference> tensors() const;
  // Other faults of a file that differs: it cannot be read, it has tensors that are not written, or its
  // header has the same meaning in other words. Empty: only the bytes of tensors() differ.
  std::string otherwise(const std::string& file) const;

 private:
  struct File {
    std::vector<TensorDifference> tensors;
    // Of a file with another header: its tensors are found by their names.
    std::optional<io::SafetensorsReader> reader;
    std::string unreadable, otherwise;
  };

  File& file_of(const std::string& file, const std::string& begin);

  io::FileSystem& fs_;
  const std::string directory_;
  const Places places_;
  std::map<std::string, File> files_;
};

// Returns a sentence with a cause that explains all differences, or "". `elements`: the number of elements of
// all tensors.
std::string common_cause(const std::vector<TensorDifference>& tensors, int64_t elements);

// For a tensor of 16 bits: returns a sentence when the values there are the exact weights rounded to the
// other type of 16 bits first, and then to this one; else "".
std::string twice_rounded(const std::string& dtype, std::span<const float> exact,
                          std::span<const float> there);

// Returns the factor f with which, up to roundings, there = written + f * (written - base): 1 when the
// adapter was added twice, -1 when it was not added. Nothing when no factor fits.
std::optional<double> added_again(std::span<const float> base, std::span<const float> written,
                                  std::span<const float> there);

}  // namespace ostro::convert
