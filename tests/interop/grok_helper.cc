// Reads and writes the layout of Grok-1's release for check_grok.py.
//   grok_helper read FILE...      "read: what" or "refused: why" for each
//   grok_helper hashes DIR        each tensor: name, SHA-256 of its bytes, of its scales', of its f32 rows
//   and of these as
//                                 the release's program rounds them
//   grok_helper copy DIR OUT      writes what it reads
//   grok_helper hollow OUT        Grok-1's 770 files, all elements zeros that take no space
#include <fmt/core.h>

#include <string>
#include <vector>

#include "ostro/base/sha256.h"
#include "ostro/grok/release/reader.h"
#include "ostro/grok/release/writer.h"
#include "ostro/io/files/local_file_system.h"

using namespace ostro;
using namespace ostro::grok;

namespace {

void read_file(io::FileSystem& fs, const std::string& path) {
  const auto file = fs.open(path);
  const auto tensor = file.ok() ? read_pickle(**file) : Result<StoredTensor>(file.error());
  if (!tensor.ok()) return fmt::print("refused: {}\n", tensor.error().message());
  fmt::print("read: {} at {}", describe(*tensor), tensor->weight.begin);
  if (tensor->scales) fmt::print(" and {}", tensor->scales->begin);
  fmt::print("\n");
}

struct Stored {
  std::vector<std::byte> weight, scales;
};

Result<Stored> read_stored(const TensorFile& file) {
  Stored out;
  out.weight.resize(static_cast<size_t>(file.stored().weight.bytes));
  RETURN_IF_ERROR(file.read_stored(0, file.rows(), out.weight));
  if (file.stored().scales) out.scales.resize(static_cast<size_t>(file.stored().scales->bytes));
  RETURN_IF_ERROR(file.read_scales(out.scales));
  return out;
}

Status hashes(io::FileSystem& fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const Release release, Release::open(fs, directory));
  for (const Leaf& leaf : release.leaves()) {
    ASSIGN_OR_RETURN(const TensorFile file, release.open_tensor(leaf));
    ASSIGN_OR_RETURN(const Stored stored, read_stored(file));
    fmt::print("{} {} {}", leaf.name, sha256_hex(std::span<const std::byte>(stored.weight)),
               sha256_hex(std::span<const std::byte>(stored.scales)));
    for (const Dequantize mode : {Dequantize::kExact, Dequantize::kReference}) {
      std::vector<float> rows(static_cast<size_t>(file.rows() * file.columns()));
      RETURN_IF_ERROR(file.read_rows(0, file.rows(), mode, rows));
      fmt::print(" {}", sha256_hex(std::as_bytes(std::span(rows))));
    }
    fmt::print("\n");
  }
  return {};
}

Status copy(io::FileSystem& fs, const std::string& directory, const std::string& out) {
  ASSIGN_OR_RETURN(const Release release, Release::open(fs, directory));
  RETURN_IF_ERROR(begin_release(fs, out, release.shape()));
  for (const Leaf& leaf : release.leaves()) {
    ASSIGN_OR_RETURN(const TensorFile file, release.open_tensor(leaf));
    ASSIGN_OR_RETURN(const Stored stored, read_stored(file));
    RETURN_IF_ERROR(write_tensor(fs, out, leaf, [&](const StoredArray& array, const Append& append) {
      return append(array.dtype == leaf.tensor.weight.dtype ? stored.weight : stored.scales);
    }));
  }
  return {};
}

Status hollow(io::FileSystem& fs, const std::string& out) {
  RETURN_IF_ERROR(begin_release(fs, out, GrokShape()));
  for (const Leaf& leaf : make_leaves(GrokShape())) RETURN_IF_ERROR(write_hollow_tensor(fs, out, leaf));
  return {};
}

Status run(int argc, char** argv) {
  io::FileSystem& fs = io::local_file_system();
  const std::string command = argc > 2 ? argv[1] : "";
  if (command == "read") {
    for (int i = 2; i < argc; ++i) read_file(fs, argv[i]);
    return {};
  }
  if (command == "hashes") return hashes(fs, argv[2]);
  if (command == "copy" && argc == 4) return copy(fs, argv[2], argv[3]);
  if (command == "hollow") return hollow(fs, argv[2]);
  return invalid_argument("usage: grok_helper read FILE... | hashes DIR | copy DIR OUT | hollow OUT");
}

}  // namespace

int main(int argc, char** argv) {
  const Status status = run(argc, argv);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.error().message());
  return status.ok() ? 0 : 1;
}
