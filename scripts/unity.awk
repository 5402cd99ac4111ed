# SPDX-License-Identifier: Apache-2.0
# usage: awk -v size=N -f unity.awk FILE...
# Sorts the sources of one library into groups that one translation unit can hold: "FILE NUMBER" a line. A file's
# private names (its anonymous namespace, its macros) must not be a word of another file in its group, but for aliases
# that read the same in both.

# same(GROUP, NAME): it is such an alias.
function same(group, name) { return private[name] != "" && group_private[group, name] == private[name] }

function place(   i, n, w, fits) {
  for (i = 0; i < groups; i++) {
    if (count[i] >= size) continue
    fits = 1
    for (n in private) if ((i, n) in group_word && !same(i, n)) { fits = 0; break }
    if (fits) for (w in word) if ((i, w) in group_private && !(w in private && same(i, w))) { fits = 0; break }
    if (fits) break
  }
  if (i == groups) groups++
  count[i]++
  for (n in private) group_private[i, n] = private[n]
  for (w in word) group_word[i, w] = 1
  print file, i
}

function start_file() {
  if (file != "") place()
  file = FILENAME
  inside = 0
  split("", private)
  split("", word)
}

# The name that a line at the margin of an anonymous namespace declares.
function declared(line) {
  gsub(/\[\[[a-z_]+\]\] */, "", line)
  if (line ~ /^using [A-Za-z0-9_]+ =/) { sub(/^using /, "", line); sub(/ .*/, "", line); return line }
  if (line ~ /^(using|namespace|friend|template)/) return ""
  if (line ~ /^(struct|class|enum) /) {
    sub(/^(struct|class|enum class|enum) /, "", line)
    sub(/[^A-Za-z0-9_].*/, "", line)
    return line
  }
  sub(/ *[({=;[].*/, "", line)
  return match(line, /[A-Za-z0-9_]+$/) ? substr(line, RSTART, RLENGTH) : ""
}

FNR == 1 { start_file() }
/^namespace \{/ { inside = 1; next }
/^\}  \/\/ namespace$/ { inside = 0; next }
/^ *# *define / { name = $0; sub(/^ *# *define /, "", name); sub(/[^A-Za-z0-9_].*/, "", name); private[name] = ""; next }
inside && /^[A-Za-z[]/ { name = declared($0); if (name != "") private[name] = /^using/ ? $0 : "" }
{
  sub(/\/\/.*/, "")
  gsub(/"([^"\\]|\\.)*"/, "")
  n = split($0, words, /[^A-Za-z0-9_]+/)
  for (i = 1; i <= n; i++) word[words[i]] = 1
}
END { if (file != "") place() }
