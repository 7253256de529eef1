// SPDX-License-Identifier: BSD-2-Clause
// D libraries: the .d files of the library directories are compiled before the first program, each
// after those that it depends on.
// Counterpart:  dt_cc.c (dt_load_libs)
// Differs:      files that do not depend on each other are compiled in the order of their names.
//               There is no system directory.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "dtrace/consume/session_impl.hpp"

namespace dtmalloc::dtrace {
namespace {

namespace fs = std::filesystem;

struct Library {
  std::string path, text;
  std::vector<std::string> needs;  // names
  enum { unseen, entered, placed } state = unseen;
  bool failed = false;
};
using Libraries = std::map<std::string, Library>;  // by file name

// The first directory that has a name wins; what cannot be read is no library.
Libraries find_libraries(const std::vector<std::string>& directories) {
  Libraries found;
  for (const std::string& directory : directories) {
    std::error_code failure;
    for (fs::directory_iterator at(directory, failure), end; !failure && at != end;
         at.increment(failure)) {
      const std::string name = at->path().filename().string();
      if (!name.ends_with(".d") || name.starts_with('.') || found.contains(name)) continue;
      std::ifstream in(at->path(), std::ios::binary);
      std::stringstream text;
      text << in.rdbuf();
      if (!in || !text) continue;
      Library library;
      library.path = at->path().string();
      library.text = text.str();
      library.needs = library_dependencies(library.text);
      found.emplace(name, std::move(library));
    }
  }
  return found;
}

Diagnostic refused(const Library& library, const std::string& text) {
  Diagnostic diagnostic;
  diagnostic.tag = "D_PRAGMA_DEPEND";
  diagnostic.where.file = library.path;
  diagnostic.message = "\"" + library.path + "\": " + text;
  return diagnostic;
}

// Each after what it needs. Depth first, without recursion: a chain may be long.
Result<std::vector<std::string>> order(Libraries& libraries) {
  std::vector<std::string> ordered;
  struct Step {
    std::string name;
    std::size_t next = 0;
  };
  for (const auto& entry : libraries) {
    std::vector<Step> path = {{entry.first}};
    while (!path.empty()) {
      Step& step = path.back();
      Library& library = libraries.at(step.name);
      if (library.state == Library::placed || step.next == library.needs.size()) {
        if (library.state != Library::placed) ordered.push_back(step.name);
        library.state = Library::placed;
        path.pop_back();
        continue;
      }
      library.state = Library::entered;
      const std::string& needed = library.needs[step.next++];
      const auto found = libraries.find(needed);
      if (found == libraries.end()) {
        return refused(library, "failed to find dependency in libpath: " + needed);
      }
      if (found->second.state == Library::entered) {
        return refused(library, "failed to add dependency " + step.name + ":" + needed);
      }
      path.push_back({needed});
    }
  }
  return ordered;
}

}  // namespace

Result<void> Session::Impl::load_libraries() {
  if (libraries_loaded || options.is_set("nolibs")) return {};
  libraries_loaded = true;
  Libraries found = find_libraries(options.library_paths());
  Result<std::vector<std::string>> ordered = order(found);
  if (!ordered) return ordered.error();
  for (const std::string& name : *ordered) {
    Library& library = found.at(name);
    // What needs something that is absent is skipped, and so is what needs that.
    library.failed = std::any_of(library.needs.begin(), library.needs.end(),
                                 [&](const auto& need) { return found.at(need).failed; });
    if (library.failed) continue;
    const Result<void> compiled = compile_library(library.path, library.text);
    if (compiled) continue;
    if (compiled.error().tag != "D_PRAGMA_DEPEND") return compiled;
    library.failed = true;
  }
  return {};
}

Result<void> Session::Impl::compile_library(const std::string& path, const std::string& text) {
  CompileInput input = compile_input();
  input.text = text;
  input.file = path;
  input.library = true;
  input.dumps = false;
  input.allow_empty = true;
  input.settings = nullptr;
  if (auto output = dtrace::compile(input, catalog, space); !output) return output.error();
  libraries.emplace_back(path, text);
  return {};
}

}  // namespace dtmalloc::dtrace
