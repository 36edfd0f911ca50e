#include "ostro/board/score_program.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/train/programs/run_flops.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::board {
namespace {

using runtime::Buffer;

Status check_rows(const std::string& what, const ir::Shape& shape, ir::DType dtype, const ir::Shape& tokens) {
  if (shape == tokens.with_dtype(dtype)) return {};
  return invalid_argument(
      fmt::format("{} is {}, and must be {}", what, shape.str(), tokens.with_dtype(dtype).str()));
}

}  // namespace

Result<ScoreProgram> ScoreProgram::create(ir::Program program, const audit::RecordedRun& run) {
  ScoreProgram out;
  if (program.result_names.empty() || program.result_names.front() != "per_token")
    return invalid_argument("its first result must be per_token, the loss of each token");
  // Nothing else that it computes is asked for.
  program.result_names.resize(1);
  program.body.results.resize(1);
  out.program_ = std::move(program);
  RETURN_IF_ERROR(out.take_inputs(run));
  return out;
}

Status ScoreProgram::take_inputs(const audit::RecordedRun& run) {
  const ir::Program& p = program_;
  if (p.param_names.size() != p.body.params.size())
    return invalid_argument("its parameters have no names, by which they are given");
  const auto shape_of = [&](size_t i) -> const ir::Shape& { return p.body.shape(p.body.params[i]); };
  const auto at = std::find(p.param_names.begin(), p.param_names.end(), "tokens");
  if (at == p.param_names.end()) return invalid_argument("it has no parameter tokens");
  const ir::Shape& tokens = shape_of(static_cast<size_t>(at - p.param_names.begin()));
  if (tokens.dtype != ir::DType::i32 || tokens.axes.size() != 2 || tokens.axes[0].name != "batch" ||
      tokens.axes[1].name != "pos")
    return invalid_argument(fmt::format("tokens is {}, and must be i32 [batch, pos]", tokens.str()));
  batch_ = tokens.axes[0].size, length_ = tokens.axes[1].size;
  if (batch_ < 1 || length_ < 1 || length_ > kMostPositions || batch_ > kMostBatchPositions / length_)
    return invalid_argument(
        fmt::format("tokens is {}; it may have 1 to {} positions, and 1 to {} in all rows together",
                    tokens.str(), kMostPositions, kMostBatchPositions));
  const train::StateArrays arrays = train::state_arrays(run.periods.back().programs);
  const std::vector<size_t> evaluated = train::evaluated_arrays(arrays);
  for (size_t i = 0; i < p.param_names.size(); ++i) {
    const std::string& name = p.param_names[i];
    const ir::Shape& shape = shape_of(i);
    arrays_.emplace_back();
    if (name == "tokens") {
      inputs_.push_back(Input::kTokens);
    } else if (name == "targets") {
      inputs_.push_back(Input::kTargets);
      RETURN_IF_ERROR(check_rows(name, shape, ir::DType::i32, tokens));
    } else if (name == "loss_mask") {
      inputs_.push_back(Input::kLossMask);
      RETURN_IF_ERROR(check_rows(name, shape, ir::DType::f32, tokens));
    } else if (name == "segments") {
      inputs_.push_back(Input::kSegments);
      RETURN_IF_ERROR(check_rows(name, shape, ir::DType::i32, tokens));
    } else {
      const auto path = std::find(run.paths.begin(), run.paths.end(), name);
      if (path == run.paths.end())
        return invalid_argument(fmt::format("it has the parameter {}, which is none of the model", name));
      const auto k = static_cast<size_t>(path - run.paths.begin());
      if (shape != run.shapes[k])
        return invalid_argument(fmt::format("its parameter {} is {}, that of the model is {}", name,
                                            shape.str(), run.shapes[k].str()));
      inputs_.push_back(Input::kParameter);
      arrays_.back() = arrays.paths[evaluated[k]];
    }
  }
  return check_rows("per_token", p.body.shape(p.body.results.front()), ir::DType::f32, tokens);
}

double ScoreProgram::flops(int64_t rows) const {
  return train::program_flops(program_) * static_cast<double>((rows + batch_ - 1) / batch_);
}

Status ScoreProgram::load(io::FileSystem& fs, runtime::Engine& engine, const std::string& checkpoint) {
  train::StateArrays arrays = train::parameter_arrays({}, {});
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] != Input::kParameter) continue;
    arrays.parameter.push_back(arrays.paths.size());
    arrays.paths.push_back(arrays_[i]);
    arrays.shapes.push_back(program_.body.shape(program_.body.params[i]));
  }
  arrays.n = arrays.paths.size();
  ASSIGN_OR_RETURN(train::RestoredState restored, train::load_state(fs, checkpoint, arrays, {}));
  ASSIGN_OR_RETURN(executable_, engine.compile(program_));
  values_.assign(inputs_.size(), Buffer());
  const ir::Shape rows{ir::DType::f32, {{"batch", batch_}, {"pos", length_}}};
  size_t next = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i] == Input::kParameter) {
      ASSIGN_OR_RETURN(values_[i], restored.state.params[next++].to(engine.memory()));
    } else if (inputs_[i] == Input::kLossMask) {
      values_[i] = Buffer::empty(rows);
      std::fill(values_[i].mutable_as<float>().begin(), values_[i].mutable_as<float>().end(), 1.0F);
    } else if (inputs_[i] == Input::kSegments) {
      values_[i] = Buffer::zeros(rows.with_dtype(ir::DType::i32));
    }
  }
  return {};
}

Result<std::vector<float>> ScoreProgram::score(std::span<const int32_t> tokens,
                                               std::span<const int32_t> targets) const {
  OSTRO_CHECK(executable_ != nullptr, "score() before load()");
  const ir::Shape ids{ir::DType::i32, {{"batch", batch_}, {"pos", length_}}};
  const auto size = static_cast<size_t>(batch_ * length_);
  std::vector<float> out;
  for (size_t first = 0; first < tokens.size(); first += size) {
    const size_t count = std::min(size, tokens.size() - first);
    std::vector<Buffer> inputs = values_;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (inputs_[i] != Input::kTokens && inputs_[i] != Input::kTargets) continue;
      inputs[i] = Buffer::zeros(ids);  // rows that only fill the batch
      const auto from = (inputs_[i] == Input::kTokens ? tokens : targets).subspan(first, count);
      std::copy(from.begin(), from.end(), inputs[i].mutable_as<int32_t>().begin());
    }
    ASSIGN_OR_RETURN(const std::vector<Buffer> results, executable_->run(std::move(inputs)));
    ASSIGN_OR_RETURN(const Buffer losses, results.front().to_host());
    const auto values = losses.as<float>();
    out.insert(out.end(), values.begin(), values.begin() + static_cast<int64_t>(count));
  }
  return out;
}

}  // namespace ostro::board
