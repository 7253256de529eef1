// SPDX-License-Identifier: BSD-2-Clause
// Addresses as symbols.
// Counterpart:  see symbol_text.hpp
// Differs:      DEVIATES: no simulated thread has user frames, and no process symbols: ustack() is
//               empty, and user addresses print as numbers.
#include "dtrace/consume/symbol_text.hpp"

#include <algorithm>
#include <cstring>

#include "dtrace/consume/format.hpp"
#include "dtrace/core/symbols.hpp"

namespace dtmalloc::dtrace {
namespace {

std::uint64_t word(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at * 8, 8);
  return value;
}

std::string hexadecimal(std::uint64_t value) {
  std::string text;
  append(text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace

std::string SymbolText::address(std::uint64_t pc) const {
  const auto found = symbols != nullptr ? symbols->at(pc) : std::nullopt;
  if (!found) return hexadecimal(pc);
  std::string text = found->module + "`" + found->name;
  if (pc != found->address) text += "+" + hexadecimal(pc - found->address);
  return text;
}

std::string SymbolText::symbol(ValueForm form, std::span<const std::byte> bytes) const {
  if (form != ValueForm::sym && form != ValueForm::mod) return hexadecimal(word(bytes, 1));
  const std::uint64_t pc = word(bytes, 0);
  const auto found = symbols != nullptr ? symbols->at(pc) : std::nullopt;
  if (!found) return hexadecimal(pc);
  return form == ValueForm::mod ? found->module : found->module + "`" + found->name;
}

void SymbolText::stack(std::string& out, ValueForm form, std::span<const std::byte> bytes,
                       int indentation, int width) const {
  out += '\n';
  if (form == ValueForm::ustack) return;
  for (std::size_t i = 0; i < bytes.size() / 8 && word(bytes, i) != 0; ++i) {
    out.append(static_cast<std::size_t>(std::max(indentation, 0)), ' ');
    append(out, "%*s", width, address(word(bytes, i)).c_str());
    out += '\n';
  }
}

void SymbolText::print(std::string& out, ValueForm form, std::span<const std::byte> bytes) const {
  if (form == ValueForm::stack || form == ValueForm::ustack) {
    stack(out, form, bytes, indent);
  } else {
    append(out, "  %-50s", symbol(form, bytes).c_str());
  }
}

std::uint64_t SymbolText::canonical(ValueForm form, std::uint64_t pc) const {
  const auto found = symbols != nullptr ? symbols->at(pc) : std::nullopt;
  if (!found) return pc;
  if (form == ValueForm::sym) return found->address;
  return symbols->module_address(found->module);
}

}  // namespace dtmalloc::dtrace
