// The plugin of ctx for OpenCode: it gives the agent its memory and reports what happens.
//
// `ctx install` copies this file and replaces the command below. Each event starts that command
// with one more word and a JSON payload on its standard input. Its answer, if any, is one JSON
// object: {"additionalContext": "..."}. An exception in a hook would fail the user's turn, so
// nothing here throws, and nothing waits longer than a few seconds.
import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

const COMMAND = ["ctx", "hook", "opencode"]

const DATA = process.env.XDG_DATA_HOME || join(homedir(), ".local", "share")
const DATABASE = join(DATA, "opencode", "opencode.db")
const LIMIT_MS = { "session-start": 10000, "prompt-submit": 10000, stop: 10000 }
const SHORT_MS = 5000
const LONGEST = 400000
const GONE =
  "ctx cannot run, so nothing is remembered. Install it again and run `ctx install`, or remove its" +
  " plugin. Tell the user."

// The beginning and the end of a long text.
const short = (text) =>
  typeof text !== "string" || text.length <= LONGEST
    ? text
    : text.slice(0, LONGEST / 2) + "\n…\n" + text.slice(-LONGEST / 2)

function run(word, payload) {
  return new Promise((resolve) => {
    let out = ""
    let child
    const limit = (LIMIT_MS[word] ?? SHORT_MS) * (Number(process.env.CTX_PATIENCE) || 1)
    const timer = setTimeout(() => {
      try {
        child?.kill("SIGKILL")
      } catch {}
      resolve("")
    }, limit)
    const end = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    const fail = () =>
      end(word === "session-start" ? JSON.stringify({ additionalContext: GONE }) : "")
    try {
      child = spawn(COMMAND[0], [...COMMAND.slice(1), word], { stdio: ["pipe", "pipe", "ignore"] })
      child.on("error", fail)
      child.stdin.on("error", () => {})
      child.stdout.on("data", (piece) => (out += piece))
      child.on("close", (code) => (code ? fail() : end(out)))
      child.stdin.end(JSON.stringify(payload))
    } catch {
      end("")
    }
  })
}

export const Ctx = async ({ directory }) => {
  const started = new Set() // sessions that got a start context
  const created = new Set() // sessions that began in this process
  const parents = new Map() // the session that a subagent works for
  const messages = new Map() // what the agent said in the current turn
  const compacted = new Map() // contexts for sessions that were compacted
  const failed = new Set() // calls whose failure was reported
  let count = 0

  const ask = async (word, session, more) => {
    let top = session
    while (parents.has(top)) top = parents.get(top)
    const agent = top === session ? "" : session
    const place = { session: top, folder: directory, agent, database: DATABASE }
    const out = await run(word, { ...place, ...more })
    try {
      return out ? (JSON.parse(out).additionalContext ?? "") : ""
    } catch {
      return ""
    }
  }

  const guarded =
    (hook) =>
    async (...words) => {
      try {
        await hook(...words)
      } catch {}
    }

  const add = (input, output, text) => {
    if (!text) return
    count += 1
    output.parts.push({
      id: `prt_zctx${Date.now().toString(36)}${count}`,
      sessionID: input.sessionID,
      messageID: output.message.id,
      type: "text",
      text,
      synthetic: true,
    })
  }

  const onEvent = {
    "session.created": ({ info }) => {
      created.add(info.id)
      if (info.parentID) parents.set(info.id, info.parentID)
    },
    // A tool that throws is not reported by tool.execute.after.
    "message.part.updated": async ({ part }) => {
      if (part.type !== "tool" || part.state.status !== "error" || failed.has(part.callID)) return
      failed.add(part.callID)
      await ask("post-tool-use-failure", part.sessionID, {
        tool: part.tool,
        call: part.callID,
        args: part.state.input,
        error: short(part.state.error),
      })
    },
    "session.idle": async ({ sessionID }) => {
      if (parents.has(sessionID)) return
      const turn = messages.get(sessionID) ?? new Map()
      messages.delete(sessionID)
      const said = [...turn].map(([id, parts]) => ({ id, text: [...parts.values()].join("\n\n") }))
      await ask("stop", sessionID, { messages: said })
    },
    "session.compacted": async ({ sessionID }) => {
      if (parents.has(sessionID)) return
      compacted.set(sessionID, await ask("session-start", sessionID, { source: "compact" }))
    },
  }

  return {
    "chat.message": guarded(async (input, output) => {
      const session = input.sessionID
      if (parents.has(session)) return
      if (!started.has(session)) {
        started.add(session)
        const source = created.has(session) ? "startup" : "resume"
        add(input, output, await ask("session-start", session, { source }))
      } else if (compacted.has(session)) {
        const text = compacted.get(session)
        compacted.delete(session)
        add(input, output, text)
      }
      const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = typed.map((part) => part.text).join("\n")
      if (prompt.trim()) add(input, output, await ask("prompt-submit", session, { prompt }))
    }),

    "tool.execute.after": guarded(async (input, output) => {
      // The tools of a server have a list of contents in place of a text.
      const texts = (output.content ?? []).map((part) => part.text ?? "")
      const text = await ask("post-tool-use", input.sessionID, {
        tool: input.tool,
        call: input.callID,
        args: input.args,
        output: short(output.output ?? texts.join("\n")),
        metadata: { exit: output.metadata?.exit, exists: output.metadata?.exists },
      })
      if (text) output.output += `\n\n${text}`
    }),

    "experimental.text.complete": guarded((input, output) => {
      if (parents.has(input.sessionID)) return
      const turn = messages.get(input.sessionID) ?? new Map()
      const parts = turn.get(input.messageID) ?? new Map()
      messages.set(input.sessionID, turn.set(input.messageID, parts.set(input.partID, output.text)))
    }),

    "experimental.session.compacting": guarded(async (input) => {
      if (!parents.has(input.sessionID)) await ask("pre-compact", input.sessionID, {})
    }),

    // An agent that goes on by itself after a compaction gets no message before its next request.
    "experimental.chat.system.transform": guarded((input, output) => {
      const text = compacted.get(input.sessionID)
      if (text) output.system.push(text)
    }),

    event: guarded(async ({ event }) => onEvent[event.type]?.(event.properties)),

    dispose: guarded(async () => {
      await Promise.all([...started].map((session) => ask("session-end", session, {})))
    }),
  }
}
