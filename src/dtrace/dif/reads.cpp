// SPDX-License-Identifier: BSD-2-Clause
// Follows where the registers of an object come from.
// Invariants:   branches go forward only, so one pass in the order of the text sees every value
//               that can reach an instruction, if from the first branch on a register collects
//               origins and never loses one.
#include "dtrace/dif/reads.hpp"

#include <algorithm>

#include "dtrace/dif/dif_int.hpp"

namespace dtmalloc::dtrace {
namespace {

// Of a register's value. `any`: a mixture, not to be used as an address.
struct Origin {
  enum Kind : std::uint8_t { constant, fixed, argument, loaded, any };
  Kind kind = constant;
  std::uint64_t value = 0;  // constant: the number; argument: the offset
  unsigned number = 0;      // argument
  bool operator==(const Origin&) const = default;
};
constexpr Origin kFixed = {Origin::fixed, 0, 0};
constexpr Origin kAny = {Origin::any, 0, 0};

// Subroutines whose results depend on the numbers and texts that they are given, and nothing else.
bool is_function_of_text(std::uint32_t subroutine) {
  switch (subroutine) {
    case kSubrStrlen:
    case kSubrStrjoin:
    case kSubrLltostr:
    case kSubrBasename:
    case kSubrDirname:
    case kSubrCleanpath:
    case kSubrStrchr:
    case kSubrStrrchr:
    case kSubrStrstr:
    case kSubrSubstr:
    case kSubrIndex:
    case kSubrRindex:
    case kSubrHtons:
    case kSubrHtonl:
    case kSubrHtonll:
    case kSubrNtohs:
    case kSubrNtohl:
    case kSubrNtohll:
    case kSubrToupper:
    case kSubrTolower:
    case kSubrJson:
    case kSubrStrtoll:
      return true;
    default:
      return false;
  }
}

class Follower {
 public:
  explicit Follower(const DifObject& object) : object_(object) {}

  DifReads run() {
    for (const std::uint32_t word : object_.text) instruction(DifWord{word});
    return std::move(reads_);
  }

 private:
  void set(unsigned reg, Origin origin) {
    const Origin& old = origins_[reg];
    if (branched_ && old != origin) {
      origin = old.kind <= Origin::fixed && origin.kind <= Origin::fixed ? kFixed : kAny;
    }
    origins_[reg] = origin;
  }
  const Origin& of(unsigned reg) const { return origins_[reg]; }
  // Text is read at the register's value.
  void text_at(unsigned reg) {
    reads_.varies |= of(reg).kind == Origin::argument || of(reg).kind == Origin::any;
  }

  void compute(DifWord word) {
    const Origin& a = of(word.r1());
    const Origin& b = of(word.r2());
    const bool adds = static_cast<DifOp>(word.op()) == DifOp::add;
    Origin result = kAny;
    if (adds && a.kind == Origin::argument && b.kind == Origin::constant) {
      result = {Origin::argument, a.value + b.value, a.number};
    } else if (adds && b.kind == Origin::argument && a.kind == Origin::constant) {
      result = {Origin::argument, b.value + a.value, b.number};
    } else if (a.kind <= Origin::fixed && b.kind <= Origin::fixed) {
      result = kFixed;
    }
    set(word.rd(), result);
  }

  void builtin(std::uint32_t id, const Origin& index, unsigned rd) {
    if (id >= kVarArg0 && id <= kVarArg9) {
      argument(id - kVarArg0, rd);
    } else if (id == kVarArgs && index.kind == Origin::constant && index.value < 32) {
      argument(static_cast<unsigned>(index.value), rd);
    } else if (id == kVarId || id == kVarEpid || (id >= kVarProbeprov && id <= kVarProbename)) {
      set(rd, kFixed);
    } else if (id == kVarTid || id == kVarPid || id == kVarPpid || id == kVarUid || id == kVarGid ||
               id == kVarCpu) {
      reads_.builtins.push_back(id);
      set(rd, kAny);
    } else {
      reads_.varies = true;
    }
  }
  void argument(unsigned number, unsigned rd) {
    reads_.arguments |= 1U << number;
    set(rd, {Origin::argument, 0, number});
  }

  void load(DifWord word, unsigned size) {
    const Origin from = of(word.r1());
    if (from.kind != Origin::argument) {
      reads_.varies = true;
      return;
    }
    reads_.loads.push_back({from.number, from.value, size});
    set(word.rd(), {Origin::loaded, 0, 0});
  }

  void instruction(DifWord word) {
    const auto op = static_cast<DifOp>(word.op());
    switch (dif_op_info(word.op()).form) {
      case DifForm::rrr:
        if (op == DifOp::copys) {
          reads_.varies = true;
        } else {
          compute(word);
        }
        return;
      case DifForm::rr:
        if (op == DifOp::mov) {
          set(word.rd(), of(word.r1()));
        } else if (op == DifOp::allocs) {
          reads_.varies = true;
        } else {
          set(word.rd(), of(word.r1()).kind <= Origin::fixed ? kFixed : kAny);
        }
        return;
      case DifForm::cmp:
        if (op == DifOp::scmp) {
          text_at(word.r1());
          text_at(word.r2());
        }
        return;
      case DifForm::label:
        branched_ = true;
        return;
      case DifForm::index:
        set(word.rd(),
            op == DifOp::setx ? Origin{Origin::constant, object_.ints[word.index()], 0} : kFixed);
        return;
      case DifForm::load:
        switch (op) {
          case DifOp::ldsb:
          case DifOp::ldub:
            return load(word, 1);
          case DifOp::ldsh:
          case DifOp::lduh:
            return load(word, 2);
          case DifOp::ldsw:
          case DifOp::lduw:
            return load(word, 4);
          default:
            return load(word, 8);
        }
      case DifForm::var:
        if (op == DifOp::ldgs && word.index() < kVarUser) {
          builtin(word.index(), kAny, word.rd());
        } else {
          reads_.varies = true;
        }
        return;
      case DifForm::arr:
        builtin(word.r1(), of(word.r2()), word.rd());
        return;
      case DifForm::push:
        text_at(word.rd());  // of a subroutine, which may read text there
        return;
      case DifForm::call:
        reads_.varies |= !is_function_of_text(word.index());
        set(word.rd(), kFixed);
        return;
      case DifForm::rd:  // ret
        if (object_.result.by_ref) text_at(word.rd());
        reads_.varies |= object_.result.by_ref && object_.result.userland;
        return;
      case DifForm::uload:
      case DifForm::store:
      case DifForm::setvar:
        reads_.varies = true;
        return;
      case DifForm::r1:
      case DifForm::none:
        return;
      case DifForm::unknown:
        reads_.varies = true;
        return;
    }
  }

  const DifObject& object_;
  DifReads reads_;
  Origin origins_[kDifRegisters];
  bool branched_ = false;
};

}  // namespace

DifReads reads_of(const VerifiedDif& dif) { return Follower(dif.object()).run(); }

}  // namespace dtmalloc::dtrace
