#include "ostro/checkpoint/save.h"

#include <algorithm>
#include <set>

#include "ostro/base/failpoint.h"
#include "ostro/base/parallel.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/io/arrays/zarr.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::checkpoint {
namespace {

int64_t smallest_factor(int64_t n) {
  for (int64_t f = 2; f * f <= n; ++f) {
    if (n % f == 0) return f;
  }
  return n;
}

Status check_tensors(const Info& info, std::span<const Tensor> tensors, const std::string& root) {
  if (info.step < 0) return invalid_argument(fmt::format("{}: a checkpoint of step {}", root, info.step));
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) {
    specs.push_back(tensor.spec);
    if (static_cast<int64_t>(tensor.bytes.size()) != tensor.spec.bytes()) {
      return invalid_argument(fmt::format("{}: tensor {}: {} bytes given, {} need {}", root, tensor.spec.path,
                                          tensor.bytes.size(), tensor.spec.type_str(), tensor.spec.bytes()));
    }
  }
  const Status status = validate(specs, root);
  return status.ok() ? status : Status(invalid_argument(status.error().message()));
}

// The directories above the tensors' arrays, parents first; "" is the checkpoint itself.
std::set<std::string> groups_of(std::span<const Tensor> tensors) {
  std::set<std::string> groups = {""};
  for (const Tensor& tensor : tensors) {
    for (size_t slash = tensor.spec.path.find('/'); slash != std::string::npos;
         slash = tensor.spec.path.find('/', slash + 1)) {
      groups.insert(tensor.spec.path.substr(0, slash));
    }
  }
  return groups;
}

io::ZarrSpec array_spec(const TensorSpec& spec, int64_t max_chunk_bytes) {
  io::ZarrSpec out;
  out.dtype = zarr_dtype(spec.dtype);
  out.shape = spec.shape;
  out.chunk = chunk_of_cell(cell_extents(spec), dtype_size(spec.dtype), max_chunk_bytes);
  out.separator = '.';  // all chunks of an array in one directory
  out.dimension_names = spec.axes;
  return out;
}

// Writes all arrays into `directory`, hashing cells on the way.
Status write_arrays(io::FileSystem& fs, const std::string& directory, std::span<const Tensor> tensors,
                    const SaveOptions& options, std::vector<CellHashes>& hashes) {
  std::vector<io::ZarrArray> arrays;
  std::vector<std::vector<Box>> boxes;
  std::vector<std::pair<size_t, size_t>> work;  // (tensor, cell)
  for (size_t t = 0; t < tensors.size(); ++t) {
    const TensorSpec& spec = tensors[t].spec;
    ASSIGN_OR_RETURN(io::ZarrArray array,
                     io::ZarrArray::create(fs, io::join_path(directory, spec.path),
                                           array_spec(spec, options.max_chunk_bytes), io::ZarrWrite::kFresh));
    arrays.push_back(std::move(array));
    boxes.push_back(cells_of(spec));
    hashes.emplace_back(boxes[t].size());
    for (size_t c = 0; c < boxes[t].size(); ++c) work.emplace_back(t, c);
  }
  return parallel_for(static_cast<int64_t>(work.size()), options.threads, [&](int64_t i) -> Status {
    const auto [t, c] = work[static_cast<size_t>(i)];
    if (c == 0) failpoint("array_write");
    const Tensor& tensor = tensors[t];
    const Box& box = boxes[t][c];
    std::span<const std::byte> bytes = tensor.bytes;
    std::vector<std::byte> dense;
    if (box.shape != tensor.spec.shape) {
      const int64_t item = dtype_size(tensor.spec.dtype);
      dense.resize(static_cast<size_t>(io::product(box.shape) * item));
      io::copy_box(bytes, tensor.spec.shape, box.start, dense, box.shape, Extents(box.shape.size(), 0),
                   box.shape, item);
      bytes = dense;
    }
    hashes[t][c] = sha256(bytes);
    return arrays[t].write_box(box.start, box.shape, bytes);
  });
}

// Moves a complete checkpoint to its place.
Status publish(io::FileSystem& fs, const std::string& temporary, const std::string& path) {
  const std::string root = io::parent_path(path), old = path + ".old";
  ASSIGN_OR_RETURN(const bool replaces, fs.exists(path));
  if (!replaces) {
    RETURN_IF_ERROR(fs.rename(temporary, path));
    return fs.sync_dir(root);
  }
  // A directory cannot replace a full one in one operation; list_checkpoints knows the name in between.
  RETURN_IF_ERROR(fs.rename(path, old));
  RETURN_IF_ERROR(fs.sync_dir(root));
  RETURN_IF_ERROR(fs.rename(temporary, path));
  RETURN_IF_ERROR(fs.sync_dir(root));
  return remove_checkpoint(fs, old);
}

}  // namespace

Extents chunk_of_cell(Extents cell, int64_t item_bytes, int64_t max_bytes) {
  for (int64_t& extent : cell) {
    while (extent > 1 && io::product(cell) * item_bytes > max_bytes) extent /= smallest_factor(extent);
  }
  return cell;
}

Result<Saved> save(io::FileSystem& fs, const std::string& root, const Info& info,
                   std::span<const Tensor> tensors, const SaveOptions& options) {
  RETURN_IF_ERROR(check_tensors(info, tensors, root));
  RETURN_IF_ERROR(fs.make_dirs(root));
  RETURN_IF_ERROR(remove_leftovers(fs, root));
  const std::string path = io::join_path(root, step_directory(info.step)), temporary = path + ".tmp";

  Manifest manifest{.info = info};
  for (const Tensor& tensor : tensors) manifest.tensors.push_back(tensor.spec);
  for (const std::string& group : groups_of(tensors)) {
    RETURN_IF_ERROR(io::write_zarr_group(fs, io::join_path(temporary, group)));
  }
  RETURN_IF_ERROR(write_arrays(fs, temporary, tensors, options, manifest.cells));
  RETURN_IF_ERROR(fs.sync_tree(temporary));
  std::vector<Sha256Digest> arrays;
  for (const CellHashes& cells : manifest.cells) arrays.push_back(array_hash(cells));
  manifest.name = state_name(manifest.tensors, arrays);

  failpoint("manifest");
  // A checkpoint of this state that was kept for good stays so when it is saved again for another reason.
  if (const auto existing = read_manifest(fs, path); existing.ok() && existing->name == manifest.name) {
    if (existing->info.kind == Kind::kPermanent) manifest.info.kind = Kind::kPermanent;
  }
  RETURN_IF_ERROR(
      io::write_file_atomically(fs, io::join_path(temporary, kManifestName), manifest_json(manifest)));
  RETURN_IF_ERROR(publish(fs, temporary, path));
  return Saved{path, manifest.name};
}

}  // namespace ostro::checkpoint
