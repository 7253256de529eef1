// SPDX-License-Identifier: BSD-2-Clause
// The four kinds of failure: kernel semantics, simulated panic, user's error, our bug.
//
//   kernel semantics  a return value (nullptr, an errno)
//   simulated panic   KernelPanic, thrown; the machine stays readable
//   user's error      Result<T> holding a Diagnostic
//   our bug           DTM_CHECK, which aborts
//
// Thread safety: values; DTM_CHECK may be used anywhere.
// Source:        src/README.md.
#pragma once

#include <dtmalloc/sys/diagnostic.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace dtmalloc {

// panic(9) of a simulated machine. what() is the kernel's text, to the letter.
class KernelPanic : public std::runtime_error {
 public:
  explicit KernelPanic(const std::string& message, std::vector<std::string> backtrace = {})
      : std::runtime_error(message), backtrace_(std::move(backtrace)) {}
  // The simulated call sites of the thread that panicked, innermost first.
  const std::vector<std::string>& backtrace() const { return backtrace_; }

 private:
  std::vector<std::string> backtrace_;
};

// A value or the reason why there is none; the member names are std::expected's.
template <typename T, typename E = Diagnostic>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}
  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  E& error() { return std::get<1>(state_); }
  const E& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, E> state_;
};

template <typename E>
class [[nodiscard]] Result<void, E> {
 public:
  Result() = default;
  Result(E error) : error_(std::in_place_index<1>, std::move(error)) {}
  bool has_value() const { return error_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  E& error() { return std::get<1>(error_); }
  const E& error() const { return std::get<1>(error_); }

 private:
  std::variant<std::monostate, E> error_;
};

// Prints file, line, expression and text on stderr and aborts: a bug of ours.
[[noreturn]] void check_failed(const char* file, int line, const char* expression,
                               const char* text);

}  // namespace dtmalloc

#define DTM_CHECK(expression, text)                   \
  (__builtin_expect(static_cast<bool>(expression), 1) \
       ? static_cast<void>(0)                         \
       : ::dtmalloc::check_failed(__FILE__, __LINE__, #expression, text))
#ifdef DTM_CHECKS
#define DTM_DCHECK(expression, text) DTM_CHECK(expression, text)
#else
#define DTM_DCHECK(expression, text) static_cast<void>(sizeof(static_cast<bool>(expression)))
#endif
