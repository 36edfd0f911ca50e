// FamilyKeys: declares the options of a decoder: those that its family shows. Private to the room.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "ostro/models/decoder/decoder_options.h"

namespace ostro::models {

// Reasons why a run cannot continue with another value (Option::fixed).
inline constexpr const char* kLayout = "the shapes of the trained parameters follow from it";
inline constexpr const char* kMeaning = "the trained parameters have their meaning from it";

// Marks an option that was added later than others. If its default is the value that all models had before
// (`text`, in YAML), runs with this value keep their hash. Families with another default were added later,
// too.
inline config::Option& came_later(config::Option& option, bool is_old_default, std::string text) {
  return is_old_default ? option.since_default(std::move(text)) : option;
}

// Adds keys to an option table, which it does not own. The table then refuses, by name, the keys that the
// family does not show.
class FamilyKeys {
 public:
  FamilyKeys(const Family& family, config::OptionTable& table) : family_(family), table_(table) {}

  template <class T>
  config::Option& add(T* field, const char* key, config::Effect effect, const char* unit, std::string help) {
    config::Option& option = at(key).add(field, key, effect, unit, std::move(help));
    const auto& later = family_.later_keys;
    const bool came = std::find(later.begin(), later.end(), std::string_view(key)) != later.end();
    return came_later(option, came, "false");
  }
  template <class T>
  void section(T* field, const char* key, const char* help) {
    at(key).section(field, key, help);
  }

 private:
  config::OptionTable& at(const char* key) {
    if (family_.shows(key)) return table_;
    table_.refuse(key, fmt::format("the family {} has its own value of it; model.type decoder takes any",
                                   family_.name));
    return hidden_;
  }

  const Family& family_;
  config::OptionTable& table_;
  config::OptionTable hidden_;
};

// The keys of a mixture of experts.
void visit_mixture(DecoderOptions& options, FamilyKeys& table);
// Checks that their values fit together.
Status check_mixture(const DecoderOptions& options);
// The keys of latent attention.
void visit_latent(DecoderOptions& options, FamilyKeys& table);
// Checks that their values fit together; sets head_dim.
Status check_latent(DecoderOptions& options);
// Adds the axes that only latent attention has.
void add_latent_axes(const DecoderOptions& options, config::IntMap& axes);
// Adds the axes that only a mixture has: experts, and the widths of the MLPs beside them.
void add_mixture_axes(const DecoderOptions& options, config::IntMap& axes);

}  // namespace ostro::models
