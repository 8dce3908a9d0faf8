/**
 * A call's labels: its tags and its end user. They are read from the key, the headers and the body, in this order of precedence. The first source
 * that sets a tag or an end user wins.
 *
 * Where the specification is silent:
 * - A call may have up to 8 tags, including those of its key, with a total of at most 1,024 bytes. A name must consist of 1 to 64 characters from
 *   `A-Z a-z 0-9 _ . -`. A value must consist of 1 to 128 printable characters, and in `X-Tags` these must be ASCII without commas. A value can
 *   contain `=`. Spaces around a pair are ignored.
 * - In OpenAI's `metadata`, an entry is a tag if its name is a valid tag name and its value is a string. Other entries are passed on without becoming
 *   tags, because vendors allow them. Too many tags, or a value that is too long, are rejected with 400, as in `X-Tags`.
 * - In LiteLLM's `metadata.tags`, `name=value` and `name:value` are tags. A bare word becomes the tag `word=true`, so an array can contain several
 *   words.
 * - The end user is the first of `safety_identifier`, `user` and Anthropic's `metadata.user_id` that is not empty. A string with more than 128
 *   characters or with control characters is accepted, as vendors do, but recorded as its hash (`sha256:…`). Requests for images, speech and
 *   transcriptions also accept `safety_identifier` and `user`, in JSON and in forms, and do not pass them on. Claude Code writes a device, an account
 *   and a session into `metadata.user_id`. The end user is then the account, or the device if there is no account.
 * - Attribution headers become tags only if they are valid tags and there is room for them. `session` is the session of Claude Code or Codex. `agent`
 *   is the agent within that session, or the client's name.
 */
import { Schema } from "effect"
import type { Caller, Labels } from "./Caller.ts"
import { InvalidRequest } from "./InvalidRequest.ts"

export const tagsMax = 8
const bytesMax = 1_024

/** Returns whether a tag can have this name. `__proto__` is excluded, because a JSON object would lose it. */
export const isName = (name: string): boolean => /^[A-Za-z0-9_.-]{1,64}$/.test(name) && name !== "__proto__"
/** Returns whether this string is valid as a tag's value or an end user's name. */
export const isText = (value: string): boolean => /^[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}]{1,128}$/u.test(value)

export const nameRule = "a name of 1 to 64 letters, digits, `_`, `.` or `-`"
export const valueRule = "a value of 1 to 128 printable characters"
export const endUserRule = "must be 1 to 128 printable characters, or the hash of a longer string"
const countRule = `must contain at most ${tagsMax} tags, including those of the API key`
const bytesRule = `must contain tags of at most ${bytesMax} bytes in total, including those of the API key`

type Tags = Map<string, string>

// ---- the stored form ----------------------------------------------------------------------------------------------------

const byName = ([a]: readonly [string, string], [b]: readonly [string, string]): number => (a < b ? -1 : 1)

/** Formats tags as lines of `name=value`, in ascending order of names. */
export const textOf = (tags: Iterable<readonly [string, string]>): string =>
  [...tags]
    .sort(byName)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n")

const pairOf = (line: string): readonly [string, string] => {
  const end = line.indexOf("=")
  return [line.slice(0, end), line.slice(end + 1)]
}

/** Returns whether the text is a valid tag: `name=value`, or a name alone, which stands for any value. */
export const isTag = (tag: string): boolean => {
  if (!tag.includes("=")) return isName(tag)
  const [name, value] = pairOf(tag)
  return isName(name) && isText(value)
}

/** Parses stored tags. */
export const tagsOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(text === "" ? [] : text.split("\n").map(pairOf))

/** Returns a tag's value in stored tags, or an empty string if they do not contain the tag. */
export const valueIn = (text: string, name: string): string => {
  const line = text.split("\n").find((one) => one.startsWith(`${name}=`))
  return line === undefined ? "" : line.slice(name.length + 1)
}

const parseTags = (text: string | undefined): Tags => new Map(text === undefined ? [] : text.split("\n").map(pairOf))

/** A key's tags, as a JSON object. */
export const KeyTags = Schema.Record({ key: Schema.String, value: Schema.String }).pipe(
  Schema.filter((tags) => {
    const all = Object.entries(tags)
    if (all.length > tagsMax) return `must contain at most ${tagsMax} tags`
    if (!all.every(([name]) => isName(name))) return `must contain only tags with ${nameRule}`
    if (!all.every(([, value]) => isText(value))) return `must contain only tags with ${valueRule}`
    return isLong(textOf(all)) ? `must contain tags of at most ${bytesMax} bytes in total` : undefined
  })
)

const isLong = (text: string): boolean => text.length > bytesMax || Buffer.byteLength(text) > bytesMax

// ---- merging ------------------------------------------------------------------------------------------------------------

/** Merges labels. The tags and end user of `first` take precedence over those of `then`. */
export const merged = (first: Labels | undefined, then: Labels): Labels => {
  if (first === undefined) return then
  const end_user = first.end_user ?? then.end_user
  const tags =
    first.tags === undefined || then.tags === undefined
      ? (first.tags ?? then.tags)
      : textOf(new Map([...parseTags(then.tags), ...parseTags(first.tags)]))
  return { ...(tags !== undefined && { tags }), ...(end_user !== undefined && { end_user }) }
}

/** Merges labels like `merged`, but drops the tags of `then` that do not fit. */
export const mergedWithin = (first: Labels | undefined, then: Labels): Labels => {
  const all = merged(first, then)
  if (all.tags === undefined || !isTooMuch(all.tags)) return all
  let tags = first?.tags
  for (const pair of parseTags(then.tags)) {
    const more = textOf(new Map([pair, ...parseTags(tags)]))
    if (!isTooMuch(more)) tags = more
  }
  return { ...all, ...(tags !== undefined && { tags }) }
}

const isTooMuch = (tags: string): boolean => parseTags(tags).size > tagsMax || isLong(tags)

/** The labelled callers derived from each caller. Equal labels yield the same object, because other caches use the object as a key. */
const known = new WeakMap<Caller, Map<string, Caller>>()
const knownMax = 1_000

const labelled = (caller: Caller, labels: Labels, field: string): Caller | InvalidRequest => {
  const key = `${labels.end_user ?? ""}\n${labels.tags ?? ""}`
  let callers = known.get(caller)
  const found = callers?.get(key)
  if (found !== undefined) return found
  const all = merged(caller.labels, labels)
  if (all.tags !== undefined) {
    if (parseTags(all.tags).size > tagsMax) return InvalidRequest.of(field, countRule)
    if (isLong(all.tags)) return InvalidRequest.of(field, bytesRule)
  }
  const made: Caller = { ...caller, labels: all }
  if (callers === undefined) known.set(caller, (callers = new Map()))
  if (callers.size >= knownMax) callers.clear()
  callers.set(key, made)
  return made
}

/** Adds a tag. Returns a refusal if the tag is invalid, has two values or exceeds the maximum number of tags. */
const addTag = (tags: Tags, field: string, name: string, value: string): InvalidRequest | undefined => {
  if (!isName(name)) return InvalidRequest.of(field, `must have ${nameRule}`)
  if (!isText(value)) return InvalidRequest.of(field, `must have ${valueRule}`)
  const before = tags.get(name)
  if (before !== undefined && before !== value)
    return InvalidRequest.of(field, `must not give the tag ${name} two values`)
  tags.set(name, value)
  return tags.size > tagsMax ? InvalidRequest.of(field, countRule) : undefined
}

// ---- headers ------------------------------------------------------------------------------------------------------------

interface Headers {
  readonly header: (name: string) => string | undefined
}

const tagsHeader = "X-Tags"

/** Adds the labels in a request's headers to the caller. Returns the same object if there are none, or a refusal if `X-Tags` is invalid. */
export const ofHeaders = (caller: Caller, request: Headers): Caller | InvalidRequest => {
  const text = request.header("x-tags")
  const tagged = text === undefined ? caller : ofTagsHeader(caller, text)
  return caller.attribution !== true || tagged instanceof InvalidRequest ? tagged : attributed(tagged, request)
}

const ofTagsHeader = (caller: Caller, text: string): Caller | InvalidRequest => {
  if (text.trim() === "") return caller
  if (!/^[\t\x20-\x7e]*$/.test(text)) return InvalidRequest.of(tagsHeader, `must have ${valueRule}`)
  const tags: Tags = new Map()
  for (const part of text.split(",")) {
    const pair = part.trim()
    if (!pair.includes("=")) return InvalidRequest.of(tagsHeader, "must be `name=value` pairs, separated by commas")
    const refusal = addTag(tags, tagsHeader, ...pairOf(pair))
    if (refusal !== undefined) return refusal
  }
  return labelled(caller, { tags: textOf(tags) }, tagsHeader)
}

/** The headers that identify a session or an agent, most specific first. */
const attribution = {
  session: ["x-claude-code-session-id", "session-id", "session_id"],
  agent: ["x-claude-code-agent-id", "x-openai-subagent", "originator"]
} as const

const attributed = (caller: Caller, request: Headers): Caller => {
  let one = caller
  for (const name of ["session", "agent"] as const) {
    const found = attribution[name]
      .map((each) => request.header(each))
      .find((value) => value !== undefined && isText(value))
    if (found !== undefined) one = withTag(one, name, found)
  }
  return one
}

/** Adds a tag if it fits within the limits. An existing tag with this name takes precedence. */
const withTag = (caller: Caller, name: string, value: string): Caller => {
  const made = labelled(caller, { tags: `${name}=${value}` }, name)
  return made instanceof InvalidRequest ? caller : made
}

// ---- bodies -------------------------------------------------------------------------------------------------------------

interface Labelling {
  readonly metadata?: unknown
  readonly user?: unknown
  readonly safety_identifier?: unknown
}

/** Adds the labels in a request's unvalidated body to the caller. Returns the same object if there are none, or a refusal if a tag is invalid. */
export const ofBody = (caller: Caller, body: unknown, isAnthropic: boolean, hash: Hash): Caller | InvalidRequest => {
  if (typeof body !== "object" || body === null) return caller
  const { metadata, safety_identifier, user } = body as Labelling
  if (metadata === undefined && user === undefined && safety_identifier === undefined) return caller
  const entries = typeof metadata === "object" && metadata !== null && !Array.isArray(metadata) ? metadata : nothing
  const tags = tagsIn(entries, isAnthropic)
  if (tags instanceof InvalidRequest) return tags
  const named = isAnthropic ? anthropicUser(entries, caller, hash) : openAiUser(user, safety_identifier, hash)
  const { end_user, session } = named
  const one =
    tags.size === 0 && end_user === undefined
      ? caller
      : labelled(
          caller,
          { ...(tags.size > 0 && { tags: textOf(tags) }), ...(end_user !== undefined && { end_user }) },
          "metadata"
        )
  return session === undefined || one instanceof InvalidRequest ? one : withTag(one, "session", session)
}

const nothing: object = {}

const tagsIn = (metadata: object, isAnthropic: boolean): Tags | InvalidRequest => {
  const tags: Tags = new Map()
  for (const [name, value] of Object.entries(metadata)) {
    if (name === "tags" && Array.isArray(value)) {
      const refusal = listed(tags, value)
      if (refusal !== undefined) return refusal
    } else if (!isAnthropic && typeof value === "string" && value !== "" && isName(name)) {
      const refusal = addTag(tags, `metadata.${name}`, name, value)
      if (refusal !== undefined) return refusal
    }
  }
  return tags
}

const listed = (tags: Tags, list: ReadonlyArray<unknown>): InvalidRequest | undefined => {
  for (const [i, one] of list.entries()) {
    const field = `metadata.tags[${i}]`
    if (typeof one !== "string") return InvalidRequest.of(field, "must be a string")
    const end = one.search(/[=:]/)
    const refusal = addTag(tags, field, ...(end < 0 ? ([one, "true"] as const) : split(one, end)))
    if (refusal !== undefined) return refusal
  }
  return undefined
}

const split = (text: string, end: number) => [text.slice(0, end).trim(), text.slice(end + 1).trim()] as const

interface Named {
  readonly end_user?: string | undefined
  readonly session?: string | undefined
}

/** Hashes a string that is not valid as a label. */
type Hash = (text: string) => string

const openAiUser = (user: unknown, safety_identifier: unknown, hash: Hash): Named =>
  userOf(typeof safety_identifier === "string" && safety_identifier !== "" ? safety_identifier : user, hash)

const userOf = (user: unknown, hash: Hash): Named => {
  if (typeof user !== "string" || user === "") return nothing
  return { end_user: isText(user) ? user : hash(user) }
}

const anthropicUser = (metadata: { readonly user_id?: unknown }, { attribution }: Caller, hash: Hash): Named => {
  const { user_id } = metadata
  const named = typeof user_id === "string" ? ofClaudeCode(user_id) : undefined
  if (named === undefined) return userOf(user_id, hash)
  return attribution === true ? named : { end_user: named.end_user }
}

/** The format used by Claude Code up to version 2.1.77: `user_<device>_account_<account>_session_<session>`. */
const claudeCode = /^(user_[0-9a-f]{64})_account_([0-9a-f-]*)_session_([0-9a-f-]{1,64})$/

/** Parses Claude Code's user and session. Returns `undefined` if another client wrote the string. */
const ofClaudeCode = (text: string): Named | undefined => {
  const [, device = "", account = "", session] = claudeCode.exec(text) ?? []
  if (session !== undefined) return { end_user: account === "" ? device : account, session }
  if (!text.startsWith("{") || text.length > 1_024) return undefined
  const json = parsed(text)
  const of = (name: string): string | undefined => {
    const value = json?.[name]
    return typeof value === "string" && isText(value) ? value : undefined
  }
  const found = of("session_id")
  return found === undefined ? undefined : { end_user: of("account_uuid") ?? of("device_id"), session: found }
}

const parsed = (text: string): Readonly<Record<string, unknown>> | undefined => {
  try {
    const json = JSON.parse(text) as unknown
    return typeof json === "object" && json !== null ? (json as Readonly<Record<string, unknown>>) : undefined
  } catch {
    return undefined
  }
}
