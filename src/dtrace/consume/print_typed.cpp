// SPDX-License-Identifier: BSD-2-Clause
// print(): a value by its type, structures with their members.
// Counterpart:  dt_print.c
// Invariants:   no deeper than the type nests; reads no byte outside the value.
#include <algorithm>
#include <cstring>

#include "dtrace/consume/format.hpp"

namespace dtmalloc::dtrace {
namespace {

bool is_printable(std::byte byte) { return byte >= std::byte{' '} && byte <= std::byte{'~'}; }

bool is_structure(const Type& type) {
  return type.kind == TypeKind::struct_ || type.kind == TypeKind::union_;
}
// A signed char is a character; other small integers are numbers.
bool is_character(const Type& type) {
  return type.kind == TypeKind::integer && type.is_char && type.is_signed;
}

// A bit-field out of the unit that holds it.
std::uint64_t field_of(const Type& type, unsigned bit, std::span<const std::byte> unit) {
  return unsigned_value(unit) >> bit & (~std::uint64_t{0} >> (64 - type.bits));
}

class TypedPrinter {
 public:
  TypedPrinter(std::string& out, const TypeTable& types) : out_(out), types_(types) {}

  // A value with its type before it; `depth` counts structures, `nest` arrays around them. `bit` is
  // where a bit-field lies in `bytes`.
  void member(std::string_view name, TypeId id, std::span<const std::byte> bytes, std::size_t depth,
              std::size_t nest, unsigned bit = 0) {
    const Type& type = types_[types_.resolve(id)];
    const bool element = nest != 0 && depth == 0;
    const bool brief = element && !is_structure(type);
    if (!brief) {
      if (element) out_ += '\n';
      indent(depth + nest);
      const std::string& type_name = types_[id].name;
      out_ += type_name;
      if (!name.empty()) {
        if (!type_name.ends_with('*')) out_ += ' ';
        out_ += name;
        if (type.bits != 0) append(out_, " :%u", unsigned{type.bits});
        out_ += " =";
      }
      out_ += ' ';
    }
    if (type.bits != 0) {
      append(out_, "%#llx", static_cast<unsigned long long>(field_of(type, bit, bytes)));
    } else {
      value(type, bytes, depth, nest);
    }
    // The outermost structure ends with its brace.
    if (!brief && !(is_structure(type) && depth == 0)) out_ += '\n';
  }

 private:
  void indent(std::size_t levels) { out_.append(levels * 4, ' '); }

  void value(const Type& type, std::span<const std::byte> bytes, std::size_t depth,
             std::size_t nest) {
    if (bytes.size() < type.size && type.kind != TypeKind::string) return;
    switch (type.kind) {
      case TypeKind::struct_:
      case TypeKind::union_:
        out_ += "{\n";
        for (const Member& part : type.members) {
          member(part.name, part.type, bytes.subspan(part.offset, size_of(part.type)), depth + 1,
                 nest, part.bit);
        }
        indent(depth + nest);
        out_ += '}';
        break;
      case TypeKind::array:
        array(type.target, type.count, bytes, depth, nest);
        break;
      case TypeKind::string:
        array(types_.char_type, bytes.size(), bytes, depth, nest);
        break;
      case TypeKind::floating:
        floating(bytes.first(type.size));
        break;
      case TypeKind::enum_: {
        const std::int64_t number = signed_value(bytes.first(type.size));
        const auto named =
            std::find_if(type.enumerators.begin(), type.enumerators.end(),
                         [&](const Enumerator& each) { return each.value == number; });
        out_ += named != type.enumerators.end() ? named->name : std::to_string(number);
        break;
      }
      default:
        if (is_character(type)) {
          character(bytes[0]);
        } else {
          append(out_, "%#llx",
                 static_cast<unsigned long long>(unsigned_value(bytes.first(type.size))));
        }
        break;
    }
  }

  // Bytes of a member; of a bit-field: of its unit.
  std::size_t size_of(TypeId id) const {
    const Type& type = types_[types_.resolve(id)];
    return type.bits != 0 ? types_[types_.resolve(type.target)].size : type.size;
  }

  void character(std::byte byte) {
    const auto c = static_cast<int>(std::to_integer<signed char>(byte));
    if (is_printable(byte)) {
      append(out_, "'%c'", c);
    } else if (c == 0) {
      out_ += "'\\0'";
    } else {
      append(out_, "'\\%03o'", static_cast<unsigned>(c));
    }
  }

  void floating(std::span<const std::byte> bytes) {
    if (bytes.size() == sizeof(float)) {
      float number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      append(out_, "%+.7e", static_cast<double>(number));
    } else if (bytes.size() == sizeof(double)) {
      double number = 0;
      std::memcpy(&number, bytes.data(), sizeof number);
      append(out_, "%+.7e", number);
    } else {
      long double number = 0;
      std::memcpy(&number, bytes.data(), std::min(bytes.size(), sizeof number));
      append(out_, "%+.16LE", number);
    }
  }

  // Printable characters up to a NUL.
  static std::size_t text_length(std::span<const std::byte> bytes) {
    std::size_t length = 0;
    while (length < bytes.size() && is_printable(bytes[length])) ++length;
    return length < bytes.size() && bytes[length] == std::byte{0} ? length : bytes.size();
  }

  void array(TypeId element, std::size_t count, std::span<const std::byte> bytes, std::size_t depth,
             std::size_t nest) {
    const Type& type = types_[types_.resolve(element)];
    const std::size_t length = is_character(type) ? text_length(bytes.first(count)) : count;
    const bool text = is_character(type) && length < count;
    // A text alone needs no brackets.
    const bool brackets = !text || depth != 0;
    if (brackets) out_ += "[ ";
    if (text) {
      out_ += '"';
      out_.append(reinterpret_cast<const char*>(bytes.data()), length);
      out_ += '"';
    }
    for (std::size_t i = 0; !text && i < count; ++i) {
      member({}, element, bytes.subspan(i * type.size, type.size), 0, nest + depth + 1);
      if (i + 1 < count) {
        out_ += ", ";
      } else if (is_structure(type)) {
        out_ += '\n';
      }
    }
    if (!brackets) return;
    if (is_structure(type)) {
      indent(depth + nest);
    } else {
      out_ += ' ';
    }
    out_ += ']';
  }

  std::string& out_;
  const TypeTable& types_;
};

}  // namespace

void print_typed(std::string& out, const TypeTable& types, const Datum& datum) {
  TypedPrinter(out, types).member({}, datum.desc.type, datum.bytes, 0, 0);
}

}  // namespace dtmalloc::dtrace
