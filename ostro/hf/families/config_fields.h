// ConfigFields: the keys of a config.json, read or written by one description. A family's function names
// every key once, with the place of its value. Keys that it does not name are refused by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/models/decoder/decoder_options.h"

namespace ostro::hf {

// While reading, a function fills the field that it is given; while writing, it adds the key after the
// earlier ones. After the first error nothing more happens, and status() has it. Keys are Hugging Face's. Not
// thread-safe.
class ConfigFields {
 public:
  // Reads the text of a config.json; `where` begins errors.
  static Result<ConfigFields> reader(std::string_view json, std::string where);
  static ConfigFields writer();
  ConfigFields(ConfigFields&&) noexcept;
  ~ConfigFields();

  bool reading() const;
  const std::string& where() const;
  const Status& status() const;
  void fail(Error error);
  // True if the file has a value other than null for the key. The key counts as known.
  bool has(std::string_view key);

  // `missing` is what transformers takes where the key is absent or null; without it the key must be there.
  void integer(std::string_view key, int64_t* field, std::optional<int64_t> missing = {});
  void number(std::string_view key, double* field, std::optional<double> missing = {});
  void boolean(std::string_view key, bool* field, bool missing);
  // null where there is no value; `missing`: the value where the key is absent.
  void integer(std::string_view key, std::optional<int64_t>* field, std::optional<int64_t> missing = {});
  // A whole number is written without a fraction with `whole`.
  void number(std::string_view key, std::optional<double>* field, std::optional<double> missing = {},
              bool whole = false);
  // `tanh_name`: how the tanh form of gelu is written.
  void activation(std::string_view key, models::Activation* field, models::Activation missing,
                  const char* tanh_name = "gelu_new");
  // A list of a fixed length; an empty one where the key is absent.
  void words(std::string_view key, std::vector<std::string>* field);
  void integers(std::string_view key, std::vector<int64_t>* field);

  // One of some words; the first where the key is absent. While writing, `value`.
  std::string word(std::string_view key, std::string_view value,
                   std::initializer_list<std::string_view> known);

  // Features that no model here has: only this value, null, or an absent key is accepted.
  void must(std::string_view key, bool value);
  void must_be(std::string_view key, int64_t value);
  void must_say(std::string_view key, std::string_view value);
  void must_be_null(std::string_view key);  // not written
  // A key that changes no value of the trained model, but that programs expect: any value is accepted, this
  // one is written. Such keys that are not written are in harmless_keys.cc.
  void harmless(std::string_view key, double value);
  void harmless(std::string_view key, bool value);

  // The rotary embedding in its current form (rope_parameters) and in its older one (rope_theta,
  // rope_scaling), which must agree where a file has both. `max_positions`: for kinds that need the length
  // before stretching and do not say it. With `partial`, partial_rotary_factor too.
  void rope(models::RopeOptions* rope, double missing_theta, int64_t max_positions, double* partial = nullptr,
            double missing_partial = 1);
  // rope() for a family whose yarn also scales scores (mscale, mscale_all_dim). Other families refuse these.
  void scaled_rope(models::RopeOptions* rope, double missing_theta, int64_t max_positions);
  // rope() by kind of layer: a rope for layers without a window, and a theta for those with one.
  void ropes_by_layer(models::RopeOptions* rope, std::optional<double>* local_theta, double missing_theta,
                      double missing_local_theta, int64_t max_positions);

  // text, list_of, id and written are for writing only.
  void text(std::string_view key, std::string_view value);
  void list_of(std::string_view key, std::string_view only);
  void id(std::string_view key, const std::optional<uint32_t>& value);
  // The finished text.
  std::string written() const;
  // After reading: returns the first error, or one for the first key that is not null, not known and not
  // harmless (find_harmless). Harmless keys that are not usual are added to `passed_over`, each with its
  // reason.
  Status finish(std::string_view family, std::vector<std::string>* passed_over) const;

 private:
  struct State;
  void rope_of(models::RopeOptions* rope, double missing_theta, int64_t max_positions, double* partial,
               double missing_partial, bool scales_scores);
  explicit ConfigFields(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ostro::hf
