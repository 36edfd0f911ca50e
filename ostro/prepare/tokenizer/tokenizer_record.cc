#include "ostro/prepare/tokenizer/tokenizer_record.h"

#include <fmt/core.h>

#include "ostro/data/ledger/ledger_json.h"
#include "ostro/io/files/atomic_file.h"
#include "ostro/io/files/path.h"

namespace ostro::prepare {
namespace {

constexpr const char* kRecordFormat = "ostro trained tokenizer 1";

data::Json to_json(const TokenizerRecord::Component& component) {
  data::Json files = data::Json::array();
  for (const TokenizerRecord::File& f : component.files)
    files.push_back({{"path", f.path}, {"size", f.size}, {"mtime_ns", f.mtime_ns}, {"sha256", f.sha256}});
  return {{"text_key", component.text_key},
          {"validation_fraction", component.held_out_fraction},
          {"files", std::move(files)}};
}

Result<TokenizerRecord::Component> read_component(const io::JsonFields& fields) {
  TokenizerRecord::Component component;
  ASSIGN_OR_RETURN(component.text_key, fields.string("text_key"));
  ASSIGN_OR_RETURN(const data::Json* fraction, fields.get("validation_fraction"));
  if (!fraction->is_number()) return fields.bad("validation_fraction", "is not a number");
  component.held_out_fraction = fraction->get<double>();
  ASSIGN_OR_RETURN(const data::Json* files, fields.array("files"));
  for (const data::Json& item : *files) {
    const io::JsonFields file(item, fields.where());
    TokenizerRecord::File f;
    ASSIGN_OR_RETURN(f.path, file.string("path"));
    ASSIGN_OR_RETURN(f.size, file.integer("size", 0, data::kMaxCount));
    ASSIGN_OR_RETURN(f.mtime_ns, file.integer("mtime_ns", INT64_MIN, INT64_MAX));
    ASSIGN_OR_RETURN(f.sha256, file.sha256("sha256"));
    component.files.push_back(std::move(f));
  }
  return component;
}

Result<TokenizerRecord> read_record(const std::string& text) {
  const data::Json json = data::Json::parse(text, nullptr, /*allow_exceptions=*/false);
  const io::JsonFields fields(json, kTokenizerRecordFile);
  ASSIGN_OR_RETURN(const std::string format, fields.string("format"));
  if (format != kRecordFormat) return fields.bad("format", "is another");
  TokenizerRecord record;
  ASSIGN_OR_RETURN(record.tokenizer, fields.sha256("tokenizer"));
  ASSIGN_OR_RETURN(record.vocab_size, fields.integer("vocab_size", 0, data::kMaxCount));
  ASSIGN_OR_RETURN(const std::string on_bad_row, fields.string("on_bad_row"));
  record.on_bad_row = on_bad_row == "skip" ? data::OnBadRow::kSkip : data::OnBadRow::kError;
  ASSIGN_OR_RETURN(const data::Json* components, fields.array("components"));
  for (const data::Json& item : *components) {
    ASSIGN_OR_RETURN(auto component, read_component(io::JsonFields(item, kTokenizerRecordFile)));
    record.components.push_back(std::move(component));
  }
  return record;
}

const char* name_of(data::OnBadRow on_bad_row) {
  return on_bad_row == data::OnBadRow::kSkip ? "skip" : "error";
}

}  // namespace

std::optional<TokenizerRecord> read_tokenizer_record(io::FileSystem& fs, const std::string& cache_dir) {
  const auto text = fs.read_file(io::join_path(cache_dir, kTokenizerRecordFile));
  if (!text.ok()) return std::nullopt;
  auto record = read_record(*text);
  return record.ok() ? std::optional(std::move(*record)) : std::nullopt;
}

Status write_tokenizer_record(io::FileSystem& fs, const std::string& cache_dir,
                              const TokenizerRecord& record) {
  data::Json components = data::Json::array();
  for (const TokenizerRecord::Component& c : record.components) components.push_back(to_json(c));
  const data::Json json = {{"format", kRecordFormat},
                           {"tokenizer", record.tokenizer},
                           {"vocab_size", record.vocab_size},
                           {"on_bad_row", name_of(record.on_bad_row)},
                           {"components", std::move(components)}};
  return io::write_file_atomically(fs, io::join_path(cache_dir, kTokenizerRecordFile),
                                   data::canonical(json) + "\n");
}

std::string difference(const TokenizerRecord& there, const TokenizerRecord& wanted) {
  if (there.vocab_size != wanted.vocab_size)
    return fmt::format("data.vocab_size {}, not {}", there.vocab_size, wanted.vocab_size);
  if (there.on_bad_row != wanted.on_bad_row)
    return fmt::format("data.on_bad_row {}, not {}", name_of(there.on_bad_row), name_of(wanted.on_bad_row));
  if (there.components.size() != wanted.components.size())
    return fmt::format("{} data sets, not {}", there.components.size(), wanted.components.size());
  for (size_t c = 0; c < there.components.size(); ++c) {
    const TokenizerRecord::Component &a = there.components[c], &b = wanted.components[c];
    if (a.text_key != b.text_key) return fmt::format("the field \"{}\", not \"{}\"", a.text_key, b.text_key);
    if (a.held_out_fraction != b.held_out_fraction)
      return fmt::format("a validation_fraction of {}, not {}", a.held_out_fraction, b.held_out_fraction);
    for (size_t i = 0; i < a.files.size() && i < b.files.size(); ++i)
      if (a.files[i].sha256 != b.files[i].sha256)
        return a.files[i].path == b.files[i].path
                   ? fmt::format("other content of {}", a.files[i].path)
                   : fmt::format("{} where now {} stands", a.files[i].path, b.files[i].path);
    if (a.files.size() != b.files.size())
      return fmt::format("{} files, not {}", a.files.size(), b.files.size());
  }
  return "";
}

}  // namespace ostro::prepare
