# SPDX-License-Identifier: BSD-2-Clause
# The disassembly of a hot function (x86-64, AT&T) -> how many of its instructions keep statistics:
# the load of the type's mti_stats, what makes the line's address of it, what reads or writes the
# line, the load of what is added to it, the test of what was read and its branch.
function base(operand) {
  return match(operand, /\(%[a-z0-9]+/) ? substr(operand, RSTART + 1, RLENGTH - 1) : ""
}
{
  sub(/^ *[0-9a-f]+:[ \t]*/, "")
  op = $1
  sub(/^[a-z]+ +/, "")
  source = target = $0
  if (match($0, /,[^,(]*(\([^)]*\))?$/)) {
    source = substr($0, 1, RSTART - 1)
    target = substr($0, RSTART + 1)
  }
  if (op ~ /^j/) {
    count += tested
    tested = 0
  } else if (source == "0x28(%rsi)") {
    line = target
    count++
  } else if (line != "" && target == line) {
    count++
  } else if (line != "" && base(target) == line) {
    count += 1 + loaded[source]
    loaded[source] = 0
  } else if (line != "" && base(source) == line) {
    count++
    read = target
  } else if (read != "" && target == read) {
    count++
    tested = 1
    read = ""
  }
  if (target ~ /^%/) loaded[target] = op ~ /^mov/ && source ~ /\(/
}
END { print count + 0 }
