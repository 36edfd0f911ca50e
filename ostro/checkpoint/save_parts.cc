#include "ostro/checkpoint/save_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/base/failpoint.h"
#include "ostro/base/log.h"
#include "ostro/base/parallel.h"
#include "ostro/checkpoint/catalog.h"
#include "ostro/checkpoint/part_reader.h"
#include "ostro/io/arrays/zarr.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::checkpoint {
namespace {

// The directories above the tensors' arrays, parents first; "" is the checkpoint itself.
std::set<std::string> groups_of(std::span<const TensorSpec> tensors) {
  std::set<std::string> groups = {""};
  for (const TensorSpec& spec : tensors) {
    for (size_t slash = spec.path.find('/'); slash != std::string::npos;
         slash = spec.path.find('/', slash + 1)) {
      groups.insert(spec.path.substr(0, slash));
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

// In an object store a checkpoint is written where it will be, and the manifest makes it one. What is there
// goes first, its manifest before all else. Its text stays for finish_save.
Status clear_place(io::FileSystem& fs, const std::string& path) {
  const std::string manifest = io::join_path(path, kManifestName), replaced = path + kReplacedManifest;
  const auto text = fs.read_file(manifest);
  if (text.ok()) RETURN_IF_ERROR(io::write_file_atomically(fs, replaced, *text));
  if (!text.ok() && text.error().code() != ErrorCode::kNotFound) return text.error();
  RETURN_IF_ERROR(fs.remove(manifest));
  return fs.remove_all(path);
}

// Whether the checkpoint that is there has the state that is to be saved, cut into the same chunks, and is
// whole. Then there is no moment without it: clearing its place could leave a run that is killed now without
// any checkpoint. Error: it cannot be read now, which says nothing of it.
Result<bool> is_saved(io::FileSystem& fs, const std::string& path, const Info& info,
                      std::span<const TensorSpec> tensors, const SaveOptions& options) {
  const auto look = [&]() -> Status {
    const Status other = not_found("another checkpoint");
    ASSIGN_OR_RETURN(const Checkpoint there, Checkpoint::open(fs, path));
    const Manifest& manifest = there.manifest();
    if (info.chain_head.empty() || manifest.info.chain_head != info.chain_head ||
        manifest.info.numerics_version != info.numerics_version ||
        !std::equal(tensors.begin(), tensors.end(), manifest.tensors.begin(), manifest.tensors.end()))
      return other;
    std::vector<std::string> paths;
    for (const TensorSpec& spec : tensors) {
      paths.push_back(spec.path);
      ASSIGN_OR_RETURN(const io::ZarrArray array, io::ZarrArray::open(fs, io::join_path(path, spec.path)));
      if (array.spec().chunk != array_spec(spec, options.max_chunk_bytes).chunk) return other;
    }
    log_info(fmt::format("{} is there already; it is read to see whether it is whole", path));
    ASSIGN_OR_RETURN(const PartReader reader, PartReader::open(fs, there, paths));
    return reader.check({});
  };
  const Status found = look();
  if (!found.ok() && found.error().code() == ErrorCode::kIo) return found.error();
  return found.ok();
}

Status make_arrays(io::FileSystem& fs, const std::string& temporary, std::span<const TensorSpec> tensors,
                   const SaveOptions& options) {
  for (const std::string& group : groups_of(tensors))
    RETURN_IF_ERROR(io::write_zarr_group(fs, io::join_path(temporary, group)));
  for (const TensorSpec& spec : tensors)
    RETURN_IF_ERROR(io::ZarrArray::create(fs, io::join_path(temporary, spec.path),
                                          array_spec(spec, options.max_chunk_bytes), io::ZarrWrite::kFresh));
  return {};
}

// The manifest of a checkpoint that is being replaced, or that stayed.
Result<Manifest> replaced_manifest(io::FileSystem& fs, const std::string& path) {
  auto there = read_manifest(fs, path);
  if (!fs.is_object_store(path) || there.ok()) return there;
  const std::string file = path + kReplacedManifest;
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(file));
  return parse_manifest(text, file);
}

// In an object store the place has none, save where the checkpoint of this state stayed there, or a process
// that lost the run's lock has put its own at the last moment.
Status write_manifest(io::FileSystem& fs, const std::string& file, const std::string& text) {
  if (!fs.is_object_store(file)) return io::write_file_atomically(fs, file, text);
  const auto there = fs.read_file(file);
  if (there.ok()) return *there == text ? Status() : io::write_file_atomically(fs, file, text);
  if (there.error().code() != ErrorCode::kNotFound) return there.error();
  return io::write_file_once(fs, file, text);
}

// Moves a complete checkpoint to its place.
Status publish(io::FileSystem& fs, const std::string& temporary, const std::string& path) {
  if (temporary == path) return fs.remove(path + kReplacedManifest);
  const std::string root = io::parent_path(path), old = path + ".old";
  ASSIGN_OR_RETURN(const bool replaces, fs.exists(path));
  if (!replaces) {
    RETURN_IF_ERROR(fs.rename(temporary, path));
    return fs.sync_dir(root);
  }
  // A directory cannot replace a full one in one operation. Between the two renames the old checkpoint has
  // the name *.old, which list_checkpoints also lists.
  RETURN_IF_ERROR(fs.rename(path, old));
  RETURN_IF_ERROR(fs.sync_dir(root));
  RETURN_IF_ERROR(fs.rename(temporary, path));
  RETURN_IF_ERROR(fs.sync_dir(root));
  return remove_checkpoint(fs, old);
}

}  // namespace

std::string temporary_directory(io::FileSystem& fs, const std::string& root, int64_t step,
                                const std::string& mark) {
  if (fs.is_object_store(root)) return io::join_path(root, step_directory(step));
  return io::join_path(root, step_directory(step)) + (mark.empty() ? "" : "." + mark) + ".tmp";
}

Status begin_save(io::FileSystem& fs, const std::string& root, const std::string& temporary, const Info& info,
                  std::span<const TensorSpec> tensors, const SaveOptions& options) {
  if (info.step < 0) return invalid_argument(fmt::format("{}: a checkpoint of step {}", root, info.step));
  const Status status = validate(tensors, root);
  if (!status.ok()) return invalid_argument(status.error().message());
  RETURN_IF_ERROR(fs.make_dirs(root));
  RETURN_IF_ERROR(remove_leftovers(fs, root));
  if (fs.is_object_store(root)) {
    ASSIGN_OR_RETURN(const bool saved, is_saved(fs, temporary, info, tensors, options));
    if (saved) return {};
    RETURN_IF_ERROR(clear_place(fs, temporary));
  }
  return make_arrays(fs, temporary, tensors, options);
}

Result<io::ZarrArray> open_array_to_write(io::FileSystem& fs, const std::string& temporary,
                                          const TensorSpec& spec, const SaveOptions& options) {
  return io::ZarrArray::created(fs, io::join_path(temporary, spec.path),
                                array_spec(spec, options.max_chunk_bytes), io::ZarrWrite::kFresh);
}

Result<std::vector<Sha256Digest>> write_cells(io::FileSystem& fs, const std::string& temporary,
                                              std::span<const TensorSpec> tensors,
                                              std::span<const CellData> cells, const SaveOptions& options) {
  std::vector<io::ZarrArray> arrays;
  std::vector<std::vector<Box>> boxes;
  for (const TensorSpec& spec : tensors) {
    ASSIGN_OR_RETURN(io::ZarrArray array, open_array_to_write(fs, temporary, spec, options));
    arrays.push_back(std::move(array));
    boxes.push_back(cells_of(spec));
  }
  std::vector<Sha256Digest> hashes(cells.size());
  RETURN_IF_ERROR(parallel_for(static_cast<int64_t>(cells.size()), options.threads, [&](int64_t i) -> Status {
    const CellData& data = cells[static_cast<size_t>(i)];
    if (data.cell == 0) failpoint("array_write");
    const Box& box = boxes.at(data.tensor).at(data.cell);
    std::span<const std::byte> bytes = data.bytes;
    std::vector<std::byte> dense;
    if (box.shape != data.shape) {
      const int64_t item = dtype_size(tensors[data.tensor].dtype);
      dense.resize(static_cast<size_t>(io::product(box.shape) * item));
      io::copy_box(bytes, data.shape, data.start, dense, box.shape, Extents(box.shape.size(), 0), box.shape,
                   item);
      bytes = dense;
    }
    hashes[static_cast<size_t>(i)] = sha256(bytes);
    return arrays[data.tensor].write_box(box.start, box.shape, bytes);
  }));
  RETURN_IF_ERROR(fs.sync_tree(temporary));
  return hashes;
}

Result<Saved> finish_save(io::FileSystem& fs, const std::string& root, const std::string& temporary,
                          Manifest manifest) {
  const std::string path = io::join_path(root, step_directory(manifest.info.step));
  std::vector<Sha256Digest> arrays;
  for (const CellHashes& cells : manifest.cells) arrays.push_back(array_hash(cells));
  manifest.name = state_name(manifest.tensors, arrays);

  failpoint("manifest");
  // A permanent checkpoint of this state stays permanent when it is saved again for another reason.
  if (const auto existing = replaced_manifest(fs, path); existing.ok() && existing->name == manifest.name) {
    if (existing->info.kind == Kind::kPermanent) manifest.info.kind = Kind::kPermanent;
  }
  RETURN_IF_ERROR(write_manifest(fs, io::join_path(temporary, kManifestName), manifest_json(manifest)));
  RETURN_IF_ERROR(publish(fs, temporary, path));
  return Saved{path, manifest.name};
}

}  // namespace ostro::checkpoint
