# Makes a session log of opencode_plugin.js into what `opencode import` reads. Of several records with one id the last
# counts, at the place of the first. A message that is not complete yet is left out with its parts.
{
  at = index($0, ",\"data\":")
  if (!at || !/}$/) next # half a line
  split(substr($0, 1, 200), word, "\"") # {"type":"part","id":"prt_1","message":"msg_1",...
  id = word[8]
  known = id in data
  data[id] = substr($0, at + 8, length($0) - at - 8)
  if (word[4] == "session") session = id
  else if (word[4] == "removed") delete data[id]
  else if (known) next
  else if (word[4] == "message") message[++messages] = id
  else if (word[4] == "part") parts[word[12]] = parts[word[12]] " " id
}

END {
  printf "{\"info\":%s,\"messages\":[", data[session]
  for (m = 1; m <= messages; m++) {
    if (!(message[m] in data)) continue
    printf "%s{\"info\":%s,\"parts\":[", comma, data[message[m]]
    comma = ",\n"
    count = split(parts[message[m]], part, " ")
    between = ""
    for (p = 1; p <= count; p++) {
      if (!(part[p] in data)) continue
      printf "%s%s", between, data[part[p]]
      between = ","
    }
    printf "]}"
  }
  print "]}"
}
