// SPDX-License-Identifier: BSD-2-Clause
// The stages in order, clause by clause.
// Counterpart:  dt_cc.c (dt_compile)
// Invariants:   a compile that fails leaves the ProgramSpace and its types as they were.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "dtrace/lang/definitions.hpp"
#include "dtrace/lang/lang_int.hpp"

namespace dtmalloc::dtrace {
namespace {

class Compiler {
 public:
  Compiler(const CompileInput& input, Catalog& catalog, ProgramSpace& space)
      : input_(input),
        catalog_(catalog),
        space_(space),
        source_(input_),
        symbols_(space, input_.version) {
    space.types->set_string_size(input_.strsize);
    if (!input.set_option || !input.settings) return;
    input_.set_option = [this, &input](std::string_view name, std::string_view value) {
      std::string refusal = input.set_option(name, value);
      if (!refusal.empty()) return refusal;
      static_cast<CompileSettings&>(input_) = input.settings();
      space_.types->set_string_size(input_.strsize);
      if (name == "version") {
        Symbols known(space_, input_.version);
        symbols_.globals.swap(known.globals);
        symbols_.inlines.swap(known.inlines);
      }
      return refusal;
    };
  }

  CompileOutput run() {
    Lexer lexer(input_, source_, *space_.types);
    Ast ast = parse(input_, source_, lexer, space_, symbols_);
    for (const Pragma& pragma : lexer.pragmas()) apply(pragma);
    check_last_argument(lexer);
    CompileOutput output;
    if (input_.dumps) {
      for (const AstClause& clause : ast.clauses) output.parse_dump += dump(clause, nullptr);
    }
    const bool defines = space_.definitions->size() > definitions_before_;
    if (ast.clauses.empty() && !defines && !input_.allow_empty) {
      source_.fail("D_EMPTY", end_of_text(lexer), "empty D program translation unit");
    }
    desugar(ast, *space_.types, &space_.error_clause);
    if (input_.dumps) {
      for (const AstClause& clause : ast.clauses)
        output.desugar_dump += print_source(clause, *space_.types);
    }
    for (AstClause& clause : ast.clauses) {
      for (const AstDescription& description : clause.descriptions) {
        output.program.clauses.push_back(one_clause(clause, description));
      }
      if (input_.dumps) output.type_dump += dump(clause, space_.types);
    }
    if (defines) space_.definitions->trees.push_back(std::move(ast.nodes));
    output.warnings = std::move(lint_.warnings);
    return output;
  }

 private:
  // Where a complaint about the whole text is: its end.
  Place end_of_text(Lexer& lexer) const {
    Place end;
    end.offset = static_cast<std::uint32_t>(input_.text.size());
    end.line = lexer.next().place.line;
    return end;
  }

  void apply(const Pragma& pragma) {
    switch (pragma.kind) {
      case Pragma::depends_on:
        depend_on(pragma);
        return;
      case Pragma::provider_attributes:
        if (!catalog_.match({pragma.name, "", "", "", kNoProbe}).empty()) out_of_scope(pragma);
        unused(pragma, "attributes");
      case Pragma::attributes:
        if (!defined_here(pragma)) unused(pragma, "attributes");
        space_.attributes.insert_or_assign(pragma.name, pragma.attribute);
        return;
      case Pragma::binding:
        if (!defined_here(pragma)) unused(pragma, "binding");
        bind(pragma.name, pragma.version);
        return;
    }
  }

  // Programs in an earlier version of the language do not see the name.
  void bind(const std::string& name, std::uint32_t version) {
    if (const auto found = symbols_.inlines.find(name); found != symbols_.inlines.end()) {
      found->second->version = version;
    } else {
      space_.definitions->versions.insert_or_assign(symbols_.globals.at(name), version);
    }
  }

  // The name is one that this program declares; false: nobody does.
  bool defined_here(const Pragma& pragma) const {
    if (const auto found = symbols_.globals.find(pragma.name); found != symbols_.globals.end()) {
      if (found->second < variables_before_) out_of_scope(pragma);
      return true;
    }
    if (const auto found = symbols_.inlines.find(pragma.name); found != symbols_.inlines.end()) {
      const auto& list = space_.definitions->inlines;
      const bool earlier =
          std::any_of(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(inlines_before_),
                      [&](const auto& one) { return one.get() == found->second; });
      if (earlier) out_of_scope(pragma);
      return true;
    }
    if (find_constant(pragma.name) != nullptr || find_builtin(pragma.name) != nullptr ||
        find_function(pragma.name) != nullptr || is_builtin_array(pragma.name)) {
      out_of_scope(pragma);
    }
    return false;
  }

  [[noreturn]] void unused(const Pragma& pragma, std::string_view what) const {
    source_.fail("D_PRAGMA_UNUSED", pragma.place, fmt::format("unused #pragma {}", what));
  }

  [[noreturn]] void out_of_scope(const Pragma& pragma) const {
    source_.fail("D_PRAGMA_SCOPE", pragma.place,
                 fmt::format("#pragma {} cannot modify entity defined outside program scope",
                             pragma.kind == Pragma::binding ? "binding" : "attributes"));
  }

  // A library's libraries were compiled before it.
  void depend_on(const Pragma& pragma) {
    const std::string& name = pragma.name;
    if (pragma.part == "library") return;
    const ProbeDescription wanted = pragma.part == "module"
                                        ? ProbeDescription{"", name, "", "", kNoProbe}
                                        : ProbeDescription{name, "", "", "", kNoProbe};
    if (pragma.part == "module" && name == "kernel") return;
    if (!catalog_.match(wanted).empty()) return;
    source_.fail("D_PRAGMA_DEPEND", pragma.place,
                 fmt::format("program requires {} {}", pragma.part, name));
  }

  void check_last_argument(Lexer& lexer) const {
    const std::size_t count = input_.arguments.size();
    if (count < 2 || input_.argref || lexer.referenced_arguments().contains(count - 1)) return;
    source_.fail("D_MACRO_UNUSED", end_of_text(lexer),
                 fmt::format("extraneous argument '{}' (${} is not referenced)",
                             input_.arguments.back(), count - 1));
  }

  // The probes that a description matches, asked for once per description.
  const ClauseContext& context(const AstDescription& wanted) {
    const ProbeDescription& description = wanted.description;
    const std::string key =
        description.id != kNoProbe ? fmt::format("#{}", description.id) : to_string(description);
    if (const auto found = contexts_.find(key); found != contexts_.end()) return found->second;
    ClauseContext context;
    context.description = description;
    context.catalog = &catalog_;
    if (description.id != kNoProbe) {
      context.probe = catalog_.probe(description.id);
      context.matches = 1;
      if (context.probe.id == kNoProbe) {
        source_.fail(
            "D_PDESC_INVAL", wanted.place,
            fmt::format("invalid probe identifier {}: Unknown probe identifier", description.id));
      }
    } else {
      const std::vector<ProbeId> ids = catalog_.match(description);
      context.matches = ids.size();
      if (ids.empty() && !input_.allow_zero_matches) no_match(wanted);
      if (!ids.empty()) context.probe = catalog_.probe(ids.front());
    }
    return contexts_.emplace(key, std::move(context)).first->second;
  }

  [[noreturn]] void no_match(const AstDescription& wanted) {
    Diagnostic diagnostic =
        source_.diagnostic("D_PDESC_ZERO", wanted.place,
                           fmt::format("probe description {} does not match any probes",
                                       to_string(wanted.description)));
    const std::string& provider = wanted.description.provider;
    const std::vector<std::string> providers = catalog_.provider_names();
    if (!provider.empty() && !is_glob(provider) && !providers.empty() &&
        std::find(providers.begin(), providers.end(), provider) == providers.end()) {
      diagnostic.expected = "one of this machine's providers: ";
      for (const std::string& known : providers) {
        diagnostic.expected += (&known == &providers.front() ? "" : ", ") + known;
      }
      throw CompileError{std::move(diagnostic)};
    }
    if (hint_name(wanted.description, diagnostic)) throw CompileError{std::move(diagnostic)};
    const std::string function = function_meant(wanted);
    if (!function.empty() && !is_glob(function)) hint(function, provider, diagnostic);
    throw CompileError{std::move(diagnostic)};
  }

  // What is wrong with the name, when probes with another name are there. False: it is not that.
  bool hint_name(const ProbeDescription& wanted, Diagnostic& diagnostic) {
    constexpr std::size_t kFew = 4;  // names that are worth a list
    if (wanted.name.empty() || is_glob(wanted.name)) return false;
    if (wanted.function.empty()) {
      // Probes without a function are told apart by how their names begin.
      const auto hints = catalog_.hints();
      const auto found = hints.find(wanted.name.substr(0, wanted.name.find('-') + 1));
      if (found != hints.end()) {
        diagnostic.expected = found->second.expected;
        return true;
      }
      if (wanted.provider.empty()) return false;
    }
    ProbeDescription others = wanted;
    others.name.clear();
    std::set<std::string> sorted;
    for (const ProbeId id : catalog_.match(others))
      sorted.insert(catalog_.probe(id).description.name);
    if (sorted.empty()) return false;
    const std::vector<std::string> names(sorted.begin(), sorted.end());
    diagnostic.near_names = nearest_names(wanted.name, names);
    if (diagnostic.near_names.empty() && names.size() <= kFew) {
      diagnostic.expected = "a name of these probes: ";
      for (const std::string& name : names)
        diagnostic.expected += (&name == &names.front() ? "" : ", ") + name;
    }
    return true;
  }

  // The function of a description, which may have been written with blanks.
  std::string function_meant(const AstDescription& wanted) const {
    std::string_view text = std::string_view(input_.text).substr(wanted.place.offset);
    text = text.substr(0, text.find_first_of("{/,;\n"));
    while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
    if (text.find(' ') != std::string_view::npos) {
      const auto whole = parse_description(text, input_.context);
      if (whole && whole->function.find(' ') != std::string::npos) return whole->function;
    }
    return wanted.description.function;
  }

  void hint(const std::string& function, const std::string& provider,
            Diagnostic& diagnostic) const {
    std::vector<std::string> names =
        catalog_.function_names(is_glob(provider) ? std::string_view() : provider);
    const std::map<std::string, FunctionHint> hints = catalog_.hints();
    if (const auto found = hints.find(function); found != hints.end()) {
      diagnostic.expected = found->second.expected;
      return;
    }
    for (const auto& [name, hint] : hints) {
      if (!hint.function.empty()) names.push_back(name);
    }
    for (std::string& near : nearest_names(function, names)) {
      const auto found = hints.find(near);
      const std::string& meant = found == hints.end() ? near : found->second.function;
      auto& shown = diagnostic.near_names;
      if (std::find(shown.begin(), shown.end(), meant) == shown.end()) shown.push_back(meant);
    }
  }

  Clause one_clause(AstClause& ast, const AstDescription& description) {
    const ClauseContext& where = context(description);
    const ProviderAttributes* provider =
        where.probe.id == kNoProbe ? nullptr : &where.probe.attributes;
    Sema sema(input_, source_, space_, symbols_, where);
    Clause clause;
    clause.description = description.description;
    clause.where = source_.location(description.place);
    clause.empty_body = ast.statements.empty();
    clause.description_attribute = dtrace::description_attribute(description.description, provider);
    check_attribute(description, clause.description_attribute);
    if (ast.statements.empty()) clause.statement_attribute = kProgramAttribute;
    std::uint32_t next = 1;
    ActionOrder order;
    for (Node* statement : ast.statements) {
      Action action = sema.statement(*statement);
      clause.statement_attribute = least(clause.statement_attribute, sema.attribute(*statement));
      action.first_index = next;
      next += actions_of(action);
      sema.check_order(order, action.kind, *statement);
      clause.actions.push_back(std::move(action));
    }
    if (ast.predicate != nullptr) {
      sema.predicate(*ast.predicate);
      (void)sema.attribute(*ast.predicate);
      clause.predicate = sema.value(*ast.predicate).dif;
    }
    lint(ast, source_, where, catalog_, lint_);
    return clause;
  }

  void check_attribute(const AstDescription& description, const Attribute& attribute) const {
    if (!input_.least_attribute || !is_below(attribute, *input_.least_attribute)) return;
    const ProbeDescription& wanted = description.description;
    source_.fail("D_ATTR_MIN", description.place,
                 fmt::format("attributes for {} ({}) are less than predefined minimum",
                             wanted.id != kNoProbe ? fmt::format("probe identifier {}", wanted.id)
                                                   : "probe description " + to_string(wanted),
                             to_string(attribute)));
  }

  // How many actions a statement is in run-time errors (spec/dtrace.md 17.3).
  static std::uint32_t actions_of(const Action& action) {
    const auto values = static_cast<std::uint32_t>(action.values.size());
    switch (action.kind) {
      case ActionKind::printf:
      case ActionKind::system:
      case ActionKind::freopen:
      case ActionKind::tracemem:
        return std::max<std::uint32_t>(1, values);
      case ActionKind::printa:
        return static_cast<std::uint32_t>(action.printed.size());
      case ActionKind::aggregate:
        return 2 + values + (action.increment ? 1 : 0);
      case ActionKind::trunc:
      case ActionKind::normalize:
      case ActionKind::setopt:
        return 2;
      default:
        return 1;
    }
  }

  CompileInput input_;  // its settings change with every #pragma D option
  Catalog& catalog_;
  ProgramSpace& space_;
  SourceText source_;
  Symbols symbols_;
  std::map<std::string, ClauseContext> contexts_;
  Lint lint_;
  const std::size_t variables_before_ = space_.variables.size();
  const std::size_t inlines_before_ = space_.definitions->inlines.size();
  const std::size_t definitions_before_ = space_.definitions->size();
};

}  // namespace

Result<CompileOutput> compile(const CompileInput& input, Catalog& catalog, ProgramSpace& space) {
  if (space.types == nullptr) space.types = &catalog.types();
  if (space.definitions == nullptr) space.definitions = std::make_shared<Definitions>();
  Definitions& definitions = *space.definitions;
  const std::size_t inlines = definitions.inlines.size();
  const std::size_t translators = definitions.translators.size();
  const std::size_t providers = definitions.providers.size();
  const auto attributes = space.attributes;
  const std::size_t aggregations = space.aggregations.size();
  const std::size_t variables = space.variables.size();
  const std::uint32_t globals = space.globals;
  const std::uint32_t locals = space.locals;
  const std::uint32_t threads = space.threads;
  const std::map<std::string, TypeId> externs = space.externs;
  const std::size_t strings = space.strings.size();
  const bool error_clause = space.error_clause;
  space.types->begin();
  try {
    return Compiler(input, catalog, space).run();
  } catch (CompileError& error) {
    space.aggregations.resize(aggregations);
    space.variables.resize(variables);
    space.globals = globals;
    space.locals = locals;
    space.threads = threads;
    space.externs = externs;
    space.types->rollback();
    space.strings.resize(strings);
    space.error_clause = error_clause;
    space.attributes = attributes;
    definitions.inlines.resize(inlines);
    definitions.translators.resize(translators);
    definitions.providers.resize(providers);
    std::erase_if(definitions.versions, [&](const auto& one) { return one.first >= variables; });
    return std::move(error.diagnostic);
  }
}

}  // namespace dtmalloc::dtrace
