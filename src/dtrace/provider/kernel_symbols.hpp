// SPDX-License-Identifier: BSD-2-Clause
// A simulated kernel's symbols, for the framework that traces it.
#pragma once

namespace dtmalloc {
class Kernel;
}

namespace dtmalloc::dtrace {

class Framework;
// Once for each framework; its providers load them.
void load_kernel_symbols(Framework& framework, Kernel& kernel);
void describe_uma(Framework& framework);  // uma_types.cpp

}  // namespace dtmalloc::dtrace
