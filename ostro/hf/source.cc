#include "ostro/hf/source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "ostro/hf/elements.h"
#include "ostro/hf/model_files.h"
#include "ostro/io/files/path.h"
#include "ostro/models/decoder/decoder.h"
#include "ostro/models/model_functions.h"
#include "ostro/tokenizer/files/files.h"

namespace ostro::hf {
namespace {

constexpr int64_t kMaxConfigBytes = int64_t{16} << 20;
constexpr const char* kPickles[] = {"*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl", "*.msgpack", "*.h5"};

Result<io::SafetensorsReader> open_weights(io::FileSystem& fs, const std::string& directory) {
  ASSIGN_OR_RETURN(const auto entries, fs.list(directory));
  std::string pickle;
  for (const io::DirEntry& entry : entries) {
    if (entry.name == "model.safetensors" || entry.name == "model.safetensors.index.json")
      return io::SafetensorsReader::open_directory(fs, directory);
    for (const char* pattern : kPickles)
      if (io::glob_match(pattern, entry.name) && pickle.empty()) pickle = entry.name;
  }
  if (pickle.empty())
    return not_found(
        fmt::format("{}: neither model.safetensors nor model.safetensors.index.json is there", directory));
  return unsupported(fmt::format(
      "{}: its weights are pickled ({}), and reading a pickle can run any program that is hidden in it; take "
      "the model's safetensors, or write them where you trust the file: "
      "AutoModelForCausalLM.from_pretrained(DIR).save_pretrained(OUT)",
      directory, pickle));
}

// Names of a base model lack what stands before them elsewhere ("model."). The text part of a larger model
// has "language_model." before its names, or behind "model.".
const io::SafetensorsInfo* find_tensor(const io::SafetensorsReader& reader, const std::string& name,
                                       std::string_view base) {
  if (const auto* found = reader.find(name)) return found;
  if (const auto* found = reader.find("language_model." + name)) return found;
  if (!name.starts_with(base)) return nullptr;
  const std::string rest = name.substr(base.size());
  if (const auto* found = reader.find(std::string(base) + "language_model." + rest)) return found;
  return reader.find(rest);
}

// What belongs to the images of a model of which only the text part is read.
constexpr std::string_view kOfImages[] = {"vision_tower.*", "multi_modal_projector.*", "model.vision_tower.*",
                                          "model.multi_modal_projector.*"};

std::string shape_text(const std::vector<int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Finds the tensor of each part and checks it. `used` gets the tensors.
Status find_parts(Source& source, const HfFamily& family, std::set<std::string>& used) {
  ASSIGN_OR_RETURN(const std::vector<WeightPart> parts, family_weights(source.model.options));
  for (size_t i = 0; i < parts.size();) {
    const std::string& name = parts[i].name;
    const io::SafetensorsInfo* tensor = find_tensor(source.reader, name, family.names.base);
    if (tensor == nullptr)
      return corrupt(fmt::format("{}: no tensor {}, which a {} with this config.json has", source.directory,
                                 name, family.model_type));
    const std::string where = fmt::format("{}: tensor {}", source.reader.file_of(*tensor), tensor->name);
    if (!is_weight_dtype(tensor->dtype))
      return unsupported(
          fmt::format("{} is {}; weights are read in F32, BF16 and F16", where, tensor->dtype));
    std::vector<int64_t> shape;
    for (const size_t first = i; i < parts.size() && parts[i].name == parts[first].name; ++i) {
      const auto at = std::find(source.paths.begin(), source.paths.end(), parts[i].path);
      OSTRO_CHECK(at != source.paths.end(), "{} is a part of {}, which the model lacks", name, parts[i].path);
      const auto more = part_shape(parts[i], source.shapes[static_cast<size_t>(at - source.paths.begin())]);
      source.parts.push_back({parts[i], tensor, shape.empty() ? 0 : shape[0]});
      if (shape.empty())
        shape = more;
      else
        shape[0] += more[0];
    }
    if (tensor->shape != shape)
      return corrupt(fmt::format("{} is {}, but config.json makes it {}", where, shape_text(tensor->shape),
                                 shape_text(shape)));
    used.insert(tensor->name);
  }
  return {};
}

// A head in the file although config.json says that it is the embedding: fine if it is the same.
Status check_tied_head(const Source& source, const HfFamily& family, std::set<std::string>& used) {
  if (!source.model.options.tie_word_embeddings) return {};
  const std::string head_name = std::string(family.names.behind.back().name) + ".weight";
  const auto* head = find_tensor(source.reader, head_name, family.names.base);
  const auto* embedding = find_tensor(
      source.reader, std::string(family.names.before.front().name) + ".weight", family.names.base);
  if (head == nullptr || embedding == nullptr) return {};
  used.insert(head->name);
  bool same = head->shape == embedding->shape && head->dtype == embedding->dtype;
  constexpr int64_t kBlock = int64_t{4} << 20;
  std::vector<std::byte> a, b;
  for (int64_t at = 0; same && at < head->bytes(); at += kBlock) {
    a.resize(static_cast<size_t>(std::min(kBlock, head->bytes() - at)));
    b.resize(a.size());
    RETURN_IF_ERROR(source.reader.read_range(*head, at, a));
    RETURN_IF_ERROR(source.reader.read_range(*embedding, at, b));
    same = a == b;
  }
  if (same) return {};
  return corrupt(
      fmt::format("{}: tensor {} differs from {}, but config.json says \"tie_word_embeddings\": true; set it "
                  "to false if the head is a matrix of its own",
                  source.reader.file_of(*head), head->name, embedding->name));
}

Status check_unknown(const Source& source, const HfFamily& family, const std::set<std::string>& used) {
  for (const io::SafetensorsInfo& tensor : source.reader.tensors()) {
    if (used.contains(tensor.name)) continue;
    // Names of layers have dots, which a glob takes for letters.
    const auto fits = [&](std::string_view glob) { return io::glob_match(glob, tensor.name); };
    const auto& buffers = family.names.buffers;
    const bool of_images =
        source.model.is_text_part && std::any_of(std::begin(kOfImages), std::end(kOfImages), fits);
    if (!of_images && std::none_of(buffers.begin(), buffers.end(), fits))
      return corrupt(fmt::format("{}: tensor {} {} is not a weight of a {} with this config.json",
                                 source.reader.file_of(tensor), tensor.name, shape_text(tensor.shape),
                                 family.model_type));
  }
  return {};
}

// Published models often have more rows than tokens, a multiple of 64 or 128: the model then says how many.
Status take_vocabulary(Source& source) {
  const int64_t tokens = source.tokenizer->vocab_size(), rows = source.model.vocab;
  if (rows == tokens) return {};
  if (rows > tokens) {
    source.model.options.vocab_size = rows;
    return {};
  }
  return corrupt(
      fmt::format("{}: config.json has \"vocab_size\" {}, but its tokenizer {} tokens; is it of "
                  "another model? name another with --tokenizer",
                  source.directory, rows, tokens));
}

std::string most_common_dtype(const io::SafetensorsReader& reader) {
  std::map<std::string, int64_t> bytes;
  for (const io::SafetensorsInfo& tensor : reader.tensors())
    if (is_weight_dtype(tensor.dtype)) bytes[tensor.dtype] += tensor.bytes();
  std::string best = "F32";
  for (const auto& [dtype, count] : bytes)
    if (count > bytes[best]) best = dtype;
  return best;
}

}  // namespace

int64_t Source::parameters() const {
  int64_t count = 0;
  for (const ir::Shape& shape : shapes) count += shape.count();
  return count;
}

// First the configuration, the headers of the weights and the tokenizer. Then the model's parameters are
// matched with the tensors in both directions: every part has its tensor, and every tensor is used or known
// to be needless.
Result<Source> open_source(io::FileSystem& fs, const std::string& directory, const std::string& tokenizer) {
  const std::string config_path = io::join_path(directory, "config.json"),
                    adapter_path = io::join_path(directory, "adapter_config.json");
  ASSIGN_OR_RETURN(const bool has_adapter, fs.exists(adapter_path));
  if (has_adapter)
    return unsupported(
        fmt::format("{}: programs add this adapter to the weights beside it; move it and "
                    "adapter_model.safetensors to a directory of "
                    "their own, import the model, then the adapter with --from peft",
                    adapter_path));
  ASSIGN_OR_RETURN(const std::string text, fs.read_file(config_path, kMaxConfigBytes));
  ASSIGN_OR_RETURN(HfModel model, read_config_json(text, config_path));
  ASSIGN_OR_RETURN(const HfFamily* family, hf_family(model.options.family->name));
  ASSIGN_OR_RETURN(io::SafetensorsReader reader, open_weights(fs, directory));
  ASSIGN_OR_RETURN(tokenizer::Tokenizer loaded,
                   tokenizer::load_tokenizer(fs, tokenizer.empty() ? directory : tokenizer));
  Source source{directory,
                std::move(model),
                std::make_shared<tokenizer::Tokenizer>(std::move(loaded)),
                std::move(reader),
                {},
                {},
                {},
                {}};
  RETURN_IF_ERROR(take_vocabulary(source));
  const models::ModelFunctions functions =
      models::model_functions<models::Decoder>(source.model.options, source.model.vocab, ir::DType::f32);
  source.paths = functions.paths;
  source.shapes = functions.shapes;
  std::set<std::string> used;
  RETURN_IF_ERROR(find_parts(source, *family, used));
  RETURN_IF_ERROR(check_tied_head(source, *family, used));
  RETURN_IF_ERROR(check_unknown(source, *family, used));
  source.dtype = most_common_dtype(source.reader);
  return source;
}

}  // namespace ostro::hf
