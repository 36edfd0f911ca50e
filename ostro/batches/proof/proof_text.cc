// DataProof as canonical JSON.
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ostro/batches/proof/data_proof.h"
#include "ostro/io/json/json_fields.h"

namespace ostro::batches {
namespace {

using nlohmann::json;

constexpr const char* kProofFormat = "ostro data proof";
constexpr int64_t kMany = int64_t{1} << 48;  // more than there are of anything

json hex_list(std::span<const Sha256Digest> digests) {
  json out = json::array();
  for (const Sha256Digest& digest : digests) out.push_back(to_hex(digest));
  return out;
}

// The shortest decimal that gives the weight, in a string: canonical JSON has no other numbers than integers.
std::string weight_text(float weight) {
  std::string text(32, '\0');
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), static_cast<double>(weight));
  text.resize(static_cast<size_t>(end - text.data()));
  return text;
}

json row_json(const ProvenRow& row) {
  json out = {{"component", row.component},
              {"split", data::split_name(row.proof.split)},
              {"row", row.proof.row},
              {"rows", row.proof.rows},
              {"other_split", to_hex(row.proof.other_split)},
              {"path", hex_list(row.proof.path)},
              {"ids", row.ids},
              {"file", row.file},
              {"document", row.document}};
  if (!row.weights.empty()) {
    out["weights"] = json::array();
    for (const float weight : row.weights) out["weights"].push_back(weight_text(weight));
  }
  return out;
}

json batch_json(const ProvenBatch& batch) {
  json out = {{"step", batch.step},         {"seq_len", batch.seq_len},
              {"segments", batch.segments}, {"digests", hex_list(batch.digests)},
              {"first", batch.first},       {"sequences", json::array()}};
  for (const ProvenSequence& sequence : batch.sequences) {
    json spans = json::array();
    for (const ProvenSpan& s : sequence.spans)
      spans.push_back({s.row, s.begin, s.end, s.first_token, s.next});
    out["sequences"].push_back(
        {{"sequence", sequence.sequence}, {"by_document", sequence.by_document}, {"spans", spans}});
  }
  if (batch.leaf >= 0) {
    out["leaf"] = batch.leaf;
    out["leaves"] = batch.leaves;
    out["leaf_path"] = hex_list(batch.leaf_path);
  }
  return out;
}

Result<Sha256Digest> read_digest(const json& value, const io::JsonFields& in, const char* key) {
  Sha256Digest digest{};
  const std::string hex = value.is_string() ? value.get<std::string>() : "";
  bool good = hex.size() == 2 * digest.size();
  for (size_t i = 0; good && i < digest.size(); ++i) {
    const char* at = hex.data() + 2 * i;
    good = std::from_chars(at, at + 2, digest[i], 16).ptr == at + 2;
  }
  if (!good || to_hex(digest) != hex) return in.bad(key, "is not the 64 digits of a SHA-256");
  return digest;
}

Result<std::vector<Sha256Digest>> read_digests(const io::JsonFields& in, const char* key) {
  ASSIGN_OR_RETURN(const json* list, in.array(key));
  std::vector<Sha256Digest> out;
  for (const json& item : *list) {
    ASSIGN_OR_RETURN(const Sha256Digest digest, read_digest(item, in, key));
    out.push_back(digest);
  }
  return out;
}

Result<float> read_weight(const json& value, const io::JsonFields& in) {
  double weight = 0;
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(weight))
    return in.bad("weights", "has a value that is no number as text");
  return static_cast<float>(weight);
}

Result<ProvenRow> read_row(const io::JsonFields& in) {
  ProvenRow row;
  ASSIGN_OR_RETURN(row.component, in.string("component"));
  ASSIGN_OR_RETURN(const std::string split, in.string("split"));
  if (split != "train" && split != "validation") return in.bad("split", "is neither train nor validation");
  row.proof.split = split == "train" ? data::Split::kTrain : data::Split::kValidation;
  ASSIGN_OR_RETURN(row.proof.row, in.integer("row", 0, kMany));
  ASSIGN_OR_RETURN(const auto rows, in.integers("rows", 0, kMany));
  if (rows.size() != 2) return in.bad("rows", "does not have two numbers");
  row.proof.rows = {rows[0], rows[1]};
  ASSIGN_OR_RETURN(const json* other, in.get("other_split"));
  ASSIGN_OR_RETURN(row.proof.other_split, read_digest(*other, in, "other_split"));
  ASSIGN_OR_RETURN(row.proof.path, read_digests(in, "path"));
  ASSIGN_OR_RETURN(const auto ids, in.integers("ids", 0, INT32_MAX));
  row.ids.assign(ids.begin(), ids.end());
  if (in.has("weights")) {
    ASSIGN_OR_RETURN(const json* weights, in.array("weights"));
    for (const json& value : *weights) {
      ASSIGN_OR_RETURN(const float weight, read_weight(value, in));
      row.weights.push_back(weight);
    }
  }
  ASSIGN_OR_RETURN(row.file, in.string("file"));
  ASSIGN_OR_RETURN(row.document, in.integer("document", 0, kMany));
  return row;
}

Result<ProvenSequence> read_sequence(const io::JsonFields& in) {
  ProvenSequence out;
  ASSIGN_OR_RETURN(out.sequence, in.integer("sequence", 0, kMany));
  ASSIGN_OR_RETURN(out.by_document, in.boolean("by_document"));
  ASSIGN_OR_RETURN(const json* spans, in.array("spans"));
  for (const json& span : *spans) {
    const json holder = {{"span", span}};
    ASSIGN_OR_RETURN(const auto n, io::JsonFields(holder, in.where()).integers("span", -1, kMany));
    if (n.size() != 5) return in.bad("spans", "has one that is not five numbers");
    out.spans.push_back({n[0], n[1], n[2], n[3], n[4]});
  }
  return out;
}

Result<ProvenBatch> read_batch(const io::JsonFields& in) {
  constexpr int64_t kMaxLength = int64_t{1} << 26;  // a digest is computed in seconds
  ProvenBatch out;
  ASSIGN_OR_RETURN(out.step, in.integer("step", 1, kMany));
  ASSIGN_OR_RETURN(out.seq_len, in.integer("seq_len", 1, kMaxLength));
  ASSIGN_OR_RETURN(out.segments, in.boolean("segments"));
  ASSIGN_OR_RETURN(out.digests, read_digests(in, "digests"));
  ASSIGN_OR_RETURN(out.first, in.integer("first", 0, kMany));
  ASSIGN_OR_RETURN(const json* sequences, in.array("sequences"));
  for (const json& sequence : *sequences) {
    ASSIGN_OR_RETURN(ProvenSequence one, read_sequence({sequence, in.where() + ": sequences"}));
    out.sequences.push_back(std::move(one));
  }
  if (!in.has("leaf")) return out;
  ASSIGN_OR_RETURN(out.leaf, in.integer("leaf", 0, kMany));
  ASSIGN_OR_RETURN(out.leaves, in.integer("leaves", 1, kMany));
  ASSIGN_OR_RETURN(out.leaf_path, read_digests(in, "leaf_path"));
  return out;
}

}  // namespace

std::string proof_text(const DataProof& proof) {
  json out = {{"format", kProofFormat}, {"format_version", 1}, {"rows", json::array()}};
  for (const ProvenRow& row : proof.rows) out["rows"].push_back(row_json(row));
  if (proof.batch) out["batch"] = batch_json(*proof.batch);
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

Result<DataProof> parse_proof(std::string_view text, const std::string& path) {
  ASSIGN_OR_RETURN(const json object, io::parse_json(text, path));
  const io::JsonFields in(object, path);
  ASSIGN_OR_RETURN(const std::string format, in.string("format"));
  if (format != kProofFormat) return in.bad("format", fmt::format("is not \"{}\"", kProofFormat));
  RETURN_IF_ERROR(in.integer("format_version", 1, 1));
  DataProof proof;
  ASSIGN_OR_RETURN(const json* rows, in.array("rows"));
  for (const json& row : *rows) {
    ASSIGN_OR_RETURN(ProvenRow one, read_row({row, fmt::format("{}: row {}", path, proof.rows.size())}));
    proof.rows.push_back(std::move(one));
  }
  if (in.has("batch")) {
    ASSIGN_OR_RETURN(const io::JsonFields batch, in.object("batch"));
    ASSIGN_OR_RETURN(proof.batch, read_batch(batch));
  }
  return proof;
}

}  // namespace ostro::batches
