#include "ostro/convert/compare_export.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ostro/convert/export_files.h"
#include "ostro/convert/export_grok.h"
#include "ostro/convert/text_differences.h"
#include "ostro/convert/weight_differences.h"
#include "ostro/hf/elements.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"
#include "ostro/provenance/compared_files.h"
#include "ostro/provenance/written_files.h"

namespace ostro::convert {
namespace {

using audit::Finding, audit::Verdict;
using provenance::ComparedFile, provenance::ComparedFiles;

bool has_weights(const std::string& name) {
  return name.ends_with(".safetensors") || name.starts_with(fmt::format("{}/tensor", kGrokFolder));
}

// The arrays of a tensor's file of a release.
std::vector<TensorPlace> places_of_leaf(const grok::Leaf& leaf) {
  const auto place = [&](const grok::StoredArray& array, const char* end) {
    const char* dtype = array.dtype == grok::Dtype::kInt8   ? "I8"
                        : array.dtype == grok::Dtype::kBf16 ? "BF16"
                                                            : "F32";
    return TensorPlace{leaf.name + end, dtype, array.shape, array.begin, array.begin + array.bytes};
  };
  std::vector<TensorPlace> out = {place(leaf.tensor.weight, "")};
  if (leaf.tensor.scales) out.push_back(place(*leaf.tensor.scales, " (scales)"));
  return out;
}

std::string index_text(const io::Extents& shape, int64_t element) {
  io::Extents index(shape.size());
  for (size_t d = shape.size(); d-- > 0; element /= shape[d]) index[d] = element % shape[d];
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string number(double value) { return fmt::format("{}", static_cast<float>(value)); }

// All elements of a tensor as f32.
Result<std::vector<float>> values_of(const models::DecoderOptions& decoder, const hf::WeightSource& source,
                                     const std::string& name) {
  ASSIGN_OR_RETURN(const auto entries, hf::streamed_weights(decoder, source, "F32"));
  std::vector<float> out;
  for (const io::SafetensorsEntry& entry : entries) {
    if (entry.name != name) continue;
    RETURN_IF_ERROR(entry.write([&](std::span<const std::byte> piece) {
      const size_t before = out.size();
      out.resize(before + piece.size() / sizeof(float));
      std::memcpy(out.data() + before, piece.data(), piece.size());
      return Status();
    }));
  }
  return out;
}

// The weights of a tensor that the directory has; as many as `count`, or none.
Result<std::vector<float>> values_there(io::FileSystem& fs, const std::string& directory,
                                        const TensorDifference& one, size_t count) {
  ASSIGN_OR_RETURN(const io::SafetensorsReader reader,
                   io::SafetensorsReader::open(fs, io::join_path(directory, one.file)));
  const io::SafetensorsInfo* info = reader.find(one.tensor.name);
  if (info == nullptr || !hf::is_weight_dtype(info->dtype)) return std::vector<float>();
  std::vector<std::byte> bytes(static_cast<size_t>(info->bytes()));
  if (bytes.size() != count * static_cast<size_t>(io::safetensors_item_size(info->dtype)))
    return std::vector<float>();
  RETURN_IF_ERROR(reader.read(one.tensor.name, bytes));
  std::vector<float> there(count);
  hf::elements_to_f32(info->dtype, bytes, there);
  return there;
}

// What the weights of the first tensor that differs show beside the exact ones: that they were rounded twice,
// or of a merge, whose weights differ along what the adapter added, how often it was added.
Result<std::string> exact_cause(io::FileSystem& fs, const OpenedExport& opened, const std::string& directory,
                                const std::vector<TensorDifference>& tensors) {
  const auto one =
      std::find_if(tensors.begin(), tensors.end(), [](const TensorDifference& t) { return t.differing > 0; });
  if (!opened.weights || one == tensors.end() || !one->file.ends_with(".safetensors")) return std::string();
  ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(opened.model));
  ASSIGN_OR_RETURN(const auto merged, values_of(*decoder, *opened.weights, one->tensor.name));
  ASSIGN_OR_RETURN(const auto there, values_there(fs, directory, *one, merged.size()));
  if (there.empty()) return std::string();
  if (one->tensor.dtype != "F32") {
    if (std::string twice = twice_rounded(one->tensor.dtype, merged, there); !twice.empty()) return twice;
  }
  if (!opened.base) return std::string();
  ASSIGN_OR_RETURN(const auto base, values_of(*decoder, *opened.base, one->tensor.name));
  const auto factor = added_again(base, merged, there);
  if (!factor) return std::string();
  const double times = std::round(*factor);
  if (std::abs(*factor - times) > 0.1 || times == 0) return std::string();
  if (times == -1) return std::string("the adapter was not added");
  if (times < -1)
    return fmt::format("the adapter was taken away instead of added ({} times)",
                       static_cast<int64_t>(-times) - 1);
  return fmt::format("the adapter was added {} times", static_cast<int64_t>(times) + 1);
}

// The finding about all weights that differ: the first by its place and both values.
Finding weights_finding(const std::vector<TensorDifference>& tensors, int64_t elements, size_t count,
                        const std::string& cause) {
  const TensorDifference& first = tensors.front();
  int64_t differing = 0;
  for (const TensorDifference& one : tensors) differing += one.differing;
  std::string text = fmt::format("{}: tensor {}", first.file, first.tensor.name);
  if (!first.other.empty())
    text += " " + first.other;
  else
    text += fmt::format(", element {}, is {}, not {}", index_text(first.tensor.shape, first.first),
                        number(first.there), number(first.written));
  text += fmt::format(" as the record gives it; {} of {} tensors differ", tensors.size(), count);
  if (differing > 0) text += fmt::format(", in {} of {} weights", differing, elements);
  return {Verdict::kDiffers, text + (cause.empty() ? "" : "; " + cause)};
}

class Comparison {
 public:
  Comparison(const Context& context, const ExportRequest& request, const OpenedExport& opened,
             std::string directory)
      : context_(context),
        request_(request),
        opened_(opened),
        directory_(std::move(directory)),
        weights_(context.fs, directory_,
                 [this](const std::string& file, const std::string& begin) { return places(file, begin); }),
        files_(
            context.fs, request.out, directory_,
            [this](const std::string& name, int64_t offset, std::span<const std::byte> written,
                   std::span<const std::byte> there) {
              if (has_weights(name))
                weights_.add(name, files_.files().at(name).begin, offset, written, there);
            },
            [this](int64_t bytes) { show(bytes); }) {}

  Status compute(bool with_provenance) {
    ASSIGN_OR_RETURN(const models::DecoderOptions* decoder, decoder_of(opened_.model));
    if (request_.to == "grok") {
      ASSIGN_OR_RETURN(leaves_, grok_leaves(opened_.model, *decoder, request_.dtype));
    }
    total_ = 0;
    if (const auto entries = context_.fs.list(directory_); entries.ok())
      for (const io::DirEntry& entry : *entries)
        if (entry.info && !entry.is_directory) total_ += entry.info->size;
    provenance::WrittenFiles hashed(files_, request_.out);
    NoProgress quiet;
    const Context again{hashed, context_.models, context_.engine,   context_.engine_for_a_moment,
                        quiet,  context_.stop,   context_.engine_on};
    const Status computed = export_files(again, request_, opened_);
    context_.progress.end();
    RETURN_IF_ERROR(computed);
    if (!with_provenance) return {};
    ASSIGN_OR_RETURN(const provenance::Provenance made,
                     provenance_of(context_.fs, request_, opened_, hashed.files()));
    return io::write_file_atomically(files_, io::join_path(request_.out, provenance::kProvenanceFile),
                                     provenance::provenance_text(made));
  }

  Result<ExportComparison> result() {
    ExportComparison out;
    for (const auto& [name, file] : files_.files()) {
      out.files.insert(name);
      if (file.same())
        out.bytes += file.written;
      else if (name != provenance::kProvenanceFile)
        add(name, file, out);
    }
    // It has the hashes of the others, so it is named last.
    if (const auto made = files_.files().find(provenance::kProvenanceFile);
        made != files_.files().end() && !made->second.same())
      add(made->first, made->second, out);
    const std::vector<TensorDifference> tensors = weights_.tensors();
    if (tensors.empty()) return out;
    int64_t elements = 0;
    size_t count = 0;
    for (const auto& [name, file] : files_.files()) {
      if (!has_weights(name)) continue;
      for (const TensorPlace& place : places(name, file.begin)) elements += io::product(place.shape), ++count;
    }
    ASSIGN_OR_RETURN(std::string cause, exact_cause(context_.fs, opened_, directory_, tensors));
    if (cause.empty()) cause = common_cause(tensors, elements);
    out.findings.insert(out.findings.begin(), weights_finding(tensors, elements, count, cause));
    return out;
  }

 private:
  std::vector<TensorPlace> places(const std::string& file, const std::string& begin) const {
    if (file.ends_with(".safetensors")) return places_of_header(begin);
    for (const grok::Leaf& leaf : leaves_)
      if (file == io::join_path(kGrokFolder, leaf.file)) return places_of_leaf(leaf);
    return {};
  }

  void show(int64_t bytes) {
    const double total = static_cast<double>(std::max(total_, bytes));
    if (total > 0) context_.progress.show("comparing files", static_cast<double>(bytes) / total);
  }

  // What is wrong with a file that is not the same.
  void add(const std::string& name, const ComparedFile& file, ExportComparison& out) const {
    const auto differs = [&](const std::string& how) {
      if (is_for_people(name))
        out.notes.push_back(fmt::format("{} was rewritten since the export: {}", name, how));
      else
        out.findings.push_back({Verdict::kDiffers, fmt::format("{}: {}", name, how)});
    };
    if (file.there < 0) {
      const std::string text = fmt::format("{} is missing: the export has it", name);
      if (is_for_people(name))
        out.notes.push_back(text);
      else
        out.findings.push_back({Verdict::kIncomplete, text});
      return;
    }
    if (!has_weights(name) && std::ssize(file.begin) == file.written) {
      const auto there = context_.fs.read_file(io::join_path(directory_, name), kMostText);
      return differs(there.ok() ? text_difference(name, file.begin, *there) : there.error().message());
    }
    if (const std::string other = weights_.otherwise(name); !other.empty()) return differs(other);
    const auto tensors = weights_.tensors();
    const bool named = std::any_of(tensors.begin(), tensors.end(),
                                   [&](const TensorDifference& one) { return one.file == name; });
    if (file.written != file.there)
      differs(fmt::format("has {} bytes, not {}", file.there, file.written));
    else if (!named)
      differs(fmt::format("differs at byte {}, outside of its tensors", file.first_difference));
  }

  static constexpr int64_t kMostText = int64_t{1} << 30;

  const Context& context_;
  const ExportRequest& request_;
  const OpenedExport& opened_;
  const std::string directory_;
  std::vector<grok::Leaf> leaves_;
  int64_t total_ = 0;
  WeightDifferences weights_;
  ComparedFiles files_;
};

}  // namespace

Result<ExportComparison> compare_export(const Context& context, const ExportRequest& request,
                                        const OpenedExport& opened, const std::string& directory,
                                        bool with_provenance) {
  Comparison comparison(context, request, opened, directory);
  RETURN_IF_ERROR(comparison.compute(with_provenance));
  return comparison.result();
}

}  // namespace ostro::convert
