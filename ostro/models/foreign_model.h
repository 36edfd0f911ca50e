// ForeignModel: stands for a model that this program does not have, so that a record of such a run can be
// read and its stored programs can be replayed. It has the options that the record has, and no functions.
//
// A value; copies are independent. Its functions() abort: who passes a ForeignModel uses stored programs.
#pragma once

#include <deque>
#include <string>

#include "ostro/config/node.h"
#include "ostro/models/model_options.h"

namespace ostro::models {

class ForeignModel final : public ModelOptions {
 public:
  // `type` is the value of model.type. `options` are the maps `model` of the configurations in the record: a
  // key of `canonical` counts as one that changes bits, any other key of `written` as one that changes none.
  // `seq_len`, `leaf_axes` and `cell_axes` are those that the record uses; the model itself is not there to
  // be asked.
  ForeignModel(std::string type, const config::Node& canonical, const config::Node& written, int64_t seq_len,
               config::IntMap leaf_axes, config::IntMap cell_axes);

  std::string type() const override { return type_; }
  void visit_options(config::OptionTable& table) override;
  std::unique_ptr<config::SectionValue> clone() const override {
    return std::make_unique<ForeignModel>(*this);
  }
  Status resolve() override { return {}; }
  int64_t seq_len() const override { return seq_len_; }
  config::IntMap leaf_axes() const override { return leaf_axes_; }
  config::IntMap cell_axes() const override { return cell_axes_; }
  ExpertsUsed experts_used() const override { return {}; }
  bool integer_attention() const override { return true; }  // as its stored programs have it
  Result<std::string> remat() const override { return std::string("none"); }
  ModelFunctions functions(int64_t vocab, const nn::Precision& compute,
                           const std::optional<nn::LoraSpec>& lora = {}) const override;
  ModelFunctions evaluation_functions(int64_t vocab, const nn::Precision& compute,
                                      const std::optional<nn::LoraSpec>& lora = {}) const override;

  // An option of any type, kept as it was read.
  struct AnyValue {
    config::Node node;
  };

 private:
  struct Field {
    std::string name;
    config::Effect effect;
    AnyValue value;
  };

  std::string type_;
  std::deque<Field> fields_;
  int64_t seq_len_;
  config::IntMap leaf_axes_, cell_axes_;
};

// The functions of config/codec.h for this type.
Status read_value(const config::Node& node, const std::string& path, ForeignModel::AnyValue* out);
config::Node write_value(const ForeignModel::AnyValue& value, config::Write which);
std::string type_text(const ForeignModel::AnyValue*);

}  // namespace ostro::models
