// Loaded by OpenCode into its own process, from `opencode/` in the agent's directory. What it hears there becomes the
// agent's state, and a log of each session, in lines of JSON, for receipts, transcripts, usage and clones.
// Nothing in here may throw or take long: the program would go on without it, or wait for it.
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { appendFileSync, mkdirSync, readFileSync, readlinkSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { basename, dirname } from "node:path"
import { fileURLToPath } from "node:url"

const own = dirname(fileURLToPath(import.meta.url))
const place = dirname(own)
const logs = `${own}/log`

const read = (path) => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}
const append = (path, line) => appendFileSync(path, line + "\n", { mode: 0o600 })
const replace = (path, text) => {
  writeFileSync(`${path}.${process.pid}`, text, { mode: 0o600 })
  renameSync(`${path}.${process.pid}`, path)
}

// Of an agent without a terminal, turns.sh has started this process for one turn, and tells how that ends.
const turn = process.env.MNGR_TURN
delete process.env.MNGR_TURN

// An OpenCode that the agent runs by its shell has this plugin too, and must not be taken for the agent: that is the
// process that the launcher has started, or the child of a wrapper which that is.
const ours = (() => {
  if (turn) return true
  const program = Number(read(`${place}/pid`).split(/\s/)[1])
  return program === process.pid || (program === process.ppid && executable(program) !== executable(process.pid))
})()

function executable(pid) {
  if (process.platform === "linux") return readlinkSync(`/proc/${pid}/exe`)
  return execFileSync("ps", ["-o", "comm=", "-p", String(pid)], { encoding: "utf8" }).trim()
}

// The launcher changed these for this process, not for what the agent runs.
for (const name of ["XDG_STATE_HOME", "npm_config_fetch_retries"]) {
  const theirs = process.env[`MNGR_THEIR_${name}`]
  delete process.env[`MNGR_THEIR_${name}`]
  if (theirs) process.env[name] = theirs
  else if (theirs === "") delete process.env[name]
}

// Its state

const asked = new Map() // questions to the user that are open: by id, whose they are and what about
const turns = new Map() // sessions at work, and why one of them is asking its model again
const children = new Set() // sessions of subagents
let ending = "ready" // how the last turn ended

function tell() {
  if (!ours) return
  if (asked.size) become("waiting", asked.values().next().value.about)
  else if (turns.size) become("running", [...turns.values()].find(Boolean))
  else become("waiting", ending)
}

function become(state, reason = "") {
  if (turn && state !== "running") return
  const [was, , ...why] = read(`${place}/state`).trim().split(" ")
  if (was === "stopped") return // by us: what the program says while it ends changes nothing
  if (was === state && why.join(" ") === reason) return
  const time = Math.floor(Date.now() / 1000)
  replace(`${place}/state`, `${state} ${time}${reason && ` ${reason}`}\n`)
  const line = JSON.stringify({ time, agent: basename(place), event: state, ...(reason && { reason }) })
  append(`${place}/events.jsonl`, line)
  append(`${dirname(dirname(place))}/feed`, line)
}

const words = (text) => String(text).replace(/[^A-Za-z0-9 _.,:/()%+-]/g, " ").trim().slice(0, 100)

function failure({ name, data = {} }) {
  if (name === "MessageAbortedError") return "interrupted"
  return `${data.statusCode === 429 ? "rate limit" : "api error"}: ${words(data.message ?? name)}`
}

function begin(session, retry = "") {
  if (!children.has(session)) {
    if (!turns.has(session)) ending = "turn over"
    remember(session)
  }
  turns.set(session, retry)
  tell()
  release(session)
}

function end(session) {
  // One that is interrupted while it asks its model again says nothing of that. Idle is often said twice.
  if (turns.get(session) && !children.has(session)) ending = "interrupted"
  turns.delete(session)
  for (const [id, { whose }] of asked) if (whose === session) asked.delete(id)
  tell()
}

function remember(session) {
  if (!ours) return
  const log = `${logs}/${session}.jsonl`
  const conversation = `${session}\n${log}\n`
  if (read(`${place}/conversation`) === conversation) return
  replace(`${place}/conversation`, conversation)
  if (!read(`${place}/conversations`).split("\n").includes(log)) append(`${place}/conversations`, log)
}

function forget(session) {
  if (ours && read(`${place}/conversation`).startsWith(`${session}\n`)) rmSync(`${place}/conversation`)
}

// The log: a record for each message and each of its parts, when it is complete, as OpenCode itself has it. In `data`,
// which is last, so that what makes an import of the log needs to know no JSON.

const written = new Map() // records by id, to repeat only what has changed
const messages = new Map() // what parts need to know of theirs
const held = new Map() // lines by session

function record(session, kind, id, more, data) {
  const sorted = data && Object.fromEntries(Object.entries(data).sort()) // OpenCode is not sure of their order
  const line = JSON.stringify({ type: kind, id, ...more, data: sorted })
  const hash = createHash("sha1").update(JSON.stringify(sorted)).digest("base64")
  if (written.get(id) === hash) return
  written.set(id, hash)
  // What the user says is evidence for who sent it. It is held back until the turn has begun: who sends and then waits
  // must not find the state of before.
  if (more.role === "user" && !turns.has(session)) held.set(session, [...(held.get(session) ?? []), line])
  else append(`${logs}/${session}.jsonl`, line)
}

function release(session) {
  for (const line of held.get(session) ?? []) append(`${logs}/${session}.jsonl`, line)
  held.delete(session)
}

function keepSession({ id, parentID, cost, tokens, summary, time, ...info }) {
  if (parentID) children.add(id)
  record(id, "session", id, {}, { id, parentID, ...info, time: { created: time.created, updated: time.created } })
}

function keepMessage(info) {
  const { id, sessionID, role, modelID, model, time } = info
  const queued = (role === "user" && turns.has(sessionID)) || undefined
  messages.set(id, { role, model: modelID ?? model?.modelID, queued })
  if (role === "user") record(sessionID, "message", id, { role }, { ...info, summary: undefined })
  else if (time.completed || info.error) record(sessionID, "message", id, { role }, info)
}

function keepPart(part, time) {
  const { id, sessionID, messageID, type, state } = part
  const { role, model, queued } = messages.get(messageID) ?? {}
  const streams = role !== "user" && (type === "text" || type === "reasoning")
  if (streams && !part.time?.end) return
  if (type === "tool" && state.status !== "completed" && state.status !== "error") return
  record(sessionID, "part", id, { message: messageID, role, time, model, queued }, part)
}

function hear({ type, properties: told }) {
  const session = told.sessionID
  switch (type) {
    case "session.created":
    case "session.updated":
      return keepSession(told.info)
    case "session.deleted":
      return forget(session)
    case "message.updated":
      return keepMessage(told.info)
    case "message.part.updated":
      return keepPart(told.part, told.time)
    case "message.removed":
      return record(session, "removed", told.messageID, {}, null)
    case "message.part.removed":
      return record(session, "removed", told.partID, {}, null)
    case "session.status":
      if (told.status.type === "idle") return end(session)
      if (told.status.type === "busy") return begin(session)
      return begin(session, `retrying: attempt ${told.status.attempt}, ${words(told.status.message)}`)
    case "session.error":
      if (turns.has(session)) turns.set(session, "") // it does not ask again
      if (session && !children.has(session)) ending = failure(told.error)
      return
    case "permission.asked":
      asked.set(told.id, { whose: session, about: `permission: ${words(told.permission)}` })
      return tell()
    case "question.asked":
      asked.set(told.id, { whose: session, about: "question" })
      return tell()
    case "permission.replied":
    case "question.replied":
    case "question.rejected":
      asked.delete(told.requestID)
      return tell()
  }
}

export const Agent = async () => {
  mkdirSync(logs, { recursive: true, mode: 0o700 })
  if (read(`${place}/state`).startsWith("starting ")) tell()
  return {
    event: async ({ event }) => {
      try {
        hear(event)
      } catch {}
    },
  }
}
