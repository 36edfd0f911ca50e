#include "ostro/data/store/store_plan.h"

#include <fmt/core.h>

#include "ostro/data/ledger/ledger_json.h"
#include "ostro/data/levanter/levanter_cache.h"
#include "ostro/io/files/path.h"
#include "ostro/tokenizer/model/text_ends.h"

namespace ostro::data {
namespace {

// The types that Levanter's reader requires, unless the option asks for another.
Result<ElementType> type_of_ids(const DataOptions& options, const Component& component, int64_t vocab_size) {
  const bool is_text = std::holds_alternative<TextFormat>(component.format);
  const bool is_small = vocab_size <= 0x10000;
  switch (options.id_type) {
    case IdType::kLevanter: return is_text ? ElementType::kInt64 : ElementType::kInt32;
    case IdType::kSmallest: return is_small ? ElementType::kUint16 : ElementType::kUint32;
    case IdType::kUint16: break;
    case IdType::kUint32: return ElementType::kUint32;
    case IdType::kInt32: return ElementType::kInt32;
    case IdType::kInt64: return ElementType::kInt64;
  }
  if (!is_small)
    return invalid_argument(
        fmt::format("data.id_type: uint16 cannot hold the {} ids of data.tokenizer; use uint32", vocab_size));
  return ElementType::kUint16;
}

// The folder of our ledger and checksums for a Levanter cache. It is never inside the cache.
std::string check_folder(const DataOptions& options, const Component& component) {
  const std::string folder = io::join_path(options.cache_dir, component.name);
  return io::clean_path(folder) == io::clean_path(component.cache_dir) ? folder + ".checked" : folder;
}

// The fields of a format, with Levanter's names.
StoreFields fields_of(const RowFormat& format) {
  if (const auto* chat = std::get_if<ChatFormat>(&format))
    return store_fields(chat->mask_user_turns ? WeightKind::kAssistantMasks : WeightKind::kNone);
  if (const auto* pair = std::get_if<SupervisedFormat>(&format))
    return store_fields(pair->mask_inputs ? WeightKind::kSourcesLen : WeightKind::kNone);
  if (is_preference(format)) return store_fields(WeightKind::kPairParts);
  if (const auto* ids = std::get_if<PrebuiltFormat>(&format)) {
    StoreFields fields{.ids = ids->input_ids_key};
    if (!ids->loss_weights_key) return fields;
    fields.weights = WeightKind::kLossWeights;
    fields.weights_name = *ids->loss_weights_key;
    return fields;
  }
  return {};
}

// Canonical JSON of everything besides the tokenizer that tokens and weights depend on. There is no formatter
// for a Levanter cache, whose rows exist already.
std::string identity_of(const RowFormat& format, const RowFormatter* formatter) {
  if (formatter != nullptr) return formatter->identity();
  Json json = {{"type", std::visit([](const auto& f) { return f.kType; }, format)}};
  if (const auto* text = std::get_if<TextFormat>(&format)) {
    json["text_key"] = text->text_key;
    json["special_tokens_in_text"] = "parsed";
  }
  return canonical(json);
}

// Null for plain texts, which are encoded in a faster way, and when there is nothing to build.
Result<std::shared_ptr<const RowFormatter>> formatter_of(io::FileSystem& fs, const DataOptions& options,
                                                         const Component& component,
                                                         const tokenizer::Tokenizer& tokenizer) {
  if (component.is_in_place() || std::holds_alternative<TextFormat>(component.format))
    return std::shared_ptr<const RowFormatter>();
  ASSIGN_OR_RETURN(
      auto formatter,
      make_row_formatter(fs, component.format, component.key + ".format", options.tokenizer_path(), tokenizer,
                         {.enforce_bos = options.enforce_bos, .enforce_eos = options.enforce_eos}));
  return std::shared_ptr<const RowFormatter>(std::move(formatter));
}

Result<Preprocessing> preprocessing_with(const RowFormatter* formatter, const RowVerdicts* verdicts,
                                         const DataOptions& options, const Component& component,
                                         const tokenizer::Tokenizer& tokenizer) {
  Preprocessing p;
  if (verdicts != nullptr) p.left_out = verdicts->left_out();
  p.tokenizer = tokenizer.hash();
  p.vocab_size = tokenizer.vocab_size();
  if (ends_rows(component.format)) {
    ASSIGN_OR_RETURN(const tokenizer::TextEnds ends, tokenizer::text_ends(tokenizer, options.enforce_bos));
    p.before.assign(ends.before.begin(), ends.before.end());
  }
  if (options.enforce_eos && ends_rows(component.format)) {
    const auto eos = tokenizer.eos_id();
    if (!eos)
      return invalid_argument(fmt::format(
          "data.enforce_eos: {} names no token that ends a text; put a tokenizer_config.json with "
          "\"eos_token\" beside it, or set data.enforce_eos to false",
          options.tokenizer_path()));
    p.eos_id = *eos;
  }
  p.fields = fields_of(component.format);
  p.format = component.name.empty() ? "" : identity_of(component.format, formatter);
  if (component.name.empty()) p.text_key = std::get<TextFormat>(component.format).text_key;
  if (!component.is_in_place())
    p.validation_fraction = component.validation_urls.empty() ? component.validation_fraction : 0;
  return p;
}

// The verdicts of a component; null where it has none. Errors name the option.
Result<std::shared_ptr<const RowVerdicts>> verdicts_of(io::FileSystem& fs, const Component& component) {
  if (!component.rows) return std::shared_ptr<const RowVerdicts>();
  Result<RowVerdicts> read = read_row_verdicts(fs, *component.rows);
  if (!read.ok()) return read.error().with_context(component.key + ".rows");
  return std::shared_ptr<const RowVerdicts>(std::make_shared<RowVerdicts>(std::move(*read)));
}

}  // namespace

Result<Preprocessing> preprocessing_of(io::FileSystem& fs, const DataOptions& options,
                                       const Component& component, const tokenizer::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const auto formatter, formatter_of(fs, options, component, tokenizer));
  ASSIGN_OR_RETURN(const auto verdicts, verdicts_of(fs, component));
  return preprocessing_with(formatter.get(), verdicts.get(), options, component, tokenizer);
}

Result<StoreFolder> store_folder(io::FileSystem& fs, const DataOptions& options, const Component& component) {
  StoreFolder folder{.ledger = component.cache_dir, .levanter_cache = {}};
  if (!component.is_in_place()) return folder;
  ASSIGN_OR_RETURN(const bool levanter, is_levanter_cache(fs, component.cache_dir));
  if (levanter && is_preference(component.format))
    return unsupported(
        fmt::format("{}.cache_dir: {} is a Levanter cache, which cannot hold the format preference; name the "
                    "texts in {}.train_urls",
                    component.key, component.cache_dir, component.key));
  if (levanter) folder = {check_folder(options, component), component.cache_dir};
  return folder;
}

Result<StorePlan> plan_store(io::FileSystem& fs, const DataOptions& options, const Component& component,
                             const tokenizer::Tokenizer& tokenizer) {
  StorePlan plan;
  plan.key = component.key;
  plan.skip_bad_rows = options.on_bad_row == OnBadRow::kSkip;
  plan.is_in_place = component.is_in_place();
  plan.any_beginning = !options.enforce_bos;
  ASSIGN_OR_RETURN(plan.formatter, formatter_of(fs, options, component, tokenizer));
  auto verdicts = verdicts_of(fs, component);
  if (verdicts.ok())
    plan.verdicts = std::move(*verdicts);
  else if (verdicts.error().code() == ErrorCode::kNotFound)
    plan.no_verdicts = verdicts.error();
  else
    return verdicts.error();
  ASSIGN_OR_RETURN(plan.preprocessing, preprocessing_with(plan.formatter.get(), plan.verdicts.get(), options,
                                                          component, tokenizer));
  ASSIGN_OR_RETURN(plan.ids, type_of_ids(options, component, plan.preprocessing.vocab_size));
  ASSIGN_OR_RETURN(plan.folder, store_folder(fs, options, component));
  if (plan.is_in_place) return plan;
  const auto found = find_sources(fs, source_places(options, component), SourceKeys::of(component.key));
  if (found.ok()) {
    plan.sources = found->all();
    plan.has_texts = !found->files.empty();
  } else {
    plan.sources = found.error();
  }
  return plan;
}

}  // namespace ostro::data
