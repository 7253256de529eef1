// SPDX-License-Identifier: BSD-2-Clause
// Any bytes as a D program: compile() never crashes; what it refuses has a tag, a text and a place
// inside the input; what it accepts runs.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "support/d_program.hpp"

namespace {

using namespace dtmalloc;
using namespace dtmalloc::dtrace;

void require(bool holds) {
  if (!holds) std::abort();
}

void check_diagnostic(const Diagnostic& diagnostic, const std::string& text) {
  require(diagnostic.tag.starts_with("D_"));
  require(!diagnostic.message.empty());
  const auto lines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  require(diagnostic.where.line >= 1 && diagnostic.where.line <= lines);
  std::size_t start = 0;
  for (std::uint32_t line = 1; line < diagnostic.where.line; ++line) {
    start = text.find('\n', start) + 1;
  }
  const std::size_t length = std::min(text.find('\n', start), text.size()) - start;
  require(diagnostic.where.column >= 1 && diagnostic.where.column <= length + 1);
  require(diagnostic.where.length >= 1 &&
          diagnostic.where.column + diagnostic.where.length <= length + 2);
  require(diagnostic.source_line == text.substr(start, length));
}

void run_values(const Program& program, testing::FakeState& machine) {
  const auto run_one = [&](const VerifiedDif& dif) {
    machine.state.scratch_used = 0;
    run(dif, machine.state);
  };
  for (const Clause& clause : program.clauses) {
    if (clause.predicate) run_one(*clause.predicate);
    for (const Action& action : clause.actions) {
      for (const Value& value : action.values) run_one(value.dif);
      if (action.argument) run_one(action.argument->dif);
      if (action.increment) run_one(action.increment->dif);
    }
  }
}

}  // namespace

// The first byte chooses how the rest is compiled.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  CompileInput input;
  const unsigned options = *data;
  input.text.assign(reinterpret_cast<const char*>(data) + 1, size - 1);
  input.file = (options & 1) != 0 ? "fuzz.d" : "";
  input.context = static_cast<SpecContext>(options >> 1 & 3);
  if ((options & 1) != 0) input.context = SpecContext::name;
  input.allow_zero_matches = (options & 8) != 0;
  input.argref = true;
  input.defaultargs = (options & 16) != 0;
  input.strsize = (options & 32) != 0 ? 8 : 256;
  input.arguments = {"dtrace", "1", "text", "-5"};
  input.macros = {{"pid", 4711}};
  testing::FakeCatalog catalog;
  ProgramSpace space;
  const Result<CompileOutput> output = compile(input, catalog, space);
  if (!output) {
    check_diagnostic(output.error(), input.text);
    return 0;
  }
  if (uses_large_variable(output->program, space.variables)) return 0;
  testing::FakeKernel kernel;
  testing::FakeState machine(kernel, input.strsize);
  machine.reserve(space);
  run_values(output->program, machine);
  return 0;
}
