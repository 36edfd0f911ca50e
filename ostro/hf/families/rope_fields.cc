// The rotary embedding in config.json.
#include <cmath>
#include <set>

#include "ostro/hf/families/config_fields.h"
#include "ostro/hf/families/config_state.h"
#include "ostro/numerics/functions.h"

namespace ostro::hf {
namespace {

using Json = nlohmann::ordered_json;
using models::RopeDefaultOptions, models::RopeDynamicOptions, models::RopeLinearOptions,
    models::RopeLlama3Options, models::RopeLongOptions, models::RopeYarnOptions;

constexpr const char* kFullAttention = "full_attention";
constexpr const char* kSlidingAttention = "sliding_attention";
constexpr const char* kPartial = "partial_rotary_factor";
constexpr const char* kMscale = "mscale";
constexpr const char* kMscaleAllDim = "mscale_all_dim";
constexpr const char* kOriginal = "original_max_position_embeddings";

// rope_parameters as in transformers 5. The older keys rope_theta and rope_scaling are made from it.
Json rope_json(const models::RopeOptions& rope) {
  Json out = {{"rope_theta", models::rope_theta(rope)},
              {"rope_type", std::visit([](const auto& r) { return r.kType; }, rope)}};
  if (const auto* linear = std::get_if<RopeLinearOptions>(&rope)) {
    out["factor"] = linear->factor;
  } else if (const auto* llama3 = std::get_if<RopeLlama3Options>(&rope)) {
    out["factor"] = llama3->factor;
    out["low_freq_factor"] = llama3->low_freq_factor;
    out["high_freq_factor"] = llama3->high_freq_factor;
    out["original_max_position_embeddings"] = llama3->original_max_position_embeddings;
  } else if (const auto* yarn = std::get_if<RopeYarnOptions>(&rope)) {
    out["factor"] = yarn->factor;
    out["original_max_position_embeddings"] = yarn->original_max_position_embeddings;
    out["beta_fast"] = yarn->beta_fast;
    out["beta_slow"] = yarn->beta_slow;
    // Programs that know no attention_factor take the quotient of what these two say for it.
    const bool quotient = yarn->mscale_all_dim && yarn->attention_factor == 1;
    if (quotient) out[kMscale] = *yarn->mscale_all_dim;
    if (yarn->mscale_all_dim) out[kMscaleAllDim] = *yarn->mscale_all_dim;
    if (yarn->attention_factor && !quotient) out["attention_factor"] = *yarn->attention_factor;
    out["truncate"] = yarn->truncate;
  } else if (const auto* dynamic = std::get_if<RopeDynamicOptions>(&rope)) {
    out["factor"] = dynamic->factor;  // the length before stretching is max_position_embeddings
  } else if (const auto* long_rope = std::get_if<RopeLongOptions>(&rope)) {
    out["short_factor"] = long_rope->short_factor;
    out["long_factor"] = long_rope->long_factor;
    out[kOriginal] = long_rope->original_max_position_embeddings;
    out["attention_factor"] = long_rope->attention_factor;
  }
  return out;
}

Json rope_scaling(Json rope) {
  if (rope["rope_type"] == "default") return nullptr;
  rope.erase("rope_theta");
  rope.erase(kPartial);
  return rope;
}

// One object of rope_parameters, rope_scaling included.
class RopeReader {
 public:
  // `scales_scores`: mscale and mscale_all_dim are known.
  RopeReader(Json object, std::string where, bool scales_scores = false)
      : object_(std::move(object)), where_(std::move(where)), scales_scores_(scales_scores) {
    known_ = {"rope_theta", "rope_type", "type", kPartial};
  }

  Result<models::RopeOptions> read(double theta, int64_t max_positions) {
    theta = number("rope_theta", theta);
    const std::string kind = text("rope_type", text("type", "default"));
    models::RopeOptions rope = RopeDefaultOptions{theta};
    if (kind == "linear") {
      rope = RopeLinearOptions{theta, number("factor")};
    } else if (kind == "llama3") {
      rope = RopeLlama3Options{theta, number("factor"), number("low_freq_factor"), number("high_freq_factor"),
                               original(max_positions)};
    } else if (kind == "yarn") {
      RopeYarnOptions yarn{theta, number("factor"), original(max_positions), number("beta_fast", 32),
                           number("beta_slow", 1)};
      if (has("attention_factor")) yarn.attention_factor = number("attention_factor");
      if (has("truncate")) {
        if (!object_["truncate"].is_boolean())
          fail(fmt::format("\"truncate\" is {}, not true or false", object_["truncate"].dump()));
        yarn.truncate = object_["truncate"] == true;
      }
      if (scales_scores_) read_mscales(yarn);
      rope = yarn;
    } else if (kind == "dynamic") {
      if (original(max_positions) != max_positions)
        fail(fmt::format(
            "\"{}\" is {}, but programs stretch dynamic ropes from \"max_position_embeddings\", {}",
            kOriginal, original(max_positions), max_positions));
      rope = RopeDynamicOptions{theta, number("factor"), max_positions};
    } else if (kind == "longrope" || kind == "su") {
      rope = long_rope(theta, max_positions);
    } else if (kind != "default") {
      return unsupported(fmt::format(
          "{}: rope kind \"{}\" is not known; known are default, linear, llama3, yarn, dynamic and "
          "longrope (docs/reference/models.md)",
          where_, kind));
    }
    RETURN_IF_ERROR(status_);
    for (const auto& [key, value] : object_.items())
      if (!known_.contains(key) && !value.is_null())
        return unsupported(fmt::format("{}: \"{}\" is {}, which rope kind {} does not know", where_, key,
                                       value.dump(), kind));
    return rope;
  }

  double number(const char* key, std::optional<double> missing = {}) {
    if (!has(key)) {
      if (!missing) fail(fmt::format("\"{}\" is missing", key));
      return missing.value_or(1);
    }
    if (!object_[key].is_number()) fail(fmt::format("\"{}\" is {}, not a number", key, object_[key].dump()));
    return object_[key].is_number() ? object_[key].get<double>() : 1;
  }
  const Status& status() const { return status_; }

 private:
  void read_mscales(RopeYarnOptions& yarn) {
    const double one = number(kMscale, 0), all = number(kMscaleAllDim, 0);
    const auto scale = [&](double m) {
      return yarn.factor <= 1 ? 1 : 0.1 * m * numerics::log_f64(yarn.factor) + 1;
    };
    if (all > 0) yarn.mscale_all_dim = all;
    if (yarn.attention_factor) return;
    if (one > 0 && all > 0)
      yarn.attention_factor = scale(one) / scale(all);
    else if (all > 0 || (one > 0 && one != 1))  // transformers takes 1 for the other, DeepSeek's programs 0
      fail(fmt::format("\"{}\" is {} without \"{}\", of which programs make different things",
                       all > 0 ? kMscaleAllDim : kMscale, all > 0 ? all : one,
                       all > 0 ? kMscale : kMscaleAllDim));
  }

  // Without attention_factor in the file, it follows from the ratio by which the context is stretched.
  RopeLongOptions long_rope(double theta, int64_t max_positions) {
    RopeLongOptions out{theta, numbers("short_factor"), numbers("long_factor")};
    out.original_max_position_embeddings = static_cast<int64_t>(number(kOriginal));
    const auto longest = static_cast<double>(max_positions),
               before = static_cast<double>(out.original_max_position_embeddings);
    const double stretch = number("factor", longest / before);
    out.attention_factor =
        number("attention_factor",
               stretch <= 1 ? 1 : std::sqrt(1 + numerics::log_f64(stretch) / numerics::log_f64(before)));
    return out;
  }
  std::vector<double> numbers(const char* key) {
    std::vector<double> out;
    if (!has(key) || !object_[key].is_array()) {
      fail(fmt::format("\"{}\" is no list of numbers", key));
      return {1};
    }
    for (const Json& item : object_[key]) {
      if (!item.is_number()) fail(fmt::format("\"{}\" has {}, not a number", key, item.dump()));
      out.push_back(item.is_number() ? item.get<double>() : 1);
    }
    return out;
  }
  bool has(const char* key) {
    known_.insert(key);
    return object_.contains(key) && !object_[key].is_null();
  }
  std::string text(const char* key, const std::string& missing) {
    if (!has(key)) return missing;
    if (!object_[key].is_string()) fail(fmt::format("\"{}\" is {}, not a word", key, object_[key].dump()));
    return object_[key].is_string() ? object_[key].get<std::string>() : missing;
  }
  int64_t original(int64_t max_positions) {
    return static_cast<int64_t>(number(kOriginal, static_cast<double>(max_positions)));
  }
  void fail(const std::string& what) {
    if (status_.ok()) status_ = corrupt(fmt::format("{}: {}", where_, what));
  }

  Json object_;
  std::string where_;
  bool scales_scores_ = false;
  std::set<std::string> known_;
  Status status_;
};

// `into` with the keys of `from`; an error for one that both have with different values.
Status join(Json& into, const Json& from, const std::string& where) {
  for (const auto& [key, value] : from.items()) {
    const std::string name = key == "type" ? "rope_type" : key;
    if (into.contains(name) && into[name] != value)
      return corrupt(fmt::format("{}: \"rope_parameters\" has {} {}, but the older keys say {}", where, name,
                                 into[name].dump(), value.dump()));
    into[name] = value;
  }
  return {};
}

}  // namespace

void ConfigFields::rope(models::RopeOptions* rope, double missing_theta, int64_t max_positions,
                        double* partial, double missing_partial) {
  rope_of(rope, missing_theta, max_positions, partial, missing_partial, false);
}

void ConfigFields::scaled_rope(models::RopeOptions* rope, double missing_theta, int64_t max_positions) {
  rope_of(rope, missing_theta, max_positions, nullptr, 1, true);
}

void ConfigFields::rope_of(models::RopeOptions* rope, double missing_theta, int64_t max_positions,
                           double* partial, double missing_partial, bool scales_scores) {
  if (!state_->reading) {
    Json object = rope_json(*rope);
    if (object.contains(kMscaleAllDim) && !scales_scores)
      return fail(unsupported(fmt::format(
          "model.rope.mscale_all_dim is {}, which this family's programs would not apply to scores",
          object[kMscaleAllDim].dump())));
    if (partial != nullptr) object[kPartial] = *partial;
    state_->json["rope_parameters"] = object;
    state_->json["rope_theta"] = object["rope_theta"];
    state_->json["rope_scaling"] = rope_scaling(object);
    if (partial != nullptr) state_->json[kPartial] = *partial;
    if (const auto* dynamic = std::get_if<RopeDynamicOptions>(rope)) {
      const int64_t before = dynamic->original_max_position_embeddings;
      if (before < max_positions)
        return fail(
            unsupported(fmt::format("model.rope.original_max_position_embeddings is {} and model.seq_len {}: "
                                    "Hugging Face's dynamic rope has one "
                                    "length for both, max_position_embeddings; set seq_len to {} or less",
                                    before, max_positions, before)));
      state_->json["max_position_embeddings"] = before;
    }
    // Classes of models with longrope have a value of their own where the file has none.
    if (std::holds_alternative<RopeLongOptions>(*rope)) state_->json[kOriginal] = object[kOriginal];
    return;
  }
  Json object = Json::object();
  if (const Json* given = state_->find("rope_parameters")) object = *given;
  if (!object.is_object()) return state_->bad("rope_parameters", "an object is needed");
  if (object.contains("type") && !object.contains("rope_type")) object["rope_type"] = object["type"];
  object.erase("type");
  Json older = Json::object();
  if (const Json* scaling = state_->find("rope_scaling")) older = *scaling;
  if (!older.is_object()) return state_->bad("rope_scaling", "an object is needed");
  if (older.contains("rope_type")) older.erase("type");
  if (const Json* theta = state_->find("rope_theta")) older["rope_theta"] = *theta;
  if (const Json* part = state_->find(kPartial)) older[kPartial] = *part;
  if (Status joined = join(object, older, state_->where); !joined.ok()) return fail(joined.error());
  // Beside the rope it comes first, as in transformers.
  const Json& kind = object["rope_type"];  // null, as if it were missing
  if (!kind.is_null() && kind != "default")
    if (const Json* before = state_->find(kOriginal)) object[kOriginal] = *before;
  RopeReader reader(object, state_->where + ": rope", scales_scores);
  if (partial != nullptr)
    *partial = reader.number(kPartial, missing_partial);
  else if (reader.number(kPartial, 1) != 1)
    fail(unsupported(fmt::format("{}: \"{}\" is {}, but heads of this family turn whole", state_->where,
                                 kPartial, object[kPartial].dump())));
  auto read = reader.read(missing_theta, max_positions);
  if (!read.ok()) return fail(read.error());
  *rope = *read;
}

void ConfigFields::ropes_by_layer(models::RopeOptions* rope, std::optional<double>* local_theta,
                                  double missing_theta, double missing_local_theta, int64_t max_positions) {
  if (!state_->reading) {
    const Json object = rope_json(*rope);
    const double local = local_theta->value_or(models::rope_theta(*rope));
    state_->json["rope_parameters"] = {{kFullAttention, object},
                                       {kSlidingAttention, rope_json(RopeDefaultOptions{local})}};
    return;
  }
  Json full = Json::object(), sliding = Json::object();
  if (const Json* given = state_->find("rope_parameters")) {
    for (const auto& [key, value] : given->items()) {
      if (value.is_null()) continue;
      if ((key != kFullAttention && key != kSlidingAttention) || !value.is_object())
        return state_->bad("rope_parameters", "objects full_attention and sliding_attention are needed");
      (key == kFullAttention ? full : sliding) = value;
    }
  }
  if (const Json* scaling = state_->find("rope_scaling"))
    if (Status joined = join(full, *scaling, state_->where); !joined.ok()) return fail(joined.error());
  if (const Json* theta = state_->find("rope_theta"))
    if (Status joined = join(full, {{"rope_theta", *theta}}, state_->where); !joined.ok())
      return fail(joined.error());
  if (const Json* theta = state_->find("rope_local_base_freq"))
    if (Status joined = join(sliding, {{"rope_theta", *theta}}, state_->where); !joined.ok())
      return fail(joined.error());
  auto main = RopeReader(full, state_->where + ": rope of full_attention").read(missing_theta, max_positions);
  auto local = RopeReader(sliding, state_->where + ": rope of sliding_attention")
                   .read(missing_local_theta, max_positions);
  for (const Json* object : {&full, &sliding})
    if (object->contains(kPartial) && (*object)[kPartial] != 1)
      return fail(unsupported(fmt::format("{}: \"{}\" is {}, but heads of this family turn whole",
                                          state_->where, kPartial, (*object)[kPartial].dump())));
  if (!main.ok()) return fail(main.error());
  if (!local.ok()) return fail(local.error());
  if (!std::holds_alternative<RopeDefaultOptions>(*local))
    return fail(
        unsupported(fmt::format("{}: rope of sliding_attention is stretched ({}); only that of "
                                "full_attention can be",
                                state_->where, sliding.dump())));
  *rope = *main;
  *local_theta = models::rope_theta(*local);
}

}  // namespace ostro::hf
