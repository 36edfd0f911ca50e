// Field, one, each and others: the parameters and results of a program, by name instead of by number.
//
// One struct template declares one side of a program (leaf_io.h, update_io.h). Its members are single
// elements or lists, and its `visit` names them in the order of the program. The element type says what is
// meant: traced arrays, buffers, names, shapes, or, with size_t, the places in the program's list. So the
// code that traces a program and the code that runs it share one declaration, and no code counts places.
//
//   template <typename T>
//   struct Sums {
//     T loss_sum{}, weight{};
//     std::vector<T> measures;
//     template <typename Visitor, typename... Self>
//     static void visit(Visitor&& v, Self&... s) {
//       v(one("loss_sum", ir::DType::f64), s.loss_sum...);
//       v(one("weight", ir::DType::f64), s.weight...);
//       v(each("measure/", ir::scalar(ir::DType::f64)), s.measures...);
//     }
//   };
#pragma once

#include <iterator>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"

namespace ostro::train {

// The kind of a member of a declaration, and the names of its elements.
struct Field {
  enum class Kind {
    kOne,           // one element of this name; "": of any name
    kPerParameter,  // one for each parameter: prefix + path
    kPerTrained,    // one for each trained parameter, which come first; or none
    kOptimizer,     // the optimizer's arrays: "first_moment/" + path
    kEach,          // any number of elements: prefix + anything
    kRest,          // all that remain
  };
  Kind kind;
  std::string name;  // the name of the one element, or the prefix
  // The shape of each element. Nothing: that of its parameter or, for kOptimizer and kRest, any.
  std::optional<ir::Shape> shape;

  // True when an element is cut over workers as its parameter is.
  bool like_parameter() const {
    return kind == Kind::kOptimizer || (!shape && (kind == Kind::kPerParameter || kind == Kind::kPerTrained));
  }
};

inline Field one(std::string name, ir::DType dtype) {
  return {Field::Kind::kOne, std::move(name), ir::scalar(dtype)};
}
inline Field per_parameter(std::string prefix, std::optional<ir::Shape> shape = {}) {
  return {Field::Kind::kPerParameter, std::move(prefix), std::move(shape)};
}
inline Field per_trained(std::string prefix, std::optional<ir::Shape> shape = {}) {
  return {Field::Kind::kPerTrained, std::move(prefix), std::move(shape)};
}
inline Field optimizer_arrays() { return {Field::Kind::kOptimizer, "", {}}; }
inline Field each(std::string prefix, ir::Shape shape) {
  return {Field::Kind::kEach, std::move(prefix), std::move(shape)};
}
inline Field rest(std::optional<ir::Shape> shape = {}) { return {Field::Kind::kRest, "", std::move(shape)}; }

template <typename T>
inline constexpr bool kIsList = false;
template <typename T>
inline constexpr bool kIsList<std::vector<T>> = true;

// All elements in the order of the program.
template <template <typename> class Io, typename T>
std::vector<T> as_list(Io<T> io) {
  std::vector<T> out;
  Io<T>::visit(
      [&](const Field&, auto& member) {
        if constexpr (kIsList<std::remove_cvref_t<decltype(member)>>)
          out.insert(out.end(), std::make_move_iterator(member.begin()),
                     std::make_move_iterator(member.end()));
        else
          out.push_back(std::move(member));
      },
      io);
  return out;
}

// Puts the elements of a program's list into a declaration, by the places `at`. Elements without a place are
// dropped.
template <typename T, template <typename> class Io>
Io<T> read_fields(const Io<size_t>& at, std::vector<T> list) {
  Io<T> out;
  Io<T>::visit(
      [&](const Field&, const auto& place, auto& member) {
        if constexpr (kIsList<std::remove_cvref_t<decltype(place)>>)
          for (const size_t i : place) member.push_back(std::move(list[i]));
        else
          member = std::move(list[place]);
      },
      at, out);
  return out;
}

// One element for each of `io`: f(field, element).
template <typename R, template <typename> class Io, typename T, typename F>
Io<R> map_fields(const Io<T>& io, F&& f) {
  Io<R> out;
  Io<R>::visit(
      [&](const Field& field, const auto& from, auto& to) {
        if constexpr (kIsList<std::remove_cvref_t<decltype(from)>>)
          for (const T& x : from) to.push_back(f(field, x));
        else
          to = f(field, from);
      },
      io, out);
  return out;
}

// The places of a list that has exactly these elements.
template <template <typename> class Io, typename T>
Io<size_t> places_of(const Io<T>& io) {
  return map_fields<size_t>(io, [next = size_t{0}](const Field&, const T&) mutable { return next++; });
}

// The names of a program's list. `keys` has the part of each name after the prefix; that of a single element
// is empty.
template <template <typename> class Io>
std::vector<std::string> full_names(const Io<std::string>& keys) {
  return as_list(map_fields<std::string>(
      keys, [](const Field& field, const std::string& key) { return field.name + key; }));
}

enum class Side { kParams, kResults };

// The parameters of the model, as the init program gives them.
struct ParameterList {
  std::vector<std::string> paths;
  std::vector<ir::Shape> shapes;
};

// Returns the number of elements of each field in a program. Errors name the program, the place, the element
// that is there and the one that should be.
Result<std::vector<size_t>> match_fields(const ir::Program& program, Side side,
                                         const std::vector<Field>& fields, const ParameterList& model);

// Returns the places of a declaration's members in a program. Error: a name or a shape is not as declared.
template <template <typename> class Io>
Result<Io<size_t>> signature_of(const ir::Program& program, Side side, const ParameterList& model) {
  Io<size_t> at;
  std::vector<Field> fields;
  Io<size_t>::visit([&](const Field& field, auto&) { fields.push_back(field); }, at);
  ASSIGN_OR_RETURN(const std::vector<size_t> counts, match_fields(program, side, fields, model));
  size_t field = 0, next = 0;
  Io<size_t>::visit(
      [&](const Field&, auto& member) {
        if constexpr (kIsList<std::remove_cvref_t<decltype(member)>>)
          for (size_t i = 0; i < counts[field]; ++i) member.push_back(next++);
        else
          member = next++;
        ++field;
      },
      at);
  return at;
}

}  // namespace ostro::train
