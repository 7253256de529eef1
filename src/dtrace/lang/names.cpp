// SPDX-License-Identifier: BSD-2-Clause
// The names that D knows: functions with their prototypes, and built-in variables.
// Counterpart:  dt_open.c (_dtrace_globals)
#include <algorithm>
#include <array>

#include "dtrace/lang/definitions.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

constexpr FunctionInfo action(std::string_view name, ActionKind kind,
                              std::string_view arguments = "") {
  return {name, FunctionKind::action, static_cast<std::uint32_t>(kind), "void", arguments};
}
constexpr FunctionInfo aggregating(std::string_view name, AggFunction function) {
  return {name, FunctionKind::aggregating, static_cast<std::uint32_t>(function), "void", ""};
}
constexpr FunctionInfo subroutine(std::string_view name, DifSubr id, std::string_view result,
                                  std::string_view arguments) {
  return {name, FunctionKind::subroutine, id, result, arguments};
}

constexpr std::string_view kText = "const char *";
constexpr std::string_view kMutex = "struct mtx *";
constexpr std::string_view kRwlock = "struct rwlock *";
constexpr std::string_view kSx = "struct sx *";
constexpr std::array kFunctions = {
    action("trace", ActionKind::trace),
    action("print", ActionKind::print),
    action("tracemem", ActionKind::tracemem),
    action("printm", ActionKind::printm),
    action("printf", ActionKind::printf),
    action("printa", ActionKind::printa),
    action("exit", ActionKind::exit),
    action("uaddr", ActionKind::symbol),
    action("umod", ActionKind::symbol),
    action("ufunc", ActionKind::symbol),
    action("usym", ActionKind::symbol),
    action("mod", ActionKind::symbol),
    action("func", ActionKind::symbol),
    action("sym", ActionKind::symbol),
    action("jstack", ActionKind::ustack),
    action("ustack", ActionKind::ustack),
    action("stack", ActionKind::stack),
    action("clear", ActionKind::clear),
    action("trunc", ActionKind::trunc),
    action("normalize", ActionKind::normalize),
    action("denormalize", ActionKind::denormalize),
    action("speculate", ActionKind::speculate, "int"),
    action("commit", ActionKind::commit, "int"),
    action("discard", ActionKind::discard, "int"),
    action("setopt", ActionKind::setopt, "const char *,?const char *"),
    action("ftruncate", ActionKind::ftruncate),
    action("system", ActionKind::system),
    action("freopen", ActionKind::freopen),
    action("raise", ActionKind::raise, "int"),
    action("stop", ActionKind::stop),
    action("chill", ActionKind::chill, "int"),
    action("panic", ActionKind::panic),
    action("breakpoint", ActionKind::breakpoint),
    aggregating("count", AggFunction::count),
    aggregating("sum", AggFunction::sum),
    aggregating("min", AggFunction::min),
    aggregating("max", AggFunction::max),
    aggregating("avg", AggFunction::avg),
    aggregating("stddev", AggFunction::stddev),
    aggregating("quantize", AggFunction::quantize),
    aggregating("lquantize", AggFunction::lquantize),
    aggregating("llquantize", AggFunction::llquantize),
    subroutine("rand", kSubrRand, "int", ""),
    subroutine("speculation", kSubrSpeculation, "int", ""),
    subroutine("strlen", kSubrStrlen, "size_t", kText),
    subroutine("strjoin", kSubrStrjoin, "string", "const char *,const char *"),
    subroutine("lltostr", kSubrLltostr, "string", "int64_t,?int"),
    subroutine("basename", kSubrBasename, "string", kText),
    subroutine("dirname", kSubrDirname, "string", kText),
    subroutine("strchr", kSubrStrchr, "string", "const char *,char"),
    subroutine("strrchr", kSubrStrrchr, "string", "const char *,char"),
    subroutine("strstr", kSubrStrstr, "string", "const char *,const char *"),
    subroutine("substr", kSubrSubstr, "string", "const char *,int,?int"),
    subroutine("index", kSubrIndex, "int", "const char *,const char *,?int"),
    subroutine("rindex", kSubrRindex, "int", "const char *,const char *,?int"),
    subroutine("htons", kSubrHtons, "uint16_t", "uint16_t"),
    subroutine("htonl", kSubrHtonl, "uint32_t", "uint32_t"),
    subroutine("htonll", kSubrHtonll, "uint64_t", "uint64_t"),
    subroutine("ntohs", kSubrNtohs, "uint16_t", "uint16_t"),
    subroutine("ntohl", kSubrNtohl, "uint32_t", "uint32_t"),
    subroutine("ntohll", kSubrNtohll, "uint64_t", "uint64_t"),
    subroutine("toupper", kSubrToupper, "string", kText),
    subroutine("tolower", kSubrTolower, "string", kText),
    subroutine("strtoll", kSubrStrtoll, "int64_t", "const char *,?int"),
    subroutine("strtok", kSubrStrtok, "string", "const char *,const char *"),
    subroutine("cleanpath", kSubrCleanpath, "string", kText),
    subroutine("json", kSubrJson, "string", "const char *,const char *"),
    subroutine("inet_ntoa", kSubrInetNtoa, "string", "in_addr_t *"),
    subroutine("inet_ntoa6", kSubrInetNtoa6, "string", "struct in6_addr *"),
    subroutine("inet_ntop", kSubrInetNtop, "string", "int,void *"),
    subroutine("alloca", kSubrAlloca, "void *", "size_t"),
    subroutine("bcopy", kSubrBcopy, "void", "void *,void *,size_t"),
    subroutine("copyin", kSubrCopyin, "void *", "uintptr_t,size_t"),
    subroutine("copyinstr", kSubrCopyinstr, "string", "uintptr_t,?size_t"),
    subroutine("copyinto", kSubrCopyinto, "void *", "uintptr_t,size_t,void *"),
    subroutine("copyout", kSubrCopyout, "void", "void *,uintptr_t,size_t"),
    subroutine("copyoutstr", kSubrCopyoutstr, "void", "char *,uintptr_t,size_t"),
    subroutine("memref", kSubrMemref, "uintptr_t *", "void *,size_t"),
    subroutine("memstr", kSubrMemstr, "string", "void *,char,size_t"),
    subroutine("progenyof", kSubrProgenyof, "int", "pid_t"),
    subroutine("mutex_owned", kSubrMutexOwned, "int", kMutex),
    subroutine("mutex_owner", kSubrMutexOwner, "struct thread *", kMutex),
    subroutine("mutex_type_adaptive", kSubrMutexTypeAdaptive, "int", kMutex),
    subroutine("mutex_type_spin", kSubrMutexTypeSpin, "int", kMutex),
    subroutine("rw_read_held", kSubrRwReadHeld, "int", kRwlock),
    subroutine("rw_write_held", kSubrRwWriteHeld, "int", kRwlock),
    subroutine("rw_iswriter", kSubrRwIswriter, "int", kRwlock),
    subroutine("sx_shared_held", kSubrSxSharedHeld, "int", kSx),
    subroutine("sx_exclusive_held", kSubrSxExclusiveHeld, "int", kSx),
    subroutine("sx_isexclusive", kSubrSxIsexclusive, "int", kSx),
    subroutine("ddi_pathname", kSubrDdiPathname, "string", "void *,int64_t"),
    // Of types that FreeBSD does not have.
    subroutine("getmajor", kSubrGetmajor, "genunix`major_t", "genunix`dev_t"),
    subroutine("getminor", kSubrGetminor, "genunix`minor_t", "genunix`dev_t"),
    subroutine("getf", kSubrGetf, "file_t *", "int"),
};

constexpr std::array kBuiltins = {
    BuiltinVariable{"arg0", kVarArg0, "int64_t"},
    BuiltinVariable{"arg1", kVarArg0 + 1, "int64_t"},
    BuiltinVariable{"arg2", kVarArg0 + 2, "int64_t"},
    BuiltinVariable{"arg3", kVarArg0 + 3, "int64_t"},
    BuiltinVariable{"arg4", kVarArg0 + 4, "int64_t"},
    BuiltinVariable{"arg5", kVarArg0 + 5, "int64_t"},
    BuiltinVariable{"arg6", kVarArg0 + 6, "int64_t"},
    BuiltinVariable{"arg7", kVarArg0 + 7, "int64_t"},
    BuiltinVariable{"arg8", kVarArg0 + 8, "int64_t"},
    BuiltinVariable{"arg9", kVarArg9, "int64_t"},
    BuiltinVariable{"caller", kVarCaller, "uintptr_t"},
    BuiltinVariable{"cpu", kVarCpu, "int"},
    BuiltinVariable{"curthread", kVarCurthread, "struct thread *"},
    BuiltinVariable{"epid", kVarEpid, "uint_t"},
    BuiltinVariable{"errno", kVarErrno, "int"},
    BuiltinVariable{"execargs", kVarExecargs, "string"},
    BuiltinVariable{"execname", kVarExecname, "string"},
    BuiltinVariable{"gid", kVarGid, "gid_t"},
    BuiltinVariable{"id", kVarId, "uint_t"},
    BuiltinVariable{"ipl", kVarIpl, "uint_t"},
    BuiltinVariable{"jailname", kVarJailname, "string"},
    BuiltinVariable{"jid", kVarJid, "int"},
    BuiltinVariable{"pid", kVarPid, "pid_t"},
    BuiltinVariable{"ppid", kVarPpid, "pid_t"},
    BuiltinVariable{"probefunc", kVarProbefunc, "string"},
    BuiltinVariable{"probemod", kVarProbemod, "string"},
    BuiltinVariable{"probename", kVarProbename, "string"},
    BuiltinVariable{"probeprov", kVarProbeprov, "string"},
    BuiltinVariable{"stackdepth", kVarStackdepth, "uint32_t"},
    BuiltinVariable{"tid", kVarTid, "id_t"},
    BuiltinVariable{"timestamp", kVarTimestamp, "uint64_t"},
    BuiltinVariable{"ucaller", kVarUcaller, "uint64_t"},
    BuiltinVariable{"uid", kVarUid, "uid_t"},
    BuiltinVariable{"ustackdepth", kVarUstackdepth, "uint32_t"},
    BuiltinVariable{"vtimestamp", kVarVtimestamp, "uint64_t"},
    BuiltinVariable{"walltimestamp", kVarWalltimestamp, "int64_t"},
    BuiltinVariable{"zonename", kVarZonename, "string"},
};

// The version of the language that brought a name; 1.0 had the others.
struct Introduced {
  std::string_view name;
  std::uint32_t version;
};
constexpr std::uint32_t since(std::uint32_t minor, std::uint32_t micro = 0) {
  return std::uint32_t{1} << 24 | minor << 12 | micro;
}
constexpr std::array kIntroduced = {
    Introduced{"index", since(1)},      Introduced{"rindex", since(1)},
    Introduced{"strchr", since(1)},     Introduced{"strrchr", since(1)},
    Introduced{"strstr", since(1)},     Introduced{"strtok", since(1)},
    Introduced{"substr", since(1)},     Introduced{"func", since(2)},
    Introduced{"mod", since(2)},        Introduced{"sym", since(2)},
    Introduced{"uaddr", since(2)},      Introduced{"ucaller", since(2)},
    Introduced{"ufunc", since(2)},      Introduced{"umod", since(2)},
    Introduced{"usym", since(2)},       Introduced{"htonl", since(3)},
    Introduced{"htonll", since(3)},     Introduced{"htons", since(3)},
    Introduced{"ntohl", since(3)},      Introduced{"ntohll", since(3)},
    Introduced{"ntohs", since(3)},      Introduced{"inet_ntoa", since(5)},
    Introduced{"inet_ntoa6", since(5)}, Introduced{"inet_ntop", since(5)},
    Introduced{"stddev", since(6)},     Introduced{"cpu", since(6, 3)},
    Introduced{"llquantize", since(7)}, Introduced{"tolower", since(8)},
    Introduced{"toupper", since(8)},    Introduced{"print", since(9)},
    Introduced{"getf", since(10)},      Introduced{"json", since(11)},
    Introduced{"strtoll", since(11)},   Introduced{"jailname", since(13)},
    Introduced{"jid", since(13)},
};

bool is_known(std::string_view name, std::uint32_t version) {
  if (version >= kDVersion) return true;
  const auto* found = std::find_if(kIntroduced.begin(), kIntroduced.end(),
                                   [&](const Introduced& entry) { return entry.name == name; });
  return found == kIntroduced.end() || found->version <= version;
}

}  // namespace

const FunctionInfo* find_function(std::string_view name, std::uint32_t version) {
  if (!is_known(name, version)) return nullptr;
  const auto* found = std::find_if(kFunctions.begin(), kFunctions.end(),
                                   [&](const FunctionInfo& entry) { return entry.name == name; });
  return found == kFunctions.end() ? nullptr : found;
}

const BuiltinVariable* find_builtin(std::string_view name, std::uint32_t version) {
  if (!is_known(name, version)) return nullptr;
  const auto* found = std::find_if(kBuiltins.begin(), kBuiltins.end(),
                                   [&](const auto& entry) { return entry.name == name; });
  return found == kBuiltins.end() ? nullptr : found;
}

std::string_view kind_name(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::action:
      return "tracing function";
    case FunctionKind::aggregating:
      return "aggregating function";
    case FunctionKind::subroutine:
      return "function";
  }
  return {};
}

std::string_view action_name(ActionKind kind) {
  const auto* found =
      std::find_if(kFunctions.begin(), kFunctions.end(), [kind](const FunctionInfo& function) {
        return function.kind == FunctionKind::action &&
               function.id == static_cast<std::uint32_t>(kind);
      });
  return found == kFunctions.end() ? std::string_view() : found->name;
}

std::string_view builtin_type(std::string_view name) {
  const BuiltinVariable* found = find_builtin(name);
  return found == nullptr ? std::string_view() : found->type;
}

std::vector<std::string> all_names(const ProgramSpace& space, std::uint32_t version) {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (is_known(name, version)) names.emplace_back(name);
  };
  for (const VariableDesc& variable : space.variables) {
    if (variable.scope == Scope::global) names.push_back(variable.name);
  }
  for (const BuiltinVariable& variable : kBuiltins) add(variable.name);
  add("args");
  for (const FunctionInfo& function : kFunctions) add(function.name);
  return names;
}

GlobalName global_name(const std::string& name, const ProgramSpace& space, const Symbols& symbols,
                       std::uint32_t version) {
  const auto shape = [](bool array) { return array ? "array" : "scalar"; };
  if (const auto found = symbols.globals.find(name); found != symbols.globals.end()) {
    return {shape(space.variables[found->second].array), "variable"};
  }
  if (const auto found = symbols.inlines.find(name); found != symbols.inlines.end()) {
    return {shape(found->second->array), "inline"};
  }
  std::int32_t value = 0;
  const TypeId enumeration = space.types->find_enumerator(name, &value);
  if (enumeration != kNoType) return {"enumerator", (*space.types)[enumeration].name};
  const std::string_view kind = builtin_kind(name, version);
  if (kind.empty()) return {};
  return {kind, find_constant(name) != nullptr ? "inline" : "built-in", true};
}

Symbols::Symbols(const ProgramSpace& space, std::uint32_t version) {
  const Definitions* definitions = space.definitions.get();
  for (std::size_t i = 0; definitions != nullptr && i < definitions->inlines.size(); ++i) {
    const auto& definition = definitions->inlines[i];
    if (definition->version <= version) inlines.emplace(definition->name, definition.get());
  }
  for (std::size_t i = 0; i < space.variables.size(); ++i) {
    const VariableDesc& variable = space.variables[i];
    if (definitions != nullptr) {
      const auto bound = definitions->versions.find(i);
      if (bound != definitions->versions.end() && bound->second > version) continue;
    }
    of(variable.scope).emplace(variable.name, i);
  }
  for (std::size_t i = 0; i < space.aggregations.size(); ++i) {
    aggregations.emplace(space.aggregations[i].name, i);
  }
}

}  // namespace dtmalloc::dtrace
