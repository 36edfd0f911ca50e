// The Python module ostro._native: native.h for Python. What a person calls is in python/ostro/*.py.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "native.h"

namespace nb = nanobind;
using namespace ostro::native;

namespace {

using Free = nb::call_guard<nb::gil_scoped_release>;

// Whether a signal's handler in Python raised, such as Ctrl-C's. The exception stays set.
bool interrupted() {
  const nb::gil_scoped_acquire python;
  return PyErr_CheckSignals() != 0;
}

nb::dlpack::dtype type_of(const std::string& name) {
  if (name == "f32") return nb::dtype<float>();
  if (name == "f64") return nb::dtype<double>();
  if (name == "i8") return nb::dtype<int8_t>();
  if (name == "i32") return nb::dtype<int32_t>();
  if (name == "i64") return nb::dtype<int64_t>();
  if (name == "u8") return nb::dtype<uint8_t>();
  if (name == "u32") return nb::dtype<uint32_t>();
  if (name == "u64") return nb::dtype<uint64_t>();
  if (name == "bf16" || name == "u16") return nb::dtype<uint16_t>();  // numpy has no bf16
  throw std::invalid_argument("arrays of type " + name + " cannot be shown");
}

// A view in numpy, which keeps the memory.
template <typename... Kind>
nb::object view(const Values& values) {
  auto* holder = new std::shared_ptr<const void>(values.memory);
  const nb::capsule owner(holder,
                          [](void* p) noexcept { delete static_cast<std::shared_ptr<const void>*>(p); });
  std::vector<size_t> shape(values.shape.begin(), values.shape.end());
  return nb::cast(nb::ndarray<nb::numpy, Kind...>(const_cast<void*>(values.data), shape.size(), shape.data(),
                                                  owner, nullptr, type_of(values.dtype)));
}

// Ends a call that an Interrupt ended: with what the handler raised.
void translate(const std::exception_ptr& thrown, void* error) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Interrupted&) {
    if (PyErr_Occurred() == nullptr) PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (const Failure& failure) {
    PyErr_SetString(static_cast<PyObject*>(error), failure.what());
  }
}

}  // namespace

NB_MODULE(_native, m) {
  m.attr("__doc__") = "What ostro's Python package calls; see the package.";
  nb::object error = nb::steal(PyErr_NewExceptionWithDoc(
      "ostro.Error", "What the command line prints behind \"error: \".", PyExc_RuntimeError, nullptr));
  m.attr("Error") = error;
  nb::register_exception_translator(translate, error.ptr());

  nb::class_<Score>(m, "Score")
      .def_ro("log_prob", &Score::log_prob)
      .def_ro("tokens", &Score::tokens)
      .def_ro("bytes", &Score::bytes);

  nb::class_<Answer>(m, "Answer")
      .def("next", &Answer::next, Free())
      .def("ids", &Answer::ids, Free())
      .def("finish", &Answer::finish, Free());

  nb::class_<Model>(m, "Model")
      .def_prop_ro("path", &Model::path)
      .def_prop_ro("state", &Model::state)
      .def_prop_ro("step", &Model::step)
      .def_prop_ro("adapter", &Model::adapter)
      .def_prop_ro("context", &Model::context)
      .def_prop_ro("vocab_size", &Model::vocab_size)
      .def_prop_ro("tokenizer_hash", &Model::tokenizer_hash)
      .def("names", &Model::arrays)
      .def(
          "array",
          [](const Model& model, const std::string& name) {
            try {
              return view<nb::ro>(model.array(name));
            } catch (const std::out_of_range&) {
              throw nb::key_error(name.c_str());
            }
          },
          nb::arg("name"))
      .def(
          "dtype", [](const Model& model, const std::string& name) { return model.array(name).dtype; },
          nb::arg("name"))
      .def("encode", &Model::encode, Free(), nb::arg("text"))
      .def(
          "decode",
          [](const Model& model, const std::vector<uint32_t>& ids, bool skip_special) {
            return model.decode(ids, skip_special);
          },
          nb::arg("ids"), nb::arg("skip_special"))
      .def("prompt", &Model::prompt, Free(), nb::arg("text"))
      .def("chat_prompt", &Model::chat_prompt, Free(), nb::arg("messages"), nb::arg("tools"))
      .def(
          "logits",
          [](Model& model, const std::vector<int32_t>& ids) {
            Values out;
            {
              const nb::gil_scoped_release free;
              out = model.logits(ids);
            }
            return view<>(out);
          },
          nb::arg("ids"))
      .def(
          "log_probs",
          [](Model& model, const std::vector<int32_t>& ids) {
            Values out;
            {
              const nb::gil_scoped_release free;
              out = model.log_probs(ids);
            }
            return view<>(out);
          },
          nb::arg("ids"))
      .def(
          "score",
          [](Model& model, const std::vector<std::string>& texts, int64_t stride) {
            const nb::gil_scoped_release free;
            return model.score(texts, stride, interrupted);
          },
          nb::arg("texts"), nb::arg("stride"))
      .def(
          "answer",
          [](Model& model, std::vector<int32_t> prompt, int64_t max_tokens, double temperature, uint64_t seed,
             int64_t top_k, double top_p, double min_p, std::vector<std::string> stop) {
            const nb::gil_scoped_release free;
            return model.answer(std::move(prompt),
                                {max_tokens, temperature, seed, top_k, top_p, min_p, std::move(stop)});
          },
          nb::arg("prompt"), nb::arg("max_tokens"), nb::arg("temperature"), nb::arg("seed"), nb::arg("top_k"),
          nb::arg("top_p"), nb::arg("min_p"), nb::arg("stop"));

  m.def(
      "load",
      [](const std::string& where, const std::string& tokenizer, const std::string& mp,
         const std::string& device, std::optional<int64_t> seq_len, bool unchecked,
         const std::string& adapter) {
        const nb::gil_scoped_release free;
        return load(where, {tokenizer, mp, device, seq_len, unchecked, adapter});
      },
      nb::arg("where"), nb::arg("tokenizer"), nb::arg("mp"), nb::arg("device"), nb::arg("seq_len").none(),
      nb::arg("unchecked"), nb::arg("adapter"));

  nb::class_<RunStep>(m, "Step")
      .def_ro("step", &RunStep::step)
      .def_ro("loss", &RunStep::loss)
      .def_ro("tokens", &RunStep::tokens)
      .def_ro("state", &RunStep::state);
  m.def(
      "read_run",
      [](const std::string& directory) {
        RunRecord out;
        {
          const nb::gil_scoped_release free;
          out = read_run(directory);
        }
        return nb::make_tuple(out.hash, out.steps);
      },
      nb::arg("directory"));

  m.def(
      "train",
      [](const std::string& config, const std::vector<std::pair<std::string, std::string>>& overrides,
         const std::vector<std::string>& words, std::optional<std::string> device, bool amend) {
        TrainOutcome out;
        {
          const nb::gil_scoped_release free;
          out = train({config, overrides, words, std::move(device), amend});
        }
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        return nb::make_tuple(out.directory, out.finished, out.steps);
      },
      nb::arg("config"), nb::arg("overrides"), nb::arg("words"), nb::arg("device").none(), nb::arg("amend"));

  nb::class_<VerifyOptions>(m, "VerifyOptions")
      .def(nb::init<>())
      .def_rw("from_step", &VerifyOptions::from_step, nb::arg().none())
      .def_rw("to_step", &VerifyOptions::to_step, nb::arg().none())
      .def_rw("sample", &VerifyOptions::sample, nb::arg().none())
      .def_rw("run_hash", &VerifyOptions::run_hash)
      .def_rw("cache", &VerifyOptions::cache)
      .def_rw("parent", &VerifyOptions::parent)
      .def_rw("model", &VerifyOptions::model)
      .def_rw("challenge", &VerifyOptions::challenge)
      .def_rw("leaf", &VerifyOptions::leaf)
      .def_rw("rows", &VerifyOptions::rows)
      .def_rw("key", &VerifyOptions::key)
      .def_rw("device", &VerifyOptions::device)
      .def_rw("no_replay", &VerifyOptions::no_replay);
  m.def(
      "verify",
      [](const std::string& run, const VerifyOptions& options) {
        Verification out;
        {
          const nb::gil_scoped_release free;
          out = verify(run, options, interrupted);
        }
        return nb::make_tuple(out.verdict, out.text);
      },
      nb::arg("run"), nb::arg("options"));

  nb::class_<Server>(m, "Server")
      .def_prop_ro("url", &Server::url)
      .def("stop", &Server::stop, Free(), nb::arg("seconds"));
  nb::class_<ServeOptions>(m, "ServeOptions")
      .def(nb::init<>())
      .def_rw("listen", &ServeOptions::listen)
      .def_rw("api_keys", &ServeOptions::api_keys)
      .def_rw("receipts", &ServeOptions::receipts)
      .def_rw("sign", &ServeOptions::sign)
      .def_rw("waiting", &ServeOptions::waiting)
      .def_rw("running", &ServeOptions::running)
      .def_rw("cache_pages", &ServeOptions::cache_pages);
  m.def(
      "serve",
      [](const std::shared_ptr<Model>& model, const ServeOptions& options,
         const std::vector<std::pair<std::string, std::string>>& adapters) {
        const nb::gil_scoped_release free;
        return serve(model, options, adapters);
      },
      nb::arg("model"), nb::arg("options"), nb::arg("adapters"));

  m.def("version", &version);
}
