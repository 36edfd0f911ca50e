#include "ostro/infer/page_pool.h"

#include <algorithm>

#include "ostro/base/check.h"

namespace ostro::infer {

using runtime::Buffer;

Result<PagePool> PagePool::create(const ir::Shape& keys, const ir::Shape& values, int64_t layers,
                                  runtime::Memory& memory) {
  const int64_t pages = keys.size_of("page");
  OSTRO_CHECK(keys.axes[0].name == "page" && values.axes[0] == keys.axes[0], "pools of {} and {}", keys.str(),
              values.str());
  PagePool out;
  out.key_shape_ = keys;
  out.value_shape_ = values;
  out.memory_ = &memory;
  out.layers_.resize(static_cast<size_t>(layers));
  out.holders_.resize(static_cast<size_t>(pages));
  out.kept_.resize(static_cast<size_t>(pages));
  for (int64_t page = pages; page-- > 0;) out.free_.push_back(static_cast<int32_t>(page));
  RETURN_IF_ERROR(out.restore());
  return out;
}

int64_t PagePool::bytes() const {
  return static_cast<int64_t>(layers_.size()) * (key_shape_.bytes() + value_shape_.bytes());
}

int32_t PagePool::take() {
  OSTRO_CHECK(!free_.empty(), "no page of {} is free", holders_.size());
  const int32_t page = free_.back();
  free_.pop_back();
  holders_[static_cast<size_t>(page)] = 1;
  return page;
}

void PagePool::share(int32_t page) {
  if (is_only_kept(page)) --only_kept_;
  ++holders_[static_cast<size_t>(page)];
}

void PagePool::drop(int32_t page) {
  int64_t& holders = holders_[static_cast<size_t>(page)];
  OSTRO_CHECK(holders > 0, "page {} has no holder", page);
  if (--holders == 0) free_.push_back(page);
  if (is_only_kept(page)) ++only_kept_;
}

void PagePool::keep(int32_t page) {
  OSTRO_CHECK(!kept_[static_cast<size_t>(page)], "page {} is kept already", page);
  share(page);
  kept_[static_cast<size_t>(page)] = true;
}

void PagePool::let_go(int32_t page) {
  OSTRO_CHECK(kept_[static_cast<size_t>(page)], "page {} is not kept", page);
  if (is_only_kept(page)) --only_kept_;
  kept_[static_cast<size_t>(page)] = false;
  drop(page);
}

bool PagePool::is_only_kept(int32_t page) const {
  return kept_[static_cast<size_t>(page)] && holders_[static_cast<size_t>(page)] == 1;
}

Status PagePool::copy(int32_t from, int32_t to, int64_t count) {
  for (Layer& layer : layers_)
    for (Buffer* array : {&layer.keys, &layer.values}) {
      ASSIGN_OR_RETURN(const Buffer page, array->rows(from, 1).to_host());
      std::vector<std::byte> bytes(page.bytes().begin(), page.bytes().end());
      if (const ir::Axis& inner = array->shape().axes[1]; inner.name == "slot") {
        const auto kept = static_cast<int64_t>(bytes.size()) / inner.size * count;
        std::fill(bytes.begin() + kept, bytes.end(), std::byte{0});
      }
      RETURN_IF_ERROR(array->rows(to, 1).write(bytes));
    }
  return {};
}

Status PagePool::clear(int32_t page) {
  std::vector<std::byte> zeros;
  for (Layer& layer : layers_)
    for (Buffer* array : {&layer.keys, &layer.values}) {
      Buffer one = array->rows(page, 1);
      zeros.resize(static_cast<size_t>(one.shape().bytes()));
      RETURN_IF_ERROR(one.write(zeros));
    }
  return {};
}

Status PagePool::restore() {
  for (Layer& layer : layers_) {
    if (!layer.keys.valid()) {
      ASSIGN_OR_RETURN(layer.keys, Buffer::zeros(key_shape_).to(*memory_));
    }
    if (!layer.values.valid()) {
      ASSIGN_OR_RETURN(layer.values, Buffer::zeros(value_shape_).to(*memory_));
    }
  }
  return {};
}

}  // namespace ostro::infer
