// WeightDifferences: which weights differ between the files that an export would write and those that are
// there, and what their differences have in common.
//
// It is fed with the pieces that differ (provenance/compared_files.h), so it costs nothing where none do.
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

// Where a tensor is in a file. `dtype`: "F32", "BF16", "F16" or "I8".
struct TensorPlace {
  std::string name, dtype;
  io::Extents shape;
  int64_t begin = 0, end = 0;  // bytes of the file
};

// The tensors of a safetensors file that begins so: its header, as it was written.
std::vector<TensorPlace> places_of_header(std::string_view header);

// The differences of one tensor. "written" is what the export gives, "there" what the directory has.
struct TensorDifference {
  std::string file;
  TensorPlace tensor;
  std::string other;  // why its elements cannot be compared: it is not there, or of another type or shape
  int64_t differing = 0, first = -1;  // elements
  double written = 0, there = 0;      // of the first
  // How many of the differing elements are: the next number towards zero; a neighbouring number; in f32 the
  // number that is written rounded to bf16, or f16; about that number when their bits are read as the other
  // type of 16 bits.
  int64_t cut_off = 0, neighbours = 0, as_bf16 = 0, as_f16 = 0, other_bits = 0;
};

class WeightDifferences {
 public:
  // `places` gives the tensors of a file that is written, by its name and its first bytes.
  using Places = std::function<std::vector<TensorPlace>(const std::string& file, const std::string& begin)>;
  WeightDifferences(io::FileSystem& fs, std::string directory, Places places)
      : fs_(fs), directory_(std::move(directory)), places_(std::move(places)) {}

  // A piece of a file that differs; `begin` is what the file began with when it was written.
  void add(const std::string& file, const std::string& begin, int64_t offset,
           std::span<const std::byte> written, std::span<const std::byte> there);

  // In the order of the files and of their tensors.
  std::vector<TensorDifference> tensors() const;
  // What else is wrong with a file that differs: it cannot be read, it has tensors that are not written, or
  // its header says the same otherwise. Empty: only the bytes of tensors() differ.
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

// What all differences together show, in a sentence, or nothing. `elements`: of all tensors.
std::string common_cause(const std::vector<TensorDifference>& tensors, int64_t elements);

// Of a tensor of 16 bits: whether what is there comes of the exact weights by rounding them to the other type
// of 16 bits first. A sentence, or nothing.
std::string twice_rounded(const std::string& dtype, std::span<const float> exact,
                          std::span<const float> there);

// The factor by which the way from `base` to `written` has to be gone on from `written` to come to `there`: 1
// where what was added once is added twice, -1 where it was not added. Nothing: another direction.
std::optional<double> added_again(std::span<const float> base, std::span<const float> written,
                                  std::span<const float> there);

}  // namespace ostro::convert
