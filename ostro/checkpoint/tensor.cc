#include "ostro/checkpoint/tensor.h"

#include <algorithm>
#include <array>
#include <set>

#include "ostro/base/parallel.h"

namespace ostro::checkpoint {
namespace {

struct DTypeRow {
  std::string_view name;
  const char* zarr;
  int64_t size;
};
constexpr std::array<DTypeRow, 8> kDTypes = {{{"f32", "float32", 4},
                                              {"bf16", "bfloat16", 2},
                                              {"f64", "float64", 8},
                                              {"i32", "int32", 4},
                                              {"i64", "int64", 8},
                                              {"u32", "uint32", 4},
                                              {"bool", "bool", 1},
                                              {"i8", "int8", 1}}};
constexpr int64_t kMaxElements = int64_t{1} << 56;

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.';
}

// A path becomes directories, also when it comes from an untrusted file: it must not lead out of the
// checkpoint or equal a name that Zarr reserves.
bool is_good_path(std::string_view path) {
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part.front() == '.' || part.starts_with("__") || part == "zarr.json" || part == "c")
      return false;
    if (!std::all_of(part.begin(), part.end(), is_name_char)) return false;
    begin = end + 1;
  }
  return path.size() <= 1024 && path != "manifest.json";
}

}  // namespace

const char* zarr_dtype(std::string_view dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == dtype) return row.zarr;
  }
  return nullptr;
}

int64_t dtype_size(std::string_view dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.name == dtype) return row.size;
  }
  return 0;
}

std::string TensorSpec::type_str() const {
  std::string out = dtype + "[";
  for (size_t d = 0; d < shape.size(); ++d)
    out += fmt::format("{}{}:{}", d == 0 ? "" : ", ", axes[d], shape[d]);
  return out + "]";
}

int64_t TensorSpec::bytes() const { return io::product(shape) * dtype_size(dtype); }

Status validate(std::span<const TensorSpec> specs, const std::string& where) {
  std::set<std::string> paths;
  for (const TensorSpec& spec : specs) {
    const auto bad = [&](std::string what) {
      return Status(corrupt(fmt::format("{}: tensor \"{}\": {}", where, spec.path, what)));
    };
    if (!is_good_path(spec.path)) return bad("not a path that a checkpoint can hold");
    if (dtype_size(spec.dtype) == 0) return bad(fmt::format("unknown dtype \"{}\"", spec.dtype));
    if (spec.axes.size() != spec.shape.size()) return bad("as many axes as sizes are needed");
    if (!spec.cell.empty() && spec.cell.size() != spec.shape.size()) return bad("its cell has another rank");
    for (const std::string& axis : spec.axes)  // a name stands in the lines that hashes are of
      if (std::any_of(axis.begin(), axis.end(), [](unsigned char c) { return c < 0x20; }))
        return bad("an axis with control characters in its name");
    int64_t elements = 1;
    for (size_t d = 0; d < spec.shape.size(); ++d) {
      if (spec.shape[d] < 0 || (!spec.cell.empty() && spec.cell[d] < 1))
        return bad("a size below its minimum");
      if (spec.shape[d] > 0 && elements > kMaxElements / spec.shape[d]) return bad("too large");
      elements *= spec.shape[d];
    }
    if (!paths.insert(spec.path + "/").second) return bad("the path is taken");
  }
  // With a "/" behind each, a path below another follows it directly or after more such.
  for (auto it = paths.begin(); it != paths.end(); ++it) {
    const auto next = std::next(it);
    if (next != paths.end() && next->starts_with(*it)) {
      return corrupt(fmt::format("{}: tensor \"{}\" lies below tensor \"{}\"", where, *next, *it));
    }
  }
  return {};
}

Extents cell_extents(const TensorSpec& spec) {
  Extents cell = spec.cell.empty() ? spec.shape : spec.cell;
  for (size_t d = 0; d < cell.size(); ++d) cell[d] = std::max<int64_t>(1, std::min(cell[d], spec.shape[d]));
  return cell;
}

std::vector<Box> cells_of(const TensorSpec& spec) {
  const Extents cell = cell_extents(spec);
  std::vector<Box> boxes;
  check_ok(io::for_each_index(io::grid_of(spec.shape, cell), [&](const Extents& index) -> Status {
    Box box{index, cell};
    for (size_t d = 0; d < cell.size(); ++d) {
      box.start[d] *= cell[d];
      box.shape[d] = std::min(cell[d], spec.shape[d] - box.start[d]);
    }
    boxes.push_back(std::move(box));
    return {};
  }));
  return boxes;
}

Sha256Digest array_hash(const CellHashes& cells) {
  Sha256 hash;
  for (const Sha256Digest& cell : cells) hash.update(std::as_bytes(std::span(cell)));
  return hash.finish();
}

std::string state_name(std::span<const TensorSpec> specs, std::span<const Sha256Digest> arrays) {
  OSTRO_CHECK(specs.size() == arrays.size(), "{} hashes for {} tensors", arrays.size(), specs.size());
  Sha256 hash;
  for (size_t i = 0; i < specs.size(); ++i) {
    hash.update(fmt::format("{} {} {}\n", specs[i].path, specs[i].type_str(), to_hex(arrays[i])));
  }
  return to_hex(hash.finish());
}

std::string state_name(std::span<const Tensor> tensors, int threads) {
  std::vector<TensorSpec> specs;
  std::vector<std::vector<Box>> boxes;
  std::vector<CellHashes> cells;
  std::vector<std::pair<size_t, size_t>> work;  // (tensor, cell)
  for (const Tensor& tensor : tensors) {
    specs.push_back(tensor.spec);
    boxes.push_back(cells_of(tensor.spec));
    cells.emplace_back(boxes.back().size());
    for (size_t c = 0; c < boxes.back().size(); ++c) work.emplace_back(specs.size() - 1, c);
  }
  check_ok(parallel_for(static_cast<int64_t>(work.size()), threads, [&](int64_t i) -> Status {
    const auto [t, c] = work[static_cast<size_t>(i)];
    const TensorSpec& spec = specs[t];
    const Box& box = boxes[t][c];
    if (box.shape == spec.shape) {
      cells[t][c] = sha256(tensors[t].bytes);
      return {};
    }
    std::vector<std::byte> dense(static_cast<size_t>(io::product(box.shape) * dtype_size(spec.dtype)));
    io::copy_box(tensors[t].bytes, spec.shape, box.start, dense, box.shape, Extents(box.shape.size(), 0),
                 box.shape, dtype_size(spec.dtype));
    cells[t][c] = sha256(std::span<const std::byte>(dense));
    return {};
  }));
  std::vector<Sha256Digest> arrays;
  for (const CellHashes& hashes : cells) arrays.push_back(array_hash(hashes));
  return state_name(specs, arrays);
}

}  // namespace ostro::checkpoint
